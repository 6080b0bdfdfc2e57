"""Ties that no real times can bring about are excluded, and nothing else is."""

import z3

from olaf.verify.gates import Bit, Gates, negation
from olaf.verify.instance import Instance, Sender
from olaf.verify.timeline.queue import Unrolled
from olaf.verify.timeline.reading import Unreal, read

STEADY, LATE = 0, 1
CLUSTERS = range(3)
MEETS = 8
"""When the steady one's second update comes, before the departure of that tick."""


def unrolled() -> tuple[z3.Solver, Unrolled]:
    gates = Gates()
    senders = (Sender(0, MEETS, 0), Sender(1, 6, 3), Sender(2, 3, 2))
    names, alike = ("steady", "late", "filler"), (0, 1, 2)
    line = Unrolled(gates, Instance(1_000_000, 2, 3, 10, names, alike, senders))
    solver = z3.SimpleSolver()
    solver.add(gates.clauses)
    both_at_0 = [line.sent[STEADY][0], line.sent[LATE][0], line.order.earlier(0, LATE, STEADY)]
    late_began = [line.starts_at_once[LATE][0], line.begins[LATE][MEETS]]
    force(solver, *both_at_0, *late_began, line.before[STEADY][MEETS])
    return solver, line


def force(solver: z3.Solver, *bits: Bit) -> None:
    for bit in bits:
        assert bit is not False
        if bit is not True:
            solver.add(bit)


def test_what_is_learned_of_a_busy_period_is_not_said_of_the_next_by_the_same_sender() -> None:
    one, line = unrolled()
    force(one, *(negation(line.starts_at_once[c][t]) for c in CLUSTERS for t in range(1, MEETS)))
    assert one.check() == z3.sat
    # The late one was first at 0 and began all of it: steady is not before a departure of it.
    impossible = read(line, one.model())
    assert isinstance(impossible, Unreal)

    two, line = unrolled()
    force(two, line.starts_at_once[LATE][6])
    for _ in range(100):
        assert two.check() == z3.sat
        found = read(line, two.model())
        if not isinstance(found, Unreal):
            break
        two.add(found.clause)
    assert not isinstance(found, Unreal)
    # Its next update, a little later in its tick, began another, and that can be.
    assert z3.is_true(two.model().eval(impossible.clause, model_completion=True))
