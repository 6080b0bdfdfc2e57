"""Every run of a small instance, one after the other: slow, and from docs/design/010 alone.

No code is shared with the provers or the engine but the form of an instance. A run is followed tick
by tick; wherever something is open (which updates are late or held back, which of two events of a
tick comes first) all ways are followed. States that are equal in all that can still matter, and in
their deliveries so far, are followed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, product

from olaf.verify.instance import Hears, Instance, Kind, Ties

Moment = int
"""Where in its tick an event is, a real number that only comparisons tell of. One for each worker
without lateness (its phase), one for each late arrival, and the two below."""
BEGIN, END = -1, -2
"""The moments at which the observation begins and ends."""


class Moments:
    """What is known of the order of moments: a set of facts with all that follows from it."""

    def __init__(self, facts: frozenset[tuple[Moment, Moment, bool]] = frozenset()) -> None:
        self.facts = facts
        """(a, b, strictly): a <= b, or a < b."""

    def __hash__(self) -> int:
        return hash(self.facts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Moments) and self.facts == other.facts

    def with_fact(self, a: Moment, b: Moment, strictly: bool) -> Moments | None:
        """These and one more; None where it contradicts them."""
        if a == b:
            return None if strictly else self
        into = [(a, False), *((x, strict) for x, y, strict in self.facts if y == a)]
        out = [(b, False), *((y, strict) for x, y, strict in self.facts if x == b)]
        known = {(x, y): strict for x, y, strict in self.facts}
        for (x, s1), (y, s2) in product(into, out):
            strict = strictly or s1 or s2
            if x == y:
                if strict:
                    return None
                continue
            known[x, y] = known.get((x, y), False) or strict
        return Moments(frozenset((x, y, strict) for (x, y), strict in known.items()))

    def forget(self, kept: set[Moment]) -> Moments:
        """Without moments that no later event is compared with."""
        return Moments(frozenset(f for f in self.facts if f[0] in kept and f[1] in kept))


@dataclass(frozen=True)
class Open:
    """An update in the queue."""

    cluster: int
    newest: int
    parts: frozenset[int]


@dataclass(frozen=True)
class State:
    """A run so far."""

    moments: Moments
    due: tuple[int | None, ...]
    """Of each worker: when the update was due that is still to come; None: none is."""
    queue: tuple[Open, ...] = ()
    wire: Open | None = None
    """What the link sends, locked."""
    wire_start: int = 0
    wire_moment: Moment = 0
    """That of the arrival that began the busy period."""
    heard: tuple[tuple[int, ...], ...] = ()
    """Of each worker: when answers reach or reached it."""
    choices: tuple[tuple[bool, ...], ...] = ()
    """Of each worker: of its last ready updates, whether they were sent."""
    delivered: tuple[tuple[tuple[int, int], ...], ...] = ()
    """Of each cluster: (end, newest content)."""
    sent: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What an objective looks at, in ticks."""

    horizon: int
    delivered: tuple[tuple[tuple[int, int], ...], ...]
    sent: tuple[int, ...]
    dropped: tuple[int, ...]
    counts: bool
    """Whether all its updates are ready by the horizon, wherever in their ticks they are."""


class TooManyError(Exception):
    """The instance has more runs than are followed."""


def outcomes(instance: Instance, most_states: int = 200_000) -> set[Outcome]:
    """What the runs of an instance come to, every one of them. Raises TooManyError."""
    found: set[Outcome] = set()
    continuous = instance.ties is Ties.CONTINUOUS
    # A real phase just below the interval is on ticks the interval itself, a moment early.
    beyond = 1 if continuous else 0
    states = 0
    for phases in product(*(range(s.interval + beyond) for s in instance.senders)):
        layer = _first_states(instance, phases)
        for tick in range(instance.horizon + 1):
            layer = {after for state in layer for after in _tick(instance, phases, tick, state)}
            states += len(layer)
            if states > most_states:
                raise TooManyError
        # Times just up to a tick: none of them is just after the horizon.
        counts = not continuous or 0 not in phases
        found |= {Outcome(instance.horizon, s.delivered, s.sent, s.dropped, counts) for s in layer}
    return found


