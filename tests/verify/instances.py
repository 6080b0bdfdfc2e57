"""Small instances: drawn at random, by family, and those that are kept."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

from pydantic import TypeAdapter

from olaf.verify.instance import Control, Hears, Instance, Sender, Ties

TICK_NS = 1_000_000


def draw(
    random: Random,
    *,
    jitter: bool | None = None,
    control: bool | None = None,
    longest: int = 9,
    most_workers: int = 4,
) -> Instance:
    """One instance; what is not asked for is drawn too.

    longest: of the horizons, ticks.
    """
    jitter = random.random() < 0.4 if jitter is None else jitter
    control = random.random() < 0.4 if control is None else control
    clusters = random.choice([1, 2, 2, 3] if not jitter else [1, 2, 2])
    most_workers = min(most_workers, 3 if jitter or control else 4)
    if jitter:
        most_workers -= 1
    workers = [1] * clusters
    while sum(workers) < most_workers and random.random() < 0.35:
        workers[random.randrange(clusters)] += 1
    slowest = 3 if sum(workers) > 2 else 4
    senders: list[Sender] = []
    kinds: dict[tuple[int, int, int], int] = {}
    alike: list[int] = []
    for cluster, count in enumerate(workers):
        interval = random.randint(1 + jitter, slowest)
        late = random.randint(cluster == 0, min(interval - 1, 2)) if jitter else 0
        if cluster and random.random() < 0.4:
            interval, late = senders[0].interval, senders[0].jitter
        senders += [Sender(cluster, interval, late)] * count
        alike.append(kinds.setdefault((interval, late, count), len(kinds)))
    slots = random.randint(1, clusters + 1)
    return Instance(
        tick_ns=TICK_NS,
        service=random.randint(1, 3),
        slots=slots,
        horizon=random.randint(3, min(longest, 7 if jitter or control else 9)),
        clusters=tuple(f"c{c}" for c in range(clusters)),
        alike=tuple(alike),
        senders=tuple(senders),
        ties=random.choice(list(Ties)),
        control=_control(random) if control else None,
        answer_delay=random.choice([0, 0, 1, 2]) if control else 0,
        hears=random.choice(list(Hears)) if control else Hears.SHARED,
    )


def _control(random: Random) -> Control:
    window = random.randint(1, 3)
    at_least = random.randint(0, window - 1)
    at_most = min(window, at_least + random.randint(0, 1)) or 1
    threshold = random.randint(0, 4)
    return Control(window, at_least, at_most, threshold, threshold + random.randint(0, 3))


def kept(file: Path) -> tuple[Instance, str, str | None]:
    """An instance of vectors/verify, a kind, and its largest value in ticks or a share."""
    told = json.loads(file.read_text(encoding="utf-8"))
    instance = TypeAdapter(Instance).validate_python({"tick_ns": TICK_NS, **told["instance"]})
    return instance, told["kind"], told["largest"]


def families(instance: Instance) -> list[str]:
    """What an instance is an example of."""
    of = [str(instance.ties)]
    if any(sender.jitter for sender in instance.senders):
        of.append(f"{instance.ties} with jitter")
    if instance.control is not None:
        of.append(f"control, {instance.hears} hears")
        of.append("answers late" if instance.answer_delay else "answers at once")
    clusters = len(instance.clusters)
    if len(instance.senders) > clusters:
        of.append("clusters of several workers")
    if len(set(instance.alike)) < clusters:
        of.append("clusters alike")
    of.append(f"{clusters} clusters")
    more = instance.slots - clusters
    of.append(f"{instance.slots} slots" if more <= 0 else "a slot more than clusters")
    of.append(f"service {instance.service}")
    return of


def told(counts: Counter[str]) -> str:
    """The counts, a family a line."""
    return "\n".join(f"  {count:6d}  {family}" for family, count in sorted(counts.items()))
