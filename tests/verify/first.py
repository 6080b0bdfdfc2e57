"""Which prover answers first: each prover alone, on one thread, timed by its processor time.

    python tests/verify/first.py SECONDS [SEED]

draws random instances and asks each question twice: for a run above the largest value (the answer
is a proof), and for a run with the largest value (the answer is that run). Prints, per family of
instances, how often each prover was the fastest. `docs/design/010-verifier.md` has the result.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from random import Random

from crosscheck import ANY, PATIENCE_S, PROVERS, questions
from instances import draw

from olaf.verify.events import Events
from olaf.verify.instance import Instance, Objective
from olaf.verify.prover import NoRun, UndecidedError
from olaf.verify.sweep import Sweep
from olaf.verify.timeline import Timeline
from olaf.verify.witness import confirm

Entrant = type[Timeline | Sweep | Events]


def took_s(
    prover: Entrant, instance: Instance, objective: Objective, above: Fraction
) -> float | None:
    """Processor time to an answer, from nothing; None where the prover has none."""
    if prover.takes(instance, objective) is not None:
        return None
    begin = time.process_time()
    try:
        prover(instance, objective).exists(above, time.monotonic() + PATIENCE_S)
    except UndecidedError:
        return None
    return time.process_time() - begin


def edges(instance: Instance, objective: Objective) -> Iterator[tuple[str, Fraction]]:
    """Two questions: no run is above the largest value, and one is above the value found before."""
    prover = next(each for each in PROVERS if each.takes(instance, objective) is None)
    asked, above, before = prover(instance, objective), ANY, ANY
    while True:
        run = asked.exists(above, time.monotonic() + PATIENCE_S)
        if isinstance(run, NoRun):
            break
        before, above = above, confirm(instance, objective, above, run, prover.name).value
    yield "proof", above
    if above != before:
        yield "run", before


def family(instance: Instance) -> str:
    """What decides which provers take it."""
    jitter = any(sender.jitter for sender in instance.senders)
    control = instance.control is not None
    parts = [name for name, there in (("jitter", jitter), ("control", control)) if there]
    return " and ".join(parts) or "phases only"


def main(seconds: float, seed: int) -> int:
    """Draw and time until the time is up."""
    wins: Counter[tuple[str, str]] = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        instance = draw(Random(seed), longest=24, most_workers=6)
        seed += 1
        for objective in questions(instance):
            for what, above in edges(instance, objective):
                times = {
                    prover.name: took_s(prover, instance, objective, above) for prover in PROVERS
                }
                known = {name: spent for name, spent in times.items() if spent is not None}
                group = f"{family(instance)}, {objective.kind}, {what}"
                wins[group, min(known, key=known.__getitem__)] += 1
    names = [prover.name for prover in PROVERS]
    print(f"seeds up to {seed - 1}; columns: {', '.join(names)}")
    for group in sorted({group for group, _ in wins}):
        print(f"{group:48s}", *(f"{wins[group, name]:6d}" for name in names))
    return 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1))