def _first_states(instance: Instance, phases: tuple[int, ...]) -> set[State]:
    moments: Moments | None = Moments()
    if instance.ties is Ties.CONTINUOUS:
        moments = Moments().with_fact(BEGIN, END, strictly=False)
        for worker, phase in enumerate(phases):
            assert moments is not None
            if phase == 0:
                moments = moments.with_fact(BEGIN, worker, strictly=False)
            elif phase == instance.senders[worker].interval:
                moments = moments.with_fact(worker, BEGIN, strictly=True)
    assert moments is not None
    workers, clusters = len(instance.senders), len(instance.clusters)
    return {
        State(
            moments,
            due=(None,) * workers,
            heard=((),) * workers,
            choices=((),) * workers,
            delivered=((),) * clusters,
            sent=(0,) * clusters,
            dropped=(0,) * clusters,
        )
    }


def _tick(instance: Instance, phases: tuple[int, ...], tick: int, state: State) -> Iterator[State]:
    """All ways in which a tick can go."""
    due = list(state.due)
    for worker, sender in enumerate(instance.senders):
        if tick >= phases[worker] and (tick - phases[worker]) % sender.interval == 0:
            assert due[worker] is None, "an update overtakes the one before"
            due[worker] = tick
    events: tuple[int | str, ...] = ()
    if state.wire is not None and state.wire_start + instance.service == tick:
        events = (*events, "departure")
    if tick == instance.horizon:
        events = (*events, "end")
    ways = [
        _may_come(sender.jitter, at, tick) for sender, at in zip(instance.senders, due, strict=True)
    ]
    for comes in product(*ways):
        arrivals = tuple(w for w, c in enumerate(comes) if c)
        moments = _lateness(instance, tick, due, arrivals, state.moments)
        if moments is None:
            continue
        left = tuple(None if comes[w] else due[w] for w in range(len(due)))
        begun = replace(state, moments=moments, due=left)
        for after in _orders(instance, tick, begun, (*arrivals, *events), None):
            yield _without_the_past(instance, tick, after)


def _may_come(jitter: int, due: int | None, tick: int) -> tuple[bool, ...]:
    """Whether an update that is due comes now, as far as that is open."""
    if due is None:
        return (False,)
    return (True,) if tick == due + jitter else (True, False)


def _lateness(
    instance: Instance, tick: int, due: list[int | None], arrivals: tuple[int, ...], known: Moments
) -> Moments | None:
    """What is known of moments with these arrivals; None where they cannot be.

    An update that is not late at all, in ticks, has a moment not before its phase's, and one as
    late as can be not after it.
    """
    if instance.ties is Ties.GRID:
        return known
    moments: Moments | None = known
    for worker in arrivals:
        jitter, own = instance.senders[worker].jitter, _moment(instance, worker, tick)
        if moments is not None and jitter and due[worker] == tick:
            moments = moments.with_fact(worker, own, strictly=False)
        if moments is not None and jitter and due[worker] == tick - jitter:
            moments = moments.with_fact(own, worker, strictly=False)
    return moments


def _orders(
    instance: Instance,
    tick: int,
    state: State,
    events: tuple[int | str, ...],
    last: tuple[Moment, bool] | None,
) -> Iterator[State]:
    """All orders of the events that are left of a tick.

    last: the moment of the event before, and whether it was an arrival.
    """
    if not events:
        yield state
    for event in events:
        rest = tuple(e for e in events if e != event)
        moments = _if_next(instance, tick, state, event, rest=rest, last=last)
        if moments is None:
            continue
        now, moment = replace(state, moments=moments), _event_moment(instance, tick, state, event)
        if event == "end":
            if _past_the_end(instance, tick, now, rest):
                yield now
        elif event == "departure":
            after = _next_service(instance, tick, _deliver(instance, tick, now))
            yield from _orders(instance, tick, after, rest, (moment, False))
        else:
            for after in _ready(instance, tick, int(event), moment, now):
                yield from _orders(instance, tick, after, rest, (moment, True))


