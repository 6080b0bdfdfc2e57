"""Every prover against every run there is; for the tests, and by hand for as long as one likes.

    python tests/verify/crosscheck.py SECONDS [SEED]

ends with 1 where they disagree, and prints the instance, and the seed that draws it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from fractions import Fraction
from random import Random

from instances import draw, families, told
from reference import Outcome, TooManyError, greatest, outcomes

from olaf.verify.events import Events
from olaf.verify.instance import Instance, Kind, Objective
from olaf.verify.portfolio import DisagreementError
from olaf.verify.prover import NoRun
from olaf.verify.schedule import Schedule
from olaf.verify.sweep import Sweep
from olaf.verify.timeline import Timeline
from olaf.verify.witness import confirm

PROVERS = (Timeline, Sweep, Events)
ANY = Fraction(-1)
PATIENCE_S = 100


def supremum(
    prover: Timeline | Sweep | Events, instance: Instance, objective: Objective
) -> tuple[Fraction | None, list[Schedule]]:
    """The value that no run exceeds, and the runs found on the way; the engine confirms each."""
    above = ANY
    found: list[Schedule] = []
    while True:
        schedule = prover.exists(above, time.monotonic() + PATIENCE_S)
        if isinstance(schedule, NoRun):
            return (above if found else None), found
        above = confirm(instance, objective, above, schedule, prover.name).value
        found.append(schedule)


def questions(instance: Instance) -> list[Objective]:
    """All kinds that it has a value for, about all clusters."""
    about = tuple(range(len(instance.clusters)))
    pairs = (Kind.FAIR_PEAK, Kind.FAIR_AGE)
    kinds = [kind for kind in Kind if len(about) > 1 or kind not in pairs]
    return [Objective(kind, Fraction(0), about) for kind in kinds]


def expected(runs: set[Outcome], instance: Instance, objective: Objective) -> Fraction | None:
    """The largest value of any run, in nanoseconds or a share."""
    value = greatest(runs, objective.kind, objective.clusters)
    if value is None or not objective.kind.is_time:
        return value
    return value * instance.tick_ns


def disagreements(instance: Instance, runs: set[Outcome], objective: Objective) -> list[str]:
    """What each prover that takes the question says otherwise."""
    said: list[str] = []
    want = expected(runs, instance, objective)
    for prover in PROVERS:
        if prover.takes(instance, objective) is not None:
            continue
        try:
            got, _ = supremum(prover(instance, objective), instance, objective)
        except DisagreementError as error:
            said.append(f"{prover.name}, {objective.kind}: {error}")
            continue
        if got != want:
            said.append(f"{prover.name}, {objective.kind}: {got}, and there is {want}")
    return said


def main(seconds: float, seed: int) -> int:
    """Draw and compare until the time is up."""
    counts: Counter[str] = Counter()
    wrong = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        instance = draw(Random(seed))
        try:
            runs = outcomes(instance, 100_000)
        except TooManyError:
            counts["(too many runs, left out)"] += 1
        else:
            counts["instances"] += 1
            counts.update(families(instance))
            for objective in questions(instance):
                counts[f"of {objective.kind}"] += 1
                for line in disagreements(instance, runs, objective):
                    wrong += 1
                    print(f"seed {seed}: {line}\n  {instance!r}", flush=True)
        seed += 1
    print(f"{told(counts)}\n  {wrong:6d}  disagreements; the next seed is {seed}")
    return 1 if wrong else 0


if __name__ == "__main__":
    given = sys.argv[2:]
    sys.exit(main(float(sys.argv[1]), int(given[0]) if given else Random().randrange(10**9)))
