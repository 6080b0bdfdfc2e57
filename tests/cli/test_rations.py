"""A run ends at exactly its number of updates, whatever its workers do, and nobody waits for it."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_doubles import Watcher, fake_command
from commands import olaf
from hypothesis import given
from hypothesis import strategies as st

from olaf.jobs.progress import Progress
from olaf.jobs.rations import Rations
from olaf.jobs.reading import read_settings
from olaf.jobs.result import conclude
from olaf.jobs.supervisor import Ended, Said, Started
from olaf.jobs.training import Training
from olaf.processes.lines import Control


@dataclass
class Worker:
    """A worker that pushes as its ration allows, and tells of it later."""

    number: int
    rations: Rations
    incarnation: int = 0
    lives: bool = False
    pushed: int = 0
    told: int = 0
    allowed: int = 0

    @property
    def name(self) -> str:
        return f"worker {self.number}"

    def starts(self) -> None:
        if not self.lives:
            self.incarnation, self.lives = self.incarnation + 1, True
            self.pushed = self.told = self.allowed = 0
            self.rations.take(Started(self.name, self.incarnation, 1))
            self.says("ready")

    def says(self, event: str, **fields: Any) -> None:
        self.rations.take(Said(self.name, self.incarnation, {"event": event, **fields}))

    def pushes(self) -> bool:
        if not self.lives or self.pushed >= self.allowed:
            return False
        self.pushed += 1
        return True

    def reports(self) -> None:
        if self.lives:
            self.told = self.pushed
            self.says("update", updates=self.pushed)

    def dies(self) -> None:
        if self.lives:
            self.lives = False
            self.rations.take(Ended(self.name, self.incarnation, -9, False, 0.1))


STEPS = ("starts", "pushes", "pushes", "pushes", "reports", "dies", "hears", "hears")


@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 5), st.randoms(use_true_random=False))
def test_no_schedule_of_deaths_and_delays_passes_the_limit_or_stops_short_of_it(
    limit: int, count: int, dead: int, chance: random.Random
) -> None:
    """In the end ``dead`` of the workers, but not all, are given up."""
    rations = Rations(limit, count)
    workers = [Worker(number, rations) for number in range(count)]
    lines: dict[str, int] = {}
    gone = 0  # what dead workers had told of

    def told() -> int:
        return gone + sum(worker.told for worker in workers if worker.lives)

    def hears(worker: Worker) -> None:
        worker.allowed = max(worker.allowed, lines.pop(worker.name, 0))

    for _ in range(150):
        step, worker = chance.choice(STEPS), chance.choice(workers)
        if step == "dies":
            gone += worker.told if worker.lives else 0
            lines.pop(worker.name, None)  # it went to the dead worker's input
        hears(worker) if step == "hears" else getattr(worker, step)()
        lines |= rations.due()
        pushed = gone + sum(worker.pushed for worker in workers if worker.lives)
        assert told() <= pushed <= limit
    rest = workers[min(dead, count - 1) :]
    for worker in workers:
        if worker in rest:
            worker.starts()
        else:
            gone += worker.told if worker.lives else 0
            worker.dies()
    for _ in range(4 * limit + 4):
        for worker in rest:
            lines |= rations.due()
            hears(worker)
            worker.pushes()
            worker.reports()
    assert told() == limit


def test_far_from_the_end_no_worker_uses_up_its_ration() -> None:
    """Turns of ten pushes, reported at their end; one worker is four times as fast as another."""
    limit, turn = 16_000, 10
    rations = Rations(limit, 8)
    workers = [Worker(number, rations) for number in range(8)]
    lines = 0
    for worker in workers:
        worker.starts()
    pushed_before_a_wait = None
    for round_ in range(10_000):
        for worker in workers:
            for name, updates in rations.due().items():
                lines += 1
                workers[int(name.split()[1])].allowed = updates
            if round_ % (1 + worker.number % 4):
                continue
            done = [worker.pushes() for _ in range(turn)]
            if not all(done) and pushed_before_a_wait is None:
                pushed_before_a_wait = sum(one.pushed for one in workers)
            worker.reports()
    assert sum(worker.pushed for worker in workers) == limit
    assert pushed_before_a_wait is not None
    assert limit - pushed_before_a_wait < 4 * 8 * turn  # the last turns of each
    assert lines < 500


def test_a_worker_that_has_left_gives_its_ration_back() -> None:
    rations = Rations(10, 2)
    one, other = Worker(0, rations), Worker(1, rations)
    one.starts()
    other.starts()
    assert rations.due() == {"worker 0": 2, "worker 1": 2}
    one.says("stopped")
    assert rations.left == 8
    other.allowed = 2
    for _ in range(10):
        other.pushes()
        other.reports()
        other.allowed = rations.due().get("worker 1", other.allowed)
    assert other.pushed == 10


def test_without_a_limit_nobody_has_a_ration() -> None:
    rations = Rations(None, 2)
    Worker(0, rations).starts()
    assert not rations.are_limited
    assert rations.due() == {}


@pytest.mark.parametrize("killed", [None, "worker 1"])
def test_a_run_ends_at_its_number_of_updates_also_after_a_death(
    tmp_path: Path, killed: str | None
) -> None:
    settings = read_settings(
        overrides=[
            f"train.out='{tmp_path}'",
            "train.workers=3",
            "train.updates=150",
            "train.until_reward=off",
            "train.every_s=0.05",
            "train.restart_delay_s=0.01",
        ]
    )
    kills: list[str] = []

    def kill(progress: Progress, phase: str) -> None:
        if killed and not kills and progress.updates >= 60:
            kills.append(killed)
            training.kill(killed)

    training = Training(settings, Watcher(kill), Control(), fake_command)
    outcome = training.run()
    assert outcome.kind == "updates"
    assert outcome.progress.updates == 150
    assert outcome.restarts == ({killed: 1} if killed else {})
    assert conclude(outcome)["updates"] == 150


def test_a_worker_that_hangs_does_not_keep_the_last_updates_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_HANG", str(tmp_path / "hung"))
    overrides = [
        f"train.out='{tmp_path}'",
        "train.workers=3",
        "train.updates=150",
        "train.until_reward=off",
        "train.stall_timeout_s=1",
        "train.restart_delay_s=0.01",
    ]
    watcher = Watcher()
    settings = read_settings(overrides=overrides)
    outcome = Training(settings, watcher, Control(), fake_command).run()
    assert (outcome.kind, outcome.progress.updates) == ("updates", 150), outcome.reason
    assert outcome.restarts == {"worker 1": 1}
    said = [line for line in watcher.lines if "wait for its last updates" in line]
    assert len(said) == 1
    assert said[0].startswith("worker 1 has said nothing for ")


def test_a_holder_is_named_only_while_another_worker_waits() -> None:
    rations = Rations(4, 2)
    one, other = Worker(0, rations), Worker(1, rations)
    one.starts()
    other.starts()
    lines = rations.due()
    assert sorted(lines.values()) == [1, 1]
    assert rations.holders() == []
    one.allowed = 3
    for _ in range(3):  # it does all that is left but the other's
        one.pushes()
        one.reports()
        rations.due()
    assert rations.holders() == ["worker 1"]
    other.dies()
    assert rations.holders() == []
    assert rations.due() == {"worker 0": 4}


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_four_real_workers_push_exactly_as_many_updates_as_asked_for(
    tmp_path: Path, transport: str
) -> None:
    done = olaf(
        *("train", "--env=CartPole-v1", "--workers=4", "--updates=100", "--until-reward=off"),
        *(f"--transport={transport}", "--set=learner.steps_per_update=100", "--out=run", "--json"),
        folder=tmp_path,
        timeout_s=100,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "run" / "run.json").read_text())["result"]
    assert result["updates"] == result["fates"]["pushed"] == 100
    assert result["fates"]["matches"], result["fates"]
