"""The paper's constraints as printed (OLAF §12.2, §12.3), given to z3: why they are not used.

Each test is a row of the table in docs/design/010-verifier.md.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import z3

SERVICE = z3.RealVal(2)
"""p/C, in units of the faster cluster's interval."""


def arrivals(count: int, interval: float, name: str) -> tuple[list[Any], list[Any], Any]:
    """A(k) of a periodic cluster, its D(k), and what holds of A."""
    phase = z3.Real(f"phase_{name}")
    arrived = [phase + k * z3.RealVal(interval) for k in range(count)]
    left = [z3.Real(f"D_{name}_{k}") for k in range(count)]
    return arrived, left, z3.And(phase >= 0, phase < interval)


def found(mine: Any, others: list[tuple[list[Any], list[Any]]]) -> Any:
    """The printed Q: updates of other clusters that came before and leave after ``mine``."""
    in_queue = [
        z3.If(z3.And(a < mine, d > mine), 1, 0)
        for arrived, left in others
        for a, d in zip(arrived, left, strict=True)
    ]
    return z3.Sum(in_queue)


def printed_departures(own: Any, *, with_service: bool) -> list[Any]:
    """D(k) = (A(k) + T_Q(k)) 1{D(k) < A(k+1)} of two clusters; the last update has no next."""
    facts = []
    for (arrived, left), others in own:
        for k, (a, d) in enumerate(zip(arrived, left, strict=True)):
            leaves = a + found(a, others) * SERVICE + (SERVICE if with_service else 0)
            stays = d < arrived[k + 1] if k + 1 < len(arrived) else z3.BoolVal(True)
            facts.append(d == z3.If(stays, leaves, 0))
    return facts


def two_clusters(interval: float) -> tuple[Any, list[Any]]:
    a, da, starts_a = arrivals(4, 1, "a")
    b, db, starts_b = arrivals(4, interval, "b")
    return [((a, da), [(b, db)]), ((b, db), [(a, da)])], [starts_a, starts_b]


def satisfiable(facts: list[Any]) -> bool:
    solver = z3.Solver()
    solver.add(facts)
    answer = solver.check()
    assert answer != z3.unknown
    return bool(answer == z3.sat)


def test_without_the_own_service_nothing_ever_queues() -> None:
    """The link is asked for four times what it can, and no update ever waits."""
    own, facts = two_clusters(1)
    facts += printed_departures(own, with_service=False)
    assert satisfiable(facts)
    (arrived, left), _ = own[0]
    assert not satisfiable([*facts, z3.Or(*(d > a for a, d in zip(arrived, left, strict=True)))])


def test_with_the_own_service_one_replaced_update_contradicts_itself() -> None:
    """An update that would still wait when the next comes has no D at all."""
    arrived, left, starts = arrivals(2, 1, "a")
    alone: Any = [((arrived, left), [])]
    assert not satisfiable([starts, *printed_departures(alone, with_service=True)])
    # Only where nothing is ever replaced, it says what it means.
    slow, leaves, begins = arrivals(2, 3, "b")
    assert satisfiable([begins, *printed_departures([((slow, leaves), [])], with_service=True)])


def separated(first: list[Any], second: list[Any]) -> list[Any]:
    """D^u(b) - D^v(a) >= p/C for all b > a, both ways."""
    pairs = [(first, second), (second, first)]
    return [
        u[b] - v[a] >= SERVICE
        for u, v in pairs
        for b in range(len(u))
        for a in range(len(v))
        if b > a
    ]


def test_the_separation_says_nothing_of_one_update_each() -> None:
    assert separated([z3.Real("u0")], [z3.Real("v0")]) == []


def test_the_separation_forbids_clusters_of_unequal_rates() -> None:
    """Update k+1 of the fast one would have to wait for update k of the slow one, for ever."""
    fast, slow = [z3.Real(f"u{k}") for k in range(8)], [z3.Real(f"v{k}") for k in range(8)]
    facts = []
    for left, interval in ((fast, 3), (slow, 9)):
        # Each leaves within an interval and a service of its arrival: nothing is asked of the link
        # that it could not do.
        for k, d in enumerate(left):
            facts += [d >= interval * k, d <= interval * (k + 1) + 2]
        facts += [b - a >= SERVICE for a, b in pairwise(left)]
    assert satisfiable(facts)
    assert not satisfiable([*facts, *separated(fast, slow)])


def test_a_mean_of_nothing_is_whatever_the_solver_likes() -> None:
    """A cluster without a delivery is fair and unfair at once, or neither, as one writes it."""
    count, total, other = z3.Ints("count total other")
    mean = z3.Real("mean")
    nothing = [count == 0, total == 0, other >= 1]
    fair = z3.And(mean - other <= z3.Q(1, 10), other - mean <= z3.Q(1, 10))
    divided = [*nothing, mean == z3.ToReal(total) / z3.ToReal(count)]
    assert satisfiable([*divided, fair])
    assert satisfiable([*divided, z3.Not(fair)])
    counted = [*nothing, count >= 1, mean * count == total]
    assert not satisfiable([*counted, fair])
    assert not satisfiable([*counted, z3.Not(fair)])
