"""Every prover against every run there is; for the tests, and by hand for as long as one likes.

    python tests/verify/crosscheck.py SECONDS [SEED]

ends with 1 where they disagree, and prints the instance, and the seed that draws it.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from random import Random

from instances import draw, families, told
from reference import Outcome, TooManyError, outcomes, value

from olaf.verify.bound import at_most
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
AT_EVERY_TIME = (Kind.WORST_PEAK, Kind.STARVATION)
"""Of these a proof for ever is about any longer run too; of means it is about what they tend to."""
MOST_LONGER = 5_000
"""States of longer runs."""


def greatest_of(
    prover: Timeline | Sweep | Events, instance: Instance, objective: Objective
) -> Fraction | None:
    """The value that no run exceeds, by asking again and again; the engine confirms each run."""
    above, found = ANY, False
    while True:
        schedule = prover.exists(above, time.monotonic() + PATIENCE_S)
        if isinstance(schedule, NoRun):
            return above if found else None
        above = confirm(instance, objective, above, schedule, prover.name).value
        found = True


def questions(instance: Instance) -> list[Objective]:
    """All kinds that it has a value for, about all clusters."""
    about = tuple(range(len(instance.clusters)))
    pairs = (Kind.FAIR_PEAK, Kind.FAIR_AGE)
    kinds = [kind for kind in Kind if len(about) > 1 or kind not in pairs]
    return [Objective(kind, Fraction(0), about) for kind in kinds]


def values_of(runs: set[Outcome], instance: Instance, objective: Objective) -> list[Fraction]:
    """All values that runs have, in nanoseconds or a share; the largest last."""
    found = {value(run, objective.kind, objective.clusters) for run in runs}
    scale = instance.tick_ns if objective.kind.is_time else 1
    return sorted(each * scale for each in found if each is not None)


def disagreements(
    instance: Instance,
    runs: set[Outcome],
    objective: Objective,
    provers: Sequence[type[Timeline | Sweep | Events]] = PROVERS,
) -> list[str]:
    """What each prover that takes the question says otherwise.

    It must find a run above the largest value but one, so with the largest, and none above that.
    """
    said: list[str] = []
    *others, want = [ANY, *values_of(runs, instance, objective)]
    computed = at_most(instance, objective)
    if computed is not None:
        if computed < want:
            said.append(f"bound, {objective.kind}: {computed}, and a run has {want}")
        elif objective.kind in AT_EVERY_TIME:
            said += _worse_later(instance, objective, computed, "bound")
    for prover in provers:
        if prover.takes(instance, objective) is not None:
            continue
        asked = prover(instance, objective)
        deadline = time.monotonic() + PATIENCE_S
        if others:
            found = asked.exists(others[-1], deadline)
            if isinstance(found, NoRun):
                said.append(f"{prover.name}, {objective.kind}: nothing above {others[-1]}")
            else:
                said += _unconfirmed(instance, objective, others[-1], found, prover.name)
        more = asked.exists(want, deadline)
        if not isinstance(more, NoRun):
            said.append(f"{prover.name}, {objective.kind}: above {want}, by {more}")
        elif more.forever and objective.kind in AT_EVERY_TIME:
            said += _worse_later(instance, objective, want, prover.name)
    return said


def _worse_later(instance: Instance, objective: Objective, proved: Fraction, who: str) -> list[str]:
    """What a longer run says of a proof for ever; nothing where there are too many of them."""
    slowest = max(sender.interval + sender.jitter for sender in instance.senders)
    longer = replace(instance, horizon=instance.horizon + slowest + instance.service)
    try:
        *_, found = [ANY, *values_of(outcomes(longer, MOST_LONGER), longer, objective)]
    except TooManyError:
        return []
    if found <= proved:
        return []
    return [f"{who}, {objective.kind}: {proved} for ever, and {found} by {longer.horizon}"]


def _unconfirmed(
    instance: Instance, objective: Objective, above: Fraction, found: Schedule, who: str
) -> list[str]:
    try:
        confirm(instance, objective, above, found, who)
    except DisagreementError as error:
        return [f"{who}, {objective.kind}: {error}"]
    return []


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
