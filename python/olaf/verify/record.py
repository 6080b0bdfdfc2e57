"""A verdict as JSON; ``docs/reference/verify.md`` has the schema."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from olaf.verify.instance import Instance, Kind
from olaf.verify.schedule import longest_gap, mean_age, mean_peak, on_ticks, peaks
from olaf.verify.verdict import Answer, Verdict, Witness
from olaf.verify.words import assumed, claim, edge, found

SCHEMA = 1
"""Incremented when a key changes its meaning or is removed."""


def record_of(spec: str, verdicts: list[Verdict], answer: Answer) -> dict[str, Any]:
    """The output of ``olaf verify --json``."""
    said = [line for v in verdicts for line in assumed(v.instance, v.objective)]
    return {
        "schema": SCHEMA,
        "spec": spec,
        "answer": answer,
        "model": model_of(verdicts[0].instance) if verdicts else None,
        "assumed": list(dict.fromkeys(said)),
        "verdicts": [verdict_record(verdict) for verdict in verdicts],
    }


def model_of(instance: Instance) -> dict[str, Any]:
    """The integer model: times in milliseconds."""
    control = instance.control
    clusters = [
        {
            "name": name,
            "workers": len(instance.senders_of(index)),
            "interval_ms": _ticks(instance, instance.senders[_first(instance, index)].interval),
            "jitter_ms": _ticks(instance, instance.senders[_first(instance, index)].jitter),
        }
        for index, name in enumerate(instance.clusters)
    ]
    return {
        "tick_ms": _ticks(instance, 1),
        "service_ms": _ticks(instance, instance.service),
        "slots": instance.slots,
        "horizon_ms": _ticks(instance, instance.horizon),
        "ties": instance.ties,
        "answer_delay_ms": _ticks(instance, instance.answer_delay),
        "hears": instance.hears,
        "clusters": clusters,
        "quota": None
        if control is None
        else {
            "window": control.window,
            "at_least": control.at_least,
            "at_most": control.at_most,
            "threshold_ms": _ticks(instance, control.threshold),
            "forced_ms": _ticks(instance, control.forced),
        },
    }


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """One element of ``verdicts``."""
    kind, witness = verdict.objective.kind, verdict.witness
    names = verdict.instance.clusters
    counted = verdict.clause is not None
    return {
        "kind": kind,
        "clusters": [names[cluster] for cluster in verdict.objective.clusters],
        "claim": claim(verdict.instance, verdict.objective),
        "answer": verdict.answer,
        "forever": verdict.forever,
        "reason": verdict.reason,
        "clause": verdict.clause,
        "unit": "ms" if kind.is_time else "share",
        "limit": _value(kind, verdict.objective.limit),
        "value": None if witness is None or counted else _value(kind, witness.value),
        "at_most": None if verdict.at_most is None else _value(kind, verdict.at_most),
        "at_most_forever": verdict.edge_forever,
        "tight": verdict.tight,
        "edge": edge(verdict),
        "found": found(verdict),
        "prover": verdict.prover,
        "seconds": round(verdict.seconds, 6),
        "cpu_seconds": round(verdict.cpu_seconds, 6),
        "edge_seconds": round(verdict.edge_seconds, 6),
        "run": None if witness is None else _run(verdict, witness),
    }


def _run(verdict: Verdict, witness: Witness) -> dict[str, Any]:
    instance = verdict.instance
    run = on_ticks(instance, witness.run)
    pair = None if witness.pair is None else [instance.clusters[c] for c in witness.pair]
    sends = [
        {
            "t_ns": send.tick * instance.tick_ns + send.offset_ns,
            "cluster": instance.clusters[instance.senders[send.sender].cluster],
            "worker": f"w{send.sender}",
        }
        for send in witness.schedule.sends
    ]
    return {
        "horizon_ms": run.horizon_ns / 1e6,
        "pair": pair,
        "clusters": [
            {
                "name": name,
                "sent": run.sent[cluster],
                "dropped": run.dropped[cluster],
                "mean_peak_ms": _ms(mean_peak(run, cluster)),
                "mean_age_ms": _ms(mean_age(run, cluster)),
                "worst_ms": _ms(max(peaks(run, cluster, last=True), default=None)),
                "longest_gap_ms": _ms(longest_gap(run, cluster)),
                "deliveries": [
                    {
                        "start_ms": each.start_ns / 1e6,
                        "end_ms": each.end_ns / 1e6,
                        "newest_ms": each.newest_ns / 1e6,
                    }
                    for each in run.deliveries[cluster]
                ],
            }
            for cluster, name in enumerate(instance.clusters)
        ],
        "sends": sends,
        "held": len(witness.schedule.held),
    }


def _first(instance: Instance, cluster: int) -> int:
    return instance.senders_of(cluster)[0]


def _ticks(instance: Instance, ticks: int) -> float:
    return ticks * instance.tick_ns / 1e6


def _value(kind: Kind, value: Fraction) -> float:
    return float(value) / 1e6 if kind.is_time else float(value)


def _ms(value_ns: Fraction | int | None) -> float | None:
    return None if value_ns is None else float(value_ns) / 1e6
