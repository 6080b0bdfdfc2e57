"""Converts a SPEC.toml to whole ticks."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, gcd

from olaf.errors.usage import ConfigurationError
from olaf.verify.instance import Control, Instance, Kind, Objective, Sender, Ties
from olaf.verify.rounding import Exact, Rounded, best, rounded
from olaf.verify.spec import LIMIT_KEYS, ObjectiveSpec, Spec, names_of

MOST_TICKS = 20_000
"""Largest horizon in ticks: far beyond what can be proved, and still refused quickly."""
MOST_SENDERS = 256
MOST_SERVICE_US = 1_000_000_000


def instance_of(spec: Spec) -> Instance:
    """The integer model of a spec. Raises ConfigurationError for an invalid spec.

    Times without a common tick are rounded: see `olaf.verify.rounding`.
    """
    names = [name for group in spec.cluster for name in names_of(group)]
    count = sum(len(names_of(group)) * group.workers for group in spec.cluster)
    if count > MOST_SENDERS:
        raise ConfigurationError(
            f"{count} workers: at most {MOST_SENDERS} are possible; lower "
            "cluster.count or cluster.workers"
        )
    times, said = _exactly(spec), ""
    if times is None:
        times = _rounded(spec)
        said = _said(times)
    senders: list[Sender] = []
    alike: list[int] = []
    kinds: dict[tuple[int, int, int], int] = {}
    for group, (interval, jitter) in zip(spec.cluster, times.senders, strict=True):
        kind = kinds.setdefault((interval, jitter, group.workers), len(kinds))
        for _ in names_of(group):
            senders += [Sender(len(alike), interval, jitter)] * group.workers
            alike.append(kind)
    return Instance(
        tick_ns=times.tick_us * 1000,
        service=times.service,
        slots=spec.queue.slots,
        horizon=times.horizon,
        clusters=tuple(names),
        alike=tuple(alike),
        senders=tuple(senders),
        ties=Ties(spec.time.ties),
        control=_control(spec, len(names), times.tick_us / times.stretch),
        answer_delay=int(_us(spec.answers.delay_ms) * times.stretch) // times.tick_us,
        hears=spec.answers.to,
        rounding=said,
    )


def _exactly(spec: Spec) -> Rounded | None:
    """The times in ticks that divide them; None if there are none, or too many."""
    service_us, delay_us = _service_us(spec), _us(spec.answers.delay_ms)
    if service_us.denominator != 1:
        return None
    kinds = [(_us(group.interval_ms), _us(group.jitter_ms)) for group in spec.cluster]
    tick_us = gcd(int(service_us), delay_us, *(time for kind in kinds for time in kind))
    if spec.time.tick_ms is not None:
        asked = _us(spec.time.tick_ms)
        if tick_us % asked:
            return None
        tick_us = asked
    horizon = ceil(_horizon_us(spec, service_us) / tick_us)
    if horizon > MOST_TICKS:
        return None
    senders = tuple((interval // tick_us, jitter // tick_us) for interval, jitter in kinds)
    exact = tuple(Fraction(0) for _ in kinds)
    return Rounded(tick_us, Fraction(1), int(service_us) // tick_us, horizon, senders, exact)


def _rounded(spec: Spec) -> Rounded:
    service_us, delay_us = _service_us(spec), _us(spec.answers.delay_ms)
    kinds = ((_us(group.interval_ms), _us(group.jitter_ms)) for group in spec.cluster)
    senders = tuple((Fraction(interval), Fraction(jitter)) for interval, jitter in kinds)
    exact = Exact(service_us, _horizon_us(spec, service_us), senders)
    asked = None if spec.time.tick_ms is None else _us(spec.time.tick_ms)
    times = best(exact) if asked is None else rounded(exact, asked)
    no_tick = "no tick divides all intervals, jitters, delays and the service"
    if asked is not None:
        no_tick = f"time.tick_ms {spec.time.tick_ms} divides not all of these times"
    if spec.time.ties is Ties.GRID:
        raise ConfigurationError(
            f"{no_tick}, and with time.ties = grid every event falls on one: change the times"
        )
    if delay_us and spec.control.kind != "off":
        raise ConfigurationError(
            f"{no_tick}, and the delay of answers cannot be rounded safely: change the times, or "
            "leave out answers.delay"
        )
    if times is None:
        raise ConfigurationError(
            f"{no_tick}, and rounded to a coarser one the service would be half as long again, or "
            "an update late by its interval: shorten time.horizon_ms, or choose times with a "
            "larger common divisor"
        )
    if times.horizon > MOST_TICKS:
        raise ConfigurationError(
            f"the horizon is {times.horizon} ticks of {Decimal(times.tick_us) / 1000} ms, more "
            f"than {MOST_TICKS}: shorten time.horizon_ms, or choose a longer time.tick_ms"
        )
    return times


def _said(times: Rounded) -> str:
    """How the times were rounded."""
    tick_ms = float(times.tick_us) / 1000
    added_ms = float(max(times.added)) * tick_ms
    stretched = float(times.stretch - 1) * 100
    return (
        f"the times are rounded to ticks of {tick_ms:.6g} ms: all are {stretched:.3g} % longer, "
        f"and updates may be late by up to {added_ms:.4g} ms more"
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


def _service_us(spec: Spec) -> Fraction:
    queue = spec.queue
    if queue.service_ms is not None:
        return Fraction(_us(queue.service_ms))
    from olaf import _olaf

    assert queue.rate is not None
    assert queue.bytes is not None
    try:
        rate = _olaf.parse_rate(queue.rate)
    except ValueError as error:
        raise ConfigurationError(f"queue.rate: {error}") from None
    service = Fraction(queue.bytes * 8 * 1_000_000, rate)
    if service > MOST_SERVICE_US:
        raise ConfigurationError(
            f"queue: {queue.bytes} bytes at {queue.rate} take {float(service) / 1e6:.6g} s, more "
            f"than {MOST_SERVICE_US // 1_000_000} s"
        )
    return service


def _horizon_us(spec: Spec, service_us: Fraction) -> Fraction:
    if spec.time.horizon_ms is not None:
        # Rounded up to a whole tick; the report names the result.
        return Fraction(_us(spec.time.horizon_ms))
    longest = max(_us(group.interval_ms) + _us(group.jitter_ms) for group in spec.cluster)
    # Two deliveries of every cluster: two rounds of a full queue after the slowest's two updates.
    twice = 3 * longest + 2 * spec.queue.slots * service_us
    # And time to violate the objectives.
    limits = [_us(o.bound_ms or o.within_ms or Decimal(0)) for o in spec.objective]
    return max(Fraction(6 * longest), twice, *(Fraction(2 * limit) for limit in limits))


def _control(spec: Spec, clusters: int, tick_us: Fraction) -> Control | None:
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
    tick_s = tick_us / 1_000_000
    # Rounded towards more freedom for the senders, so that proofs also hold for the real ones.
    return Control(
        window=window,
        at_least=floor(share * window),
        at_most=ceil(share * window),
        threshold=floor(threshold_s / tick_s),
        forced=ceil(forced_s / tick_s),
    )
