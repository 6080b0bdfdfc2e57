"""A verdict in sentences: amounts with units, assumptions, and the answer's range."""

from __future__ import annotations

from fractions import Fraction

from olaf.verify.instance import Hears, Instance, Kind, Objective, Ties
from olaf.verify.verdict import Answer, Verdict

SAYS = {
    Kind.FAIR_PEAK: "mean peak ages of any two clusters differ by at most {}",
    Kind.FAIR_AGE: "mean ages of any two clusters differ by at most {}",
    Kind.WORST_PEAK: "no cluster is ever older than {}",
    Kind.STARVATION: "every cluster delivers at least every {}",
    Kind.LOSS: "at most {} of the updates find the queue full",
    Kind.NO_AVERAGE: "at most {} clusters have no mean",
}
VALUE = {
    Kind.FAIR_PEAK: "mean peaks {} apart",
    Kind.FAIR_AGE: "mean ages {} apart",
    Kind.WORST_PEAK: "an age of {}",
    Kind.STARVATION: "{} without a delivery",
    Kind.LOSS: "a loss of {}",
    Kind.NO_AVERAGE: "{} clusters without a mean",
}


def amount(kind: Kind, value: Fraction) -> str:
    """``33.333 ms`` or ``5 %``; a few digits if it is not whole."""
    if kind is Kind.NO_AVERAGE:
        return str(value)
    if kind is Kind.LOSS:
        return f"{_number(value * 100)} %"
    return f"{_number(value / 1_000_000)} ms"


def _number(value: Fraction) -> str:
    if value.denominator == 1:
        return str(value.numerator)
    text = f"{float(value):.6f}".rstrip("0").rstrip(".")
    return text if "." in text and Fraction(text) == value else f"{float(value):.3f}"


def claim(instance: Instance, objective: Objective) -> str:
    """The claim of the objective."""
    text = SAYS[objective.kind].format(amount(objective.kind, objective.limit))
    if objective.kind is Kind.STARVATION and objective.limit == _ns(instance, instance.horizon) - 1:
        text = f"every cluster delivers within the {_ms(instance, instance.horizon)} observed"
    if len(objective.clusters) == len(instance.clusters):
        return text
    return f"{text} (of {', '.join(instance.clusters[c] for c in objective.clusters)})"


def reach(verdict: Verdict) -> str:
    """The times for which the answer holds. A mean for ever is a limit: it may differ at some time
    in between."""
    horizon = amount(Kind.WORST_PEAK, _ns(verdict.instance, verdict.instance.horizon))
    if not verdict.forever:
        return f"up to {horizon}"
    return f"up to {horizon} and in the long run" if is_mean(verdict) else "for ever"


def is_mean(verdict: Verdict) -> bool:
    """Whether its value is a mean over all the time: it may rise and fall with the horizon."""
    return verdict.objective.kind in (Kind.FAIR_PEAK, Kind.FAIR_AGE, Kind.LOSS)


def found(verdict: Verdict) -> str:
    """The value in the verdict's run."""
    witness, kind = verdict.witness, verdict.objective.kind
    if witness is None:
        return "no run was found"
    if verdict.clause is not None:
        return verdict.reason
    value = VALUE[kind].format(amount(kind, witness.value))
    if witness.pair is None:
        return value
    names = [verdict.instance.clusters[cluster] for cluster in dict.fromkeys(witness.pair)]
    return f"{value}, {' and '.join(names)}"


def edge(verdict: Verdict) -> str:
    """The smallest limit that holds, or the interval that contains it."""
    kind, most = verdict.objective.kind, verdict.at_most
    best = None if verdict.witness is None else verdict.witness.value
    if verdict.clause is not None or (verdict.answer is Answer.VIOLATED and most is None):
        return ""
    where = (
        ""
        if most is None or verdict.edge_forever == verdict.forever
        else " up to the horizon"
        if not verdict.edge_forever
        else " in the long run too"
        if is_mean(verdict)
        else " for ever"
    )
    if verdict.tight and most is not None:
        return f"{amount(kind, most)} is the smallest limit that holds{where}: a run reaches it"
    known = []
    if most is not None:
        known.append(f"proved is {amount(kind, most)}{where}")
    if best is not None:
        known.append(f"a run reaches {amount(kind, best)}")
    return "; ".join(known)


