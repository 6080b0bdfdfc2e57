"""The queue of a switch from Python: the examples of docs/queue.md, arrival by arrival."""

import numpy as np
import pytest

from olaf._olaf import Queue


def value(x: float) -> np.ndarray:
    return np.array([x], np.float32)


def test_updates_of_a_cluster_merge_while_they_wait() -> None:
    queue = Queue(slots=4)
    assert queue.arrive(value(1), worker=1) == ("appended", 0)
    assert queue.arrive(value(3), worker=2) == ("merged", 0)
    assert queue.arrive(value(10), worker=3) == ("merged", 0)
    sent = queue.begin_departure()
    assert sent is not None
    assert (sent["lanes"].tolist(), sent["weight"], sent["contributors"]) == ([14.0], 3.0, 3)


def test_a_newer_update_of_a_worker_takes_the_place_of_its_older_one() -> None:
    queue = Queue(slots=4)
    fates = [queue.arrive(value(x), worker=w)[0] for w, x in [(1, 1), (1, 2), (2, 4), (1, 8)]]
    assert fates == ["appended", "replaced", "merged", "merged"]
    assert [entry["lanes"].tolist() for entry in queue.entries()] == [[14.0]]


def test_the_departing_entry_keeps_its_slot_and_takes_nothing_in() -> None:
    queue = Queue(slots=2)
    queue.arrive(value(1), cluster=1, worker=1)
    assert queue.begin_departure() is not None
    assert queue.begin_departure() is None
    assert queue.arrive(value(2), cluster=1, worker=2) == ("appended", 1)
    assert queue.arrive(value(4), cluster=2, worker=3) == ("dropped", None)
    assert (queue.end_departure(), queue.used) == (0, 1)
    assert queue.arrive(value(16), cluster=3, worker=4) == ("appended", 2)


def test_a_value_that_is_not_finite_is_rejected() -> None:
    queue = Queue("fifo", slots=1)
    assert queue.arrive(value(np.nan)) == ("non_finite", None)
    assert queue.used == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"discipline": "lifo"}, "must be olaf, fifo or freshest"),
        ({"slots": 0}, "slots = 0"),
        ({"gate": -1.0}, "gate = -1"),
    ],
)
def test_a_queue_that_cannot_be_says_why(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Queue(**arguments)  # type: ignore[arg-type]
