"""iSwitch's and Trio-ML's figures of sums: what their settings must give, whatever they measure."""

from __future__ import annotations

from typing import Any

import pytest

from olaf.experiments import Spread, Task
from olaf.experiments.catalog import find, plan
from olaf.experiments.comparing import line, over
from olaf.experiments.iswitch import fig12, synchronous, table4
from olaf.experiments.trio import fig14, fig15, fig16
from olaf.scenarios.sums import Job

US_PER_MS = 1e3
AROUND = 66
"""Bytes around a datagram on a link."""


def parameters(name: str, **changes: Any) -> Any:
    overrides = [f"{key}={value}" for key, value in changes.items()]
    return plan(find(name), quick=True, overrides=overrides).parameters


def task(name: str, **changes: Any) -> Task[Any]:
    def say(text: str, share: float | None = None) -> None:
        del text, share

    figure = find(name)
    return Task(parameters(name, **changes), figure.paper, (0,), None, say, quick=True)  # type: ignore[arg-type]


def test_arms_are_compared_seed_by_seed() -> None:
    assert over([2, 9], [1, 3]).values == [2, 3]
    with pytest.raises(ValueError, match="shorter"):
        over([1, 2], [1])
    made = line("a", [4, 8], [Spread.of([1, 3]), Spread.of([5])])
    assert made.points == [(4, 2), (8, 5)]
    assert (made.low, made.high) == ([1, 5], [3, 5])


def test_the_ends_of_a_range_are_found_for_each_seed() -> None:
    def job(ms: float) -> Job:
        return Job.model_construct(iteration_ns=ms * 1e6)

    runs = {"small": [{"ps": job(1)}, {"ps": job(8)}], "large": [{"ps": job(4)}, {"ps": job(5)}]}
    least, most = synchronous.ends(runs, lambda jobs: jobs["ps"].iteration_ns / 1e6)
    assert (least.values, most.values) == ([1, 5], [4, 8])


def test_hours_are_the_papers_iterations_at_our_time_of_an_iteration() -> None:
    given = task("iswitch/table4", **{"models.DQN": 100_000})
    runs = synchronous.train_all(given)
    made = {row.where: row for row in table4.rows(given, runs)}
    iteration_s = runs["DQN"][0]["ring"].iteration_ns / 1e9
    assert made["AR, DQN"].ours.mean == pytest.approx(1.4e6 * iteration_s / 3600)
    # The computation follows from these hours, so that they judge nothing.
    assert made["iSW, DQN"].verdict == "fitted"
    assert made["AR, DQN"].verdict != "fitted"


def test_the_parts_of_an_iteration_add_up() -> None:
    given = task("iswitch/fig12", **{"models.DQN": 200_000, "models.A2C": 100_000})
    runs = synchronous.train_all(given)
    for model in runs:
        for engine in ("ps", "iswitch"):
            parts = [
                fig12.of_ps(runs, model, engine, part).mean for part in ("compute", "wait", "sum")
            ]
            whole = fig12.of_ps(runs, model, engine, "iteration").mean
            assert sum(parts) == pytest.approx(whole)
            assert whole == pytest.approx(100) if engine == "ps" else whole < 100


@pytest.mark.parametrize("timeout", [2, 10])
def test_a_straggler_costs_the_others_one_to_two_timeouts(timeout: int) -> None:
    given = parameters("trio/fig14")
    shares = [at / 8 for at in range(8)]
    one = [fig14.recover(given, timeout, 1, share, 0) for share in shares]
    many = [fig14.recover(given, timeout, given.packets, share, 0) for share in shares]
    links_ms = 0.02
    assert all(timeout <= ms <= 2 * timeout + links_ms for ms in [*one, *many])
    assert max(one) - min(one) > timeout / 2, "the moment within the period decides"
    # The last one of twenty packets is given up by nearly the last timer of a period.
    assert min(many) > 1.8 * timeout


def test_a_packet_alone_takes_two_links() -> None:
    given = parameters("trio/fig15", delay_us=3)
    took_us = given.aggregate(1024, 1, 50).iteration_ns / 1e3 / 50
    least_us = 2 * (3 + given.frame_us(1024))
    headers_us = 2 * 150 * 8 / given.rate_gbit / 1e3
    assert least_us < took_us < least_us + headers_us
    latency = {64: Spread.of([1.0]), 1024: Spread.of([2.0])}
    rows = fig15.rows(task("trio/fig15"), latency)
    growth = {row.quantity: row.ours.mean for row in rows}
    assert growth["growth of the latency"] == 2
    assert growth["growth of the rate"] == 8
    assert {row.verdict for row in rows} == {"not comparable"}


def test_a_window_limits_the_rate_until_the_link_does() -> None:
    given = parameters("trio/fig16")
    round_trip_us = 2 * (given.delay_us + given.frame_us(1024) * given.scale)
    latency, throughput, again = fig16.measure(given, 1024, 64)
    assert latency == pytest.approx(round_trip_us, rel=0.1)
    assert throughput == pytest.approx(64 * 4096 * 8 / US_PER_MS / latency, rel=0.05)
    slow, full, none = fig16.measure(given, 1024, 4096)
    assert full == pytest.approx(given.rate_gbit * 4096 / (4096 + AROUND + 12), rel=0.1)
    assert slow > 4 * latency
    assert (again, none) == (0, 0)
