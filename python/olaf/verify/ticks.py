"""Converts a SPEC.toml to whole ticks."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, gcd

from olaf.usage import ConfigurationError
from olaf.verify.instance import Control, Instance, Kind, Objective, Sender, Ties
from olaf.verify.spec import LIMIT_KEYS, ObjectiveSpec, Spec, names_of

MOST_TICKS = 20_000
"""Largest horizon in ticks: far beyond what can be proved, and still refused quickly."""
MOST_SENDERS = 256


def instance_of(spec: Spec) -> Instance:
    """The integer model of a spec. Raises ConfigurationError for an invalid spec."""
    service_us = _service_us(spec)
    delay_us = _us(spec.answers.delay_ms)
    times = [service_us, delay_us]
    for group in spec.cluster:
        times += [_us(group.interval_ms), _us(group.jitter_ms)]
    tick_us = gcd(*times)
    if spec.time.tick_ms is not None:
        asked = _us(spec.time.tick_ms)
        if tick_us % asked:
            raise ConfigurationError(
                f"time.tick_ms {spec.time.tick_ms} does not divide all intervals, jitters, delays "
                f"and the service: {Decimal(tick_us) / 1000} ms or a part of it does"
            )
        tick_us = asked
    senders: list[Sender] = []
    names: list[str] = []
    alike: list[int] = []
    kinds: dict[tuple[int, int, int], int] = {}
    for group in spec.cluster:
        interval, jitter = _us(group.interval_ms) // tick_us, _us(group.jitter_ms) // tick_us
        kind = kinds.setdefault((interval, jitter, group.workers), len(kinds))
        for name in names_of(group):
            senders += [Sender(len(names), interval, jitter)] * group.workers
            names.append(name)
            alike.append(kind)
    if len(senders) > MOST_SENDERS:
        raise ConfigurationError(
            f"{len(senders)} workers: at most {MOST_SENDERS} are possible; lower "
            "cluster.count or cluster.workers"
        )
    horizon = _horizon(spec, tick_us, service_us, senders)
    if horizon > MOST_TICKS:
        raise ConfigurationError(
            f"the horizon is {horizon} ticks of {Decimal(tick_us) / 1000} ms, more than "
            f"{MOST_TICKS}: shorten time.horizon_ms, or round intervals, jitters and the service "
            "so that they have a larger common divisor"
        )
    return Instance(
        tick_ns=tick_us * 1000,
        service=service_us // tick_us,
        slots=spec.queue.slots,
        horizon=horizon,
        clusters=tuple(names),
        alike=tuple(alike),
        senders=tuple(senders),
        ties=Ties(spec.time.ties),
        control=_control(spec, len(names), tick_us),
        answer_delay=delay_us // tick_us,
        hears=spec.answers.to,
    )


def objective_of(spec: ObjectiveSpec, groups: Spec, instance: Instance) -> Objective:
    """An objective in nanoseconds and indices; clusters by name or by their group's name."""
    wanted = set(spec.clusters)
    for group in groups.cluster:
        if group.name in wanted:
            wanted |= set(names_of(group))
    about = tuple(i for i, name in enumerate(instance.clusters) if not wanted or name in wanted)
    if spec.kind in (Kind.FAIR_PEAK, Kind.FAIR_AGE) and len(about) < 2:
        raise ConfigurationError(f"objective {spec.kind}: needs two clusters to compare")
    given = getattr(spec, LIMIT_KEYS[spec.kind])
    if given is None:
        # Starvation over the whole horizon: a gap as long as the horizon already violates it.
        return Objective(spec.kind, Fraction(instance.horizon * instance.tick_ns - 1), about)
    scale = 1_000_000 if spec.kind.is_time else 1
    return Objective(spec.kind, Fraction(given) * scale, about)


def _us(milliseconds: Decimal) -> int:
    return int(milliseconds * 1000)


def _service_us(spec: Spec) -> int:
    queue = spec.queue
    if queue.service_ms is not None:
        return _us(queue.service_ms)
    from olaf import _olaf

    assert queue.rate is not None
    assert queue.bytes is not None
    try:
        rate = _olaf.parse_rate(queue.rate)
    except ValueError as error:
        raise ConfigurationError(f"queue.rate: {error}") from None
    service = Fraction(queue.bytes * 8 * 1_000_000, rate)
    if service.denominator != 1 or service > 1_000_000_000:
        near = float(service) / 1000
        raise ConfigurationError(
            f"queue: {queue.bytes} bytes at {queue.rate} take {near:.6f} ms, which is not a whole "
            f"number of microseconds up to 1000 s: give service_ms = {max(round(near, 3), 0.001)}"
        )
    return int(service)


def _horizon(spec: Spec, tick_us: int, service_us: int, senders: Iterable[Sender]) -> int:
    if spec.time.horizon_ms is not None:
        # Rounded up to a whole tick; the report names the result.
        return ceil(Fraction(_us(spec.time.horizon_ms), tick_us))
    longest = max(sender.interval + sender.jitter for sender in senders)
    # Two deliveries of every cluster: two rounds of a full queue after the slowest's two updates.
    twice = 3 * longest + 2 * spec.queue.slots * (service_us // tick_us)
    # And time to violate the objectives.
    limits = [_us(o.bound_ms or o.within_ms or Decimal(0)) for o in spec.objective]
    return max(6 * longest, twice, *(ceil(Fraction(2 * limit, tick_us)) for limit in limits))


def _control(spec: Spec, clusters: int, tick_us: int) -> Control | None:
    """The quota and the deadline instead of P_s, in the congestion regime N > Qmax."""
    share = Fraction(spec.queue.slots, clusters)
    if spec.control.kind == "off" or share >= 1:
        return None
    threshold_s = Fraction(spec.control.threshold_ms) / 1000
    match spec.control.slope:
        case "urgency":
            slope = 1 / threshold_s
        case "fairness":
            # differs: the paper sets v to a time where a probability per time is needed; we use its
            # number of seconds, per second (docs/design/009).
            slope = threshold_s
        case number:
            slope = Fraction(number)
    forced_s = threshold_s + (1 - share) / slope
    window = spec.control.window or share.denominator
    tick_s = Fraction(tick_us, 1_000_000)
    # Rounded towards more freedom for the senders, so that proofs also hold for the real ones.
    return Control(
        window=window,
        at_least=floor(share * window),
        at_most=ceil(share * window),
        threshold=floor(threshold_s / tick_s),
        forced=ceil(forced_s / tick_s),
    )
