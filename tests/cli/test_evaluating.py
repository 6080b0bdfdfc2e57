"""Evaluations while a run trains: when they are, what is kept, and what if they fail."""

from contextlib import closing
from pathlib import Path

import pytest
from cli_doubles import Watcher, fake_command

from olaf.errors.outcome import Exit
from olaf.files.modelfile import read_model
from olaf.jobs.evaluating import FAILURES, Evaluating
from olaf.jobs.evaluation import best_of
from olaf.jobs.progress import Earlier, Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.result import conclude
from olaf.jobs.supervisor import Said
from olaf.jobs.training import Outcome, Training
from olaf.processes.lines import Control
from olaf.runs.journal import Journal, read_journal


class Observed(Watcher):
    """A watcher that writes the journal, too."""

    journal: Journal | None = None

    def stands(self, progress, phase):  # type: ignore[no-untyped-def]
        super().stands(progress, phase)
        if self.journal is not None:
            self.journal.stands(progress, phase)


def run(
    tmp_path: Path, *overrides: str, earlier: Earlier | None = None, updates: int = 150
) -> tuple[Outcome, Observed]:
    settings = read_settings(
        overrides=[
            f"train.out='{tmp_path}'",
            "train.workers=2",
            f"train.updates={updates}",
            "train.until_reward=off",
            "train.every_s=0.05",
            "train.evaluate_every=25",
            *overrides,
        ]
    )
    watcher = Observed()
    with Journal(tmp_path, {"settings": {}}) as watcher.journal:
        training = Training(settings, watcher, Control(), fake_command, earlier=earlier)
        return training.run(), watcher


def test_a_run_is_evaluated_as_it_goes_and_its_best_model_kept(tmp_path: Path) -> None:
    outcome, watcher = run(tmp_path)
    evaluations = outcome.progress.evaluations
    assert len(evaluations) >= 3
    versions = [one.version for one in evaluations]
    assert versions == sorted(set(versions))
    # None is before its time, and there is at most one for each 25 updates, and the last model.
    assert evaluations[0].updates >= 25
    marks = [one.updates // 25 for one in evaluations[:-1]]
    assert marks == sorted(set(marks))
    assert versions[-1] == conclude(outcome)["model"]["version"] or versions[-1] > 100
    # The stand-in's score is best at version 80.
    best = best_of(evaluations)
    assert best is not None
    assert abs(best.version - 80) == min(abs(version - 80) for version in versions)
    kept = read_model(tmp_path / "best.npz")
    assert kept.version == best.version
    assert (kept.parameters == best.version).all()
    assert list(kept.arrays) == ["part_0", "part_1"] or list(kept.arrays) == ["parameters"]
    result = conclude(outcome)
    assert result["evaluation"]["best"]["version"] == best.version
    assert result["evaluation"]["count"] == len(evaluations)
    assert result["evaluation"]["file"] == "best.npz"
    assert sum("evaluated model version" in line for line in watcher.lines) == len(evaluations)
    assert not any(line.startswith("server: saved") for line in watcher.lines)
    assert read_journal(tmp_path).evaluations == evaluations
    assert not (tmp_path / ".evaluation").exists()


def test_a_resumed_run_keeps_the_best_model_of_the_earlier_session(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path)
    best = best_of(outcome.progress.evaluations)
    earlier = read_journal(tmp_path)
    again, _ = run(tmp_path, earlier=earlier, updates=210)
    assert again.progress.evaluations[: len(earlier.evaluations)] == earlier.evaluations
    first = again.progress.evaluations[len(earlier.evaluations)]
    assert first.updates > 150  # what was due in the earlier session is not made up for
    now = best_of(again.progress.evaluations)
    assert best is not None
    assert now is not None
    assert now.greedy.mean >= best.greedy.mean
    assert read_model(tmp_path / "best.npz").version == now.version


def test_without_the_option_there_is_no_evaluator(tmp_path: Path) -> None:
    outcome, watcher = run(tmp_path, "train.evaluate_every=off")
    assert outcome.progress.evaluations == []
    assert conclude(outcome)["evaluation"] is None
    assert not any("evaluat" in line for line in watcher.lines)
    assert not (tmp_path / "best.npz").exists()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (
            "dies",
            "no more evaluations in this session: killed by SIGKILL: simulator: out of licences",
        ),
        ("hangs", "20 episodes took longer than train.evaluate_timeout_s = 0.2; play fewer"),
    ],
)
def test_an_evaluator_that_fails_does_not_hurt_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str, said: str
) -> None:
    monkeypatch.setenv("FAKE_EVALUATOR", fault)
    limit_s = 0.2 if fault == "hangs" else 60
    outcome, watcher = run(tmp_path, f"train.evaluate_timeout_s={limit_s}", updates=300)
    assert (outcome.kind, outcome.code) == ("updates", Exit.OK)
    assert outcome.progress.updates == 300
    assert outcome.restarts == {}
    assert outcome.progress.evaluations == []
    assert any(said in line for line in watcher.lines), watcher.lines
    # It says so a few times, not for every evaluation that might have been.
    assert sum("evaluator" in line or "not evaluated" in line for line in watcher.lines) <= 5
    if fault == "hangs":  # an evaluator that is killed for it has not failed twice
        assert sum("was not evaluated" in line for line in watcher.lines) == FAILURES
        assert not any("the evaluator ended" in line for line in watcher.lines)


def test_a_run_that_is_interrupted_does_not_wait_for_an_evaluation(tmp_path: Path) -> None:
    control = Control()

    class Stopping(Watcher):
        def stands(self, progress, phase):  # type: ignore[no-untyped-def]
            super().stands(progress, phase)
            if progress.updates >= 20:
                control.stop("SIGINT")

    overrides = [f"train.out='{tmp_path}'", "train.workers=2", "train.evaluate_every=10"]
    watcher = Stopping()
    outcome = Training(read_settings(overrides=overrides), watcher, control, fake_command).run()
    assert outcome.kind == "interrupted"
    assert "evaluating the last model" not in watcher.phases


def test_an_evaluation_that_is_due_waits_for_the_one_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_EVALUATOR", "hangs")
    overrides = [f"train.out='{tmp_path}'", "train.evaluate_every=25"]
    progress = Progress(read_settings(overrides=overrides))
    asked: list[int] = []
    now = [0.0]
    evaluating = Evaluating(
        progress,
        ask_for_model=lambda: asked.append(progress.updates),
        bring=lambda file: None,
        say=lambda happening: None,
        command=fake_command,
        learner={"environments": 1},
        clock=lambda: now[0],
    )
    saved = Said("server", 1, {"event": "saved", "job": 1, "file": str(tmp_path / "model.npz")})
    with closing(evaluating):
        for updates in (24, 25, 49, 50, 60):
            progress.updates_of["worker 0", 1] = {"updates": updates, "steps": 10 * updates}
            evaluating.turn()
            if updates == 49:
                evaluating.take(saved)  # the model of the first one; its evaluation hangs
        assert asked == [25]
        assert evaluating.is_busy
        now[0] = 121.0  # its time limit is over: now the next one has its turn, once
        evaluating.turn()
        evaluating.turn()
        assert asked == [25, 60]
        # The server does not answer, as it does if it died: it is asked again.
        now[0] = 145.0
        evaluating.turn()
        assert asked == [25, 60, 60]
