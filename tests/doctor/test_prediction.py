"""What `olaf doctor` predicts, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olaf.doctor.prediction import Job, offered, predict, steps

# 125 MB are one second on 1 Gbit/s.
JOB = Job(
    model_bytes=125_000_000,
    workers=4,
    compute_s=0.5,
    link_bps=1e9,
    switch_bps=4e9,
    uplink_bps=1e9,
    round_trip_s=0.01,
)


def test_a_step_is_computation_and_the_bytes_of_the_slowest_link() -> None:
    step = steps(JOB)
    assert step.switch_s == pytest.approx(0.5 + 1.0 + 0.01)
    assert step.ring_s == pytest.approx(0.5 + 2 * 3 / 4 + 3 * 0.01)
    assert step.server_s == pytest.approx(0.5 + 4.0 + 0.01)


def test_a_switch_with_a_port_for_each_worker_beats_the_ring() -> None:
    found = predict(JOB)
    assert (found.synchronous, round(found.synchronous_gain, 3)) == (
        "gains",
        round(2.03 / 1.51 - 1, 3),
    )
    assert "faster than with a ring" in found.synchronous_why


def test_a_switch_with_one_port_gains_nothing_and_says_what_would() -> None:
    found = predict(replace(JOB, switch_bps=1e9))
    assert found.synchronous == "nothing"
    assert found.synchronous_gain < 0
    assert "a port for each worker" in found.synchronous_why


def test_nothing_is_the_answer_for_one_worker_and_for_much_computation() -> None:
    alone = predict(replace(JOB, workers=1))
    assert (alone.synchronous, alone.asynchronous) == ("nothing", "nothing")
    assert "nobody" in alone.synchronous_why
    idle = predict(replace(JOB, workers=1, compute_s=0.0))
    assert (idle.synchronous, idle.synchronous_gain) == ("nothing", 0.0)
    busy = predict(replace(JOB, compute_s=100.0))
    assert busy.synchronous == "nothing"
    assert "computation takes 98%" in busy.synchronous_why


def test_merging_gains_where_workers_push_more_than_the_uplink_carries() -> None:
    # A push takes a second of a worker's link and is due every half: the link is the limit.
    assert offered(JOB) == pytest.approx(4.0)
    found = predict(JOB)
    assert found.asynchronous == "gains"
    assert found.lost_by_fifo == pytest.approx(0.75)
    slow = predict(replace(JOB, compute_s=10.0))
    assert slow.load == pytest.approx(0.4)
    assert (slow.asynchronous, slow.lost_by_fifo) == ("nothing", 0.0)
