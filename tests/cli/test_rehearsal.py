"""What a rehearsal of one learner finds out before anything is started."""

import pytest

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.reading import read_settings
from olaf.jobs.rehearsal import rehearse


def test_an_unknown_environment_is_said_once_before_anything_starts() -> None:
    settings = read_settings(overrides=["learner.environment=CartPoll-v1"])
    with pytest.raises(RunError, match="did you mean CartPole-v1") as error:
        rehearse(settings)
    assert error.value.code == Exit.USAGE


@pytest.mark.parametrize(
    ("overrides", "slots"),
    [
        ([], 8),
        (["learner.hidden=[200,200]"], 8 * 19),
        (["learner.hidden=[200,200]", "switch.slots=3"], 3),
        (["learner.hidden=[200,200]", "worker.segment_lanes=41803"], 8),
    ],
)
def test_the_queue_holds_eight_whole_updates_unless_told(overrides: list[str], slots: int) -> None:
    settings = read_settings(overrides=["learner.environment=CartPole-v1", *overrides])
    assert rehearse(settings).switch.slots == slots