def _if_next(
    instance: Instance,
    tick: int,
    state: State,
    event: int | str,
    *,
    rest: tuple[int | str, ...],
    last: tuple[Moment, bool] | None,
) -> Moments | None:
    """What is known of moments with this event the next of its tick; None where it cannot be."""
    if instance.ties is Ties.GRID:
        # A departure first, then the arrivals in any order, then the observation ends.
        is_late = "departure" in rest or (event == "end" and bool(rest))
        return None if is_late else state.moments
    if last is None:
        return state.moments
    moment = _event_moment(instance, tick, state, event)
    # A departure and an arrival of the worker that began its busy period may coincide: the
    # departure is first. No others do, but by chance.
    coincide = moment == last[0] and not last[1]
    return state.moments.with_fact(last[0], moment, event != "end" and not coincide)


def _past_the_end(instance: Instance, tick: int, state: State, rest: tuple[int | str, ...]) -> bool:
    """Whether all of these can be after the moment at which the observation ends."""
    moments: Moments | None = state.moments
    for event in rest:
        if moments is not None:
            moments = moments.with_fact(END, _event_moment(instance, tick, state, event), True)
    return moments is not None


def _event_moment(instance: Instance, tick: int, state: State, event: int | str) -> Moment:
    if event == "end":
        return END
    return state.wire_moment if event == "departure" else _moment(instance, int(event), tick)


def _moment(instance: Instance, worker: int, tick: int) -> Moment:
    """That of a worker's arrival: its phase's, or one of its own where it may be late."""
    return worker if instance.senders[worker].jitter == 0 else (worker + 1) * 1000 + tick


def _ready(
    instance: Instance, tick: int, worker: int, moment: Moment, state: State
) -> Iterator[State]:
    """An update is ready: it is sent, or held back where that is allowed."""
    control = instance.control
    if control is None:
        yield _arrive(instance, tick, worker, moment, state)
        return
    for sent in (True, False):
        choices = (*state.choices[worker], sent)[-control.window :]
        full = len(choices) == control.window
        if full and sum(choices) < control.at_least:
            continue
        silent, fresh = _what_it_heard(instance, tick, worker, state)
        if (not sent and silent) or (sent and fresh and sum(choices) > control.at_most):
            continue
        chosen = list(state.choices)
        chosen[worker] = choices
        now = replace(state, choices=tuple(chosen))
        yield _arrive(instance, tick, worker, moment, now) if sent else now


def _what_it_heard(instance: Instance, tick: int, worker: int, state: State) -> tuple[bool, bool]:
    """Whether it is sure that its last answer is more than ``forced`` old or that it has none, and
    whether it is sure that it is at most ``threshold`` old."""
    control = instance.control
    assert control is not None
    silent, fresh = True, False
    for heard in state.heard[worker]:
        age = tick - heard
        # Without delay, what left before it in this very tick is among the answers, and no more.
        on_its_tick = instance.ties is Ties.GRID or instance.answer_delay == 0
        is_heard = age > 0 or (age == 0 and on_its_tick)
        is_fresh = age <= control.threshold - (instance.ties is Ties.CONTINUOUS)
        fresh = fresh or (is_heard and is_fresh)
        silent = silent and not (0 <= age <= control.forced)
    return silent, fresh


def _arrive(instance: Instance, tick: int, worker: int, moment: Moment, state: State) -> State:
    cluster = instance.senders[worker].cluster
    state = replace(state, sent=_more(state.sent, cluster))
    for place, update in enumerate(state.queue):
        if update.cluster == cluster:
            joined = Open(cluster, tick, update.parts | {worker})
            queue = (*state.queue[:place], joined, *state.queue[place + 1 :])
            return replace(state, queue=queue)
    if len(state.queue) + (state.wire is not None) >= instance.slots:
        return replace(state, dropped=_more(state.dropped, cluster))
    update = Open(cluster, tick, frozenset({worker}))
    if state.wire is None:
        return replace(state, wire=update, wire_start=tick, wire_moment=moment)
    return replace(state, queue=(*state.queue, update))


