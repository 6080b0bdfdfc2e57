"""Warnings of a run in words: each rule, from its usual range out and back, and on healthy runs."""

import math
from typing import Any

import pytest

from olaf.jobs.progress import Happening, Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.supervisor import Said
from olaf.jobs.warnings import ENDLESS_STEPS, NAMES, RULES, TURNS, Watch

HEALTHY = {
    "kl": 0.0462,
    "clipped": 0.2837,
    "entropy": 0.092,
    "explained_variance": 0.14,
    "gradient_norm": 2.29,
    "value": 0.05,
}
"""The worst means over 20 turns of each worker, of whole runs of LunarLander-v3 (8 workers, one
process, rounds, 300 kbit/s), CartPole-v1 (1 and 8 workers), Pendulum-v1 and Acrobot-v1 (4)."""

FIRST = {**HEALTHY, "entropy": 0.65, "value": 0.075}


def told(
    watch: Watch, losses: dict[str, float], reports: int, reward: float | None = 0.0, **how: bool
) -> list[str]:
    """The names of the warnings that begin or end within so many equal reports."""
    said = []
    for _ in range(reports):
        for rule, text, is_over in watch.take(losses, reward, discrete=how.get("discrete", True)):
            assert text.endswith(".")
            assert is_over == ("is in its usual range again" in text)
            said.append(f"{rule.name} over" if is_over else rule.name)
    return said


def begun(workers: int = 1, reward: float = 0.0) -> Watch:
    """A run that began as healthy runs do."""
    watch = Watch(workers, 0.5)
    assert told(watch, FIRST, TURNS * workers, reward) == []
    return watch


BAD: dict[str, dict[str, float]] = {
    "kl": {"kl": 0.2},
    "clipped": {"clipped": 0.6},
    "entropy": {"entropy": 0.001},
    "explained_variance": {"explained_variance": -0.4},
    "gradient_norm": {"gradient_norm": 300.0},
    "value": {"value": 2.0, "explained_variance": 0.1},
}


def test_every_rule_has_a_name_a_reason_and_a_case_here() -> None:
    assert [rule.name for rule in RULES] == list(NAMES) == list(BAD)
    assert all(rule.reason and rule.try_this and rule.needs for rule in RULES)


@pytest.mark.parametrize("name", BAD)
def test_a_number_outside_its_range_is_told_once_and_so_is_its_return(name: str) -> None:
    watch = begun()
    assert told(watch, FIRST | BAD[name], 400) == [name]
    assert told(watch, FIRST, 400) == [f"{name} over"]
    assert told(watch, FIRST | BAD[name], 400) == []  # not again


@pytest.mark.parametrize("name", BAD)
def test_a_number_outside_its_range_for_a_moment_is_no_news(name: str) -> None:
    watch = begun(workers=4)
    assert told(watch, FIRST | BAD[name], 4) == []
    assert told(watch, FIRST, 1000) == []


@pytest.mark.parametrize("workers", [1, 8])
def test_a_healthy_run_is_told_nothing(workers: int) -> None:
    watch = begun(workers)
    assert told(watch, HEALTHY, 500 * workers) == []


def test_a_solved_cartpole_is_told_nothing() -> None:
    """Its returns are all alike: nothing is left to explain, and a little noise is far below 0."""
    watch = begun()
    losses = FIRST | {"explained_variance": -14.0, "value": 0.0004, "entropy": 0.001}
    assert told(watch, losses, 500, reward=500.0) == []


def test_an_entropy_of_nothing_is_told_only_where_it_is_the_least_and_nothing_was_learnt() -> None:
    low = FIRST | {"entropy": 0.001}
    assert told(begun(), low, 200, discrete=False) == []
    assert told(begun(), low, 200, reward=1.0) == []
    assert told(begun(reward=1.0), low, 200, reward=1.0) == ["entropy"]


def test_one_value_beyond_all_bounds_says_little_and_numbers_may_be_missing() -> None:
    watch = begun()
    assert told(watch, FIRST | {"kl": math.inf}, 1) == []
    assert told(watch, FIRST | {"kl": math.nan}, 500) == []
    assert told(Watch(1, 0.5), {"policy": 1.0}, 500) == []
    assert told(Watch(1, 0.5), {}, 500) == []


def turn(updates: int, losses: dict[str, float], rewards: list[float]) -> Said:
    message: dict[str, Any] = {
        "event": "turn",
        "worker": 0,
        "updates": updates,
        "steps": updates * 500,
        "episode_rewards": rewards,
        "losses": losses,
    }
    return Said("worker 0", 1, message)


def run_of(turns: int, losses: dict[str, float], rewards: list[float]) -> tuple[Progress, Any]:
    progress = Progress(read_settings(overrides=["train.workers=1", "learner.environments=4"]))
    heard: list[Happening] = []
    for number in range(1, turns + 1):
        happening = progress.take(turn(number, losses, rewards), float(number))
        heard += [happening] if happening else []
    return progress, heard


def test_a_run_says_its_warnings_and_keeps_them() -> None:
    losses = FIRST | BAD["kl"] | BAD["clipped"]
    progress, heard = run_of(60, losses, [1.0])
    assert [happening.text[:40] for happening in heard] == [
        "learning: each pass changes the policy m",
        "learning: 60 % of the steps are beyond l",
    ]
    assert all(happening.trouble for happening in heard)
    assert progress.happenings == heard
    assert list(progress.warned) == ["kl", "clipped"]
    assert progress.warned["kl"].over_s is None
    for number in range(61, 200):
        progress.take(turn(number, FIRST, [1.0]), float(number))
    assert (progress.warned["kl"].over_s or 0) > 60
    assert not progress.happenings[-1].trouble


def test_a_run_whose_episodes_never_end_is_told_so() -> None:
    turns = ENDLESS_STEPS * 4 // 500
    assert run_of(turns - 1, FIRST, [])[1] == []
    (only,) = run_of(turns + 20, FIRST, [])[1]
    assert "no episode has ended in 20,000 steps of each environment" in only.text
    assert run_of(turns + 20, FIRST, [1.0])[1] == []


def test_a_turn_of_whole_episodes_that_never_ends_is_told_so() -> None:
    progress = Progress(read_settings())
    for steps in (ENDLESS_STEPS - 1, ENDLESS_STEPS, 2 * ENDLESS_STEPS):
        message = {"event": "alive", "worker": 0, "steps": steps, "longest_episode": steps}
        progress.take(Said("worker 0", 1, message), 1.0)
    (only,) = progress.happenings
    assert "no episode has ended in 20,000 steps" in only.text
    assert "learner.max_episode_steps" in only.text