def explained(verdict: Verdict) -> list[str]:
    """The prover, the range of the answer, and the closest run."""
    took = f"{verdict.seconds:.2f} s ({verdict.cpu_seconds:.2f} s CPU)"
    match verdict.answer:
        case Answer.HOLDS:
            lines = [f"proved {reach(verdict)} by {verdict.prover} in {took}", edge(verdict)]
        case Answer.VIOLATED:
            ends = (
                ""
                if verdict.witness is None
                else (f" up to {amount(Kind.WORST_PEAK, Fraction(verdict.witness.run.horizon_ns))}")
            )
            lines = [
                f"{found(verdict)}, in a run{ends} that {verdict.prover} found in {took}",
                edge(verdict),
            ]
            if verdict.instance.rounding:
                lines.append("the times are rounded: with exact times it may hold")
        case Answer.UNDECIDED:
            lines = [f"{verdict.reason}; after {took}", edge(verdict)]
    return [line for line in lines if line]


def assumed(instance: Instance, objective: Objective) -> list[str]:
    """The assumptions of the answer."""
    queue = (
        f"one OLAF queue of {_count(instance.slots, 'slot')}, including the update on the wire; "
        f"the link takes {_ms(instance, instance.service)} for an update; the gate is off"
    )
    late = any(sender.jitter for sender in instance.senders)
    phases = "workers start at any phase" + (
        ", and each update may be late by up to its jitter" if late else ""
    )
    if instance.ties is Ties.CONTINUOUS and objective.kind is Kind.FAIR_AGE:
        ties = "phases and lateness in whole ticks; events of one tick in every order of real times"
    elif instance.ties is Ties.CONTINUOUS:
        ties = (
            "times are real numbers, no two workers are in step to the instant "
            '(time.ties = "grid" covers that case)'
        )
    else:
        ties = "every event on its tick; a departure before an arrival at its end"
    said = [
        queue,
        f"{phases}; {ties}; a tick is {_ms(instance, 1)}",
        f"all {_count(len(instance.clusters), 'cluster')} active from the start, the queue empty; "
        f"observed for {_ms(instance, instance.horizon)}",
        _control(instance),
    ]
    return [each for each in (*said, instance.rounding, _counts(objective.kind)) if each]


def _control(instance: Instance) -> str:
    control = instance.control
    if control is None:
        if len(instance.clusters) <= instance.slots:
            return "every update is sent: a slot for every cluster (N <= Qmax), so that P_s = 1"
        return "every update is sent: there is no transmission control"
    who = "each contributor" if instance.hears is Hears.SHARED else "the whole cluster"
    return (
        f"P_s is modelled as a quota: of {control.window} updates in a row a worker sends at least "
        f"{control.at_least}, and at most {control.at_most} while its last answer is at most "
        f"{_ms(instance, control.threshold)} old; without an answer for more than "
        f"{_ms(instance, control.forced)} it always sends (P_s = 1); an update that is not sent "
        f"is carried or discarded, not retried between updates; N is the number of all clusters; "
        f"{who} receives the answer {_ms(instance, instance.answer_delay)} after the departure; "
        "another window may have another answer: try two or three (control.window)"
    )


def _counts(kind: Kind) -> str:
    match kind:
        case Kind.FAIR_PEAK:
            return (
                "a peak is the age just before a delivery; means are of the peaks from the "
                "cluster's first delivery to the horizon, and a cluster that delivers fewer than "
                "two times violates it"
            )
        case Kind.FAIR_AGE:
            return (
                "means are over the time from the cluster's first delivery to the horizon; a "
                "cluster that delivers fewer than two times violates it"
            )
        case Kind.WORST_PEAK:
            return "ages count from the cluster's first delivery, including the age at the horizon"
        case Kind.STARVATION:
            return "the time before the first delivery and after the last counts too"
        case Kind.LOSS:
            return (
                "of the updates that all these clusters send up to the horizon, without those just "
                "after it"
            )
    return ""


def _ns(instance: Instance, ticks: int) -> Fraction:
    return Fraction(ticks * instance.tick_ns)


def _ms(instance: Instance, ticks: int) -> str:
    return amount(Kind.WORST_PEAK, _ns(instance, ticks))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