def _deliver(instance: Instance, tick: int, state: State) -> State:
    update = state.wire
    assert update is not None
    delivered = list(state.delivered)
    delivered[update.cluster] += ((tick, update.newest),)
    heard = list(state.heard)
    if instance.control is not None:
        for worker, sender in enumerate(instance.senders):
            of_cluster = instance.hears is Hears.CLUSTER and sender.cluster == update.cluster
            if of_cluster or worker in update.parts:
                heard[worker] += (tick + instance.answer_delay,)
    return replace(state, wire=None, delivered=tuple(delivered), heard=tuple(heard))


def _next_service(instance: Instance, tick: int, state: State) -> State:
    if not state.queue:
        return state
    first, *others = state.queue
    return replace(state, queue=tuple(others), wire=first, wire_start=tick)


def _without_the_past(instance: Instance, tick: int, state: State) -> State:
    """Forget what can no longer matter, so that equal states are equal."""
    control = instance.control
    if control is not None:
        oldest = tick - max(control.forced, control.threshold)
        heard = tuple(tuple(h for h in each if h > oldest) for each in state.heard)
        keep = control.window - 1
        choices = tuple(each[max(len(each) - keep, 0) :] for each in state.choices)
        state = replace(state, heard=heard, choices=choices)
    if state.wire is None:
        state = replace(state, wire_start=0, wire_moment=0)
    kept = {BEGIN, END, *range(len(instance.senders)), state.wire_moment}
    return replace(state, moments=state.moments.forget(kept))


def _more(counts: tuple[int, ...], which: int) -> tuple[int, ...]:
    return tuple(count + (i == which) for i, count in enumerate(counts))


def value(run: Outcome, kind: Kind, about: tuple[int, ...]) -> Fraction | None:
    """What an objective bounds, in one run, in ticks or a share."""
    delivered = [run.delivered[c] for c in about]
    match kind:
        case Kind.FAIR_PEAK:
            return _apart([_mean(_peaks(each)) for each in delivered])
        case Kind.FAIR_AGE:
            return _apart([_average_age(each, run.horizon) for each in delivered])
        case Kind.WORST_PEAK:
            ages = [age for each in delivered for age in _peaks(each)]
            ages += [run.horizon - each[-1][1] for each in delivered if each]
            return Fraction(max(ages)) if ages else None
        case Kind.STARVATION:
            times = [(0, *(end for end, _ in each), run.horizon) for each in delivered]
            return Fraction(max(b - a for each in times for a, b in pairwise(each)))
        case Kind.LOSS:
            sent, lost = (sum(counts[c] for c in about) for counts in (run.sent, run.dropped))
            return Fraction(lost, sent) if sent and run.counts else None
        case Kind.NO_AVERAGE:
            return Fraction(sum(len(each) < 2 for each in delivered))


def _peaks(delivered: tuple[tuple[int, int], ...]) -> list[int]:
    return [end - newest for (_, newest), (end, _) in pairwise(delivered)]


def _mean(ages: list[int]) -> Fraction | None:
    return Fraction(sum(ages), len(ages)) if ages else None


def _average_age(delivered: tuple[tuple[int, int], ...], horizon: int) -> Fraction | None:
    """By adding up, for each tick from the first delivery on, the age in its middle."""
    if not delivered or delivered[0][0] >= horizon:
        return None
    total = Fraction(0)
    for tick in range(delivered[0][0], horizon):
        newest = [content for end, content in delivered if end <= tick][-1]
        total += tick - newest + Fraction(1, 2)
    return total / (horizon - delivered[0][0])


def _apart(means: list[Fraction | None]) -> Fraction | None:
    known = [mean for mean in means if mean is not None]
    return max((abs(a - b) for a, b in combinations(known, 2)), default=None)
