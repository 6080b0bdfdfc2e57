"""What the engine takes for an update, without sockets: it times updates that really leave."""

import pytest

from olaf._olaf import time_engine


@pytest.mark.parametrize("merged", [1, 3])
def test_every_update_that_is_timed_takes_its_time(merged: int) -> None:
    times = time_engine(16, merged=merged, batches=3)
    assert len(times) == 3
    assert all(took > 0 for took in times)


@pytest.mark.parametrize(("lanes", "merged", "batches"), [(0, 1, 1), (16349, 1, 1), (1, 0, 1)])
def test_impossible_settings_are_refused(lanes: int, merged: int, batches: int) -> None:
    with pytest.raises(ValueError, match=r"lanes|merged"):
        time_engine(lanes, merged=merged, batches=batches)
