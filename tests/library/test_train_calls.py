"""`olaf.train(.., on_update=f, on_evaluation=g)`: what they get, and how they end a run."""

from __future__ import annotations

import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

import olaf
from olaf.jobs.evaluation import Evaluation, Played
from olaf.jobs.progress import Progress, Sample
from olaf.jobs.settings import Settings
from olaf.processes.lines import Control
from olaf.runs.calls import Calls

QUICK: dict[str, Any] = {
    "env": "CartPole-v1",
    "workers": 2,
    "until_reward": "off",
    "display": "quiet",
    "settings": {
        "train.every_s": 0.05,
        "learner.environments": 2,
        "learner.steps_per_update": 200,
    },
}


def test_the_functions_get_the_run_as_it_goes_in_the_caller_s_thread(tmp_path: Path) -> None:
    updates: list[olaf.TrainUpdate] = []
    evaluations: list[olaf.TrainEvaluation] = []
    threads = set()

    def on_update(update: olaf.TrainUpdate) -> None:
        updates.append(update)
        threads.add(threading.current_thread())

    result = olaf.train(
        **QUICK,
        updates=60,
        evaluate_every=20,
        out=tmp_path / "run",
        on_update=on_update,
        on_evaluation=evaluations.append,
    )
    assert threads == {threading.current_thread()}
    assert result.outcome == "updates"
    assert updates[-1].updates == result.updates == 60
    assert updates[-1].steps == result.steps
    assert [one.updates for one in updates] == sorted(one.updates for one in updates)
    assert updates[-1].episodes > 0
    assert updates[-1].reward is not None
    assert any(one.losses.get("entropy", 0) > 0 for one in updates)
    assert evaluations == result.evaluations
    assert evaluations[-1].version == updates[-1].version
    assert evaluations[0].is_best
    assert evaluations[0].greedy.episodes == 10
    assert result.best_model == tmp_path / "run" / "best.npz"
    assert result.best_model.exists()


def test_false_ends_the_run_in_order(tmp_path: Path) -> None:
    seen: list[int] = []

    def on_update(update: olaf.TrainUpdate) -> bool:
        seen.append(update.updates)
        return update.updates < 20

    result = olaf.train(**QUICK, updates="off", out=tmp_path / "run", on_update=on_update)
    assert (result.outcome, result.ok) == ("stopped", True)
    assert result.reason == "on_update returned False"
    assert seen[-1] >= 20
    assert all(updates < 20 for updates in seen[:-1])  # it is not called again
    assert sum(result.fates.values()) == result.updates
    assert result.model is not None


def test_an_exception_ends_the_run_in_order_and_comes_to_the_caller(tmp_path: Path) -> None:
    def on_update(update: olaf.TrainUpdate) -> None:
        raise LookupError("no such plot")

    with pytest.raises(LookupError, match="no such plot") as caught:
        olaf.train(**QUICK, updates="off", out=tmp_path / "run", on_update=on_update)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert frames[-1].line == 'raise LookupError("no such plot")'
    assert (tmp_path / "run" / "run.json").exists()
    assert "stopped by LookupError in on_update" in (tmp_path / "run" / "run.json").read_text()


# Without processes.


def sampled(progress: Progress, updates: int) -> None:
    progress.samples.append(Sample(1.0, updates, 10 * updates, 1.5, 0, updates, {}, {}))


def scored(mean: float, updates: int) -> Evaluation:
    played = Played(episodes=3, mean=mean, std=0.0, min=mean, max=mean, steps_mean=9.0)
    return Evaluation(1.0, updates, 10 * updates, updates, played, played)


def test_a_function_that_ends_the_program_ends_the_run_in_order_before(tmp_path: Path) -> None:
    def on_update(update: olaf.TrainUpdate) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit, match="3"):
        olaf.train(**QUICK, updates=2000, out=tmp_path / "run", on_update=on_update)
    assert (tmp_path / "run" / "report.html").exists()


def test_a_slow_function_gets_the_newest_state_and_every_evaluation() -> None:
    progress = Progress(Settings(), first_update_s=0.5)
    seen: list[int] = []
    means: list[tuple[float, bool]] = []
    calls = Calls(
        lambda update: seen.append(update.updates),
        lambda one: means.append((one.greedy.mean, one.is_best)),
        Control(),
    )
    sampled(starting := Progress(Settings()), 0)
    before = Calls(lambda update: seen.append(-1), None, Control())
    before.stands(starting, "starting")
    before.end()
    before.wait()
    for updates in range(1, 6):
        sampled(progress, updates)
        progress.evaluations.append(scored([5.0, 7.0, 6.0, 7.0, 8.0][updates - 1], updates))
        calls.stands(progress, "training")
    calls.stands(Progress(Settings(), first_update_s=0.5), "training")  # another run: the baseline
    calls.end()
    calls.wait()
    assert seen == [5]
    assert means == [(5.0, True), (7.0, True), (6.0, False), (7.0, False), (8.0, True)]


def test_a_run_that_no_longer_rises_is_stopped() -> None:
    def goes_on_until(means: list[float], **how: float) -> int:
        """The number of evaluations, 100 updates apart, that the run goes on after."""
        control, progress = Control(), Progress(Settings(), first_update_s=0.5)
        calls = Calls(None, olaf.stop_when_stalled(300, **how), control)
        for number, mean in enumerate(means):
            progress.evaluations.append(scored(mean, 100 * (number + 1)))
            calls.stands(progress, "training")
            calls._make()
            if control.concluded:
                assert control.concluded == "on_evaluation returned False"
                return number
        return len(means)

    assert goes_on_until([1, 2, 3, 4, 5]) == 5
    assert goes_on_until([1, 5, 4, 5, 4, 9]) == 4
    assert goes_on_until([1, 5, 4, 5.1, 4, 9]) == 6
    assert goes_on_until([1, 5, 4, 5.1, 4, 9], min_delta=0.5) == 4
