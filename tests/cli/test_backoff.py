"""Restart pauses grow with deaths in a row, and shrink again after good behaviour."""

import sys

import pytest
from waiting import until

from olaf.jobs.backoff import Backoff
from olaf.jobs.supervisor import Ended, Program, Started, Supervisor

HOUR_S = 3600.0


def test_pauses_double_up_to_the_longest() -> None:
    backoff = Backoff(restarts=8, delay_s=0.2)
    pauses = [backoff.died(ran_s=0.1) for _ in range(9)]
    assert pauses == [*map(pytest.approx, (0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5)), None]


def test_a_process_that_dies_once_an_hour_is_never_given_up() -> None:
    backoff = Backoff(restarts=5, delay_s=0.2)
    assert [backoff.died(ran_s=HOUR_S) for _ in range(50)] == [0.2] * 50


def test_a_good_run_after_bad_ones_starts_with_the_first_pause_and_all_its_restarts() -> None:
    backoff = Backoff(restarts=3, delay_s=0.2, steady_s=30)
    assert [backoff.died(1), backoff.died(1), backoff.died(1)] == [0.2, 0.4, 0.8]
    assert backoff.died(ran_s=30) == 0.2
    assert [backoff.died(29.9), backoff.died(0), backoff.died(0)] == [0.4, 0.8, None]


def test_many_restarts_do_not_overflow_and_no_restarts_give_up_at_once() -> None:
    patient = Backoff(restarts=10_000, delay_s=0.2)
    assert [patient.died(0) for _ in range(5_000)][-1] == 5.0
    assert Backoff(restarts=0, delay_s=0.2).died(HOUR_S) is None


@pytest.mark.parametrize(("ran_s", "deaths"), [(HOUR_S, 7), (0.0, 3)])
def test_the_supervisor_goes_by_its_clock(ran_s: float, deaths: int) -> None:
    """A real child that dies at once, by a clock that says how long it ran."""
    now = 0.0
    wreck = Program("wreck", [sys.executable, "-c", "raise SystemExit(3)"])
    pauses: list[float | None] = []

    def died_often_enough() -> bool:
        nonlocal now
        now += 0.01  # any pause is over soon
        for occurrence in supervisor.poll(0.01):
            if isinstance(occurrence, Started):
                now += ran_s
            elif isinstance(occurrence, Ended):
                pauses.append(occurrence.back_in_s)
        return len(pauses) == deaths

    with Supervisor(restarts=2, restart_delay_s=0.001, clock=lambda: now) as supervisor:
        supervisor.start(wreck)
        until(died_often_enough, what=f"{deaths} deaths")
    if ran_s:
        assert pauses == [pytest.approx(0.001)] * deaths
    else:
        assert pauses == [pytest.approx(0.001), pytest.approx(0.002), None]
