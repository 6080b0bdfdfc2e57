"""Proves that clusters can share a queue and stay fresh, or shows a run in which they do not.

The library behind ``olaf verify`` and ``olaf admit``::

    from pathlib import Path
    from olaf.verify import instance_of, objective_of, read, verify

    spec = read(Path("examples/verify/paper-100-300.toml"))
    instance = instance_of(spec)
    for each in spec.objective:
        verdict = verify(instance, objective_of(each, spec, instance), timeout_s=10)
        print(verdict.answer, verdict.at_most, verdict.witness)

The variables, with unit and symbol of the paper (OLAF §6, Table 4; "-": the paper has none):

==============================  ===========  =====================================================
variable                        unit         symbol and meaning
==============================  ===========  =====================================================
`Instance.clusters`             names        F, their number
`Instance.service`              ticks        p/C, time of an update on the link
`Instance.slots`                updates      Qmax, including the update on the wire
`Instance.tick_ns`              ns           -, unit of all other times
`Instance.horizon`              ticks        -, bounds k: deliveries up to then count
`Sender.interval`               ticks        -, T: time between two updates of a worker
`Sender.jitter`                 ticks        -, J: largest lateness of an update
`Send.tick`, ``offset_ns``      ticks, ns    A(n), an arrival and the update's generation
`Delivery.start_ns`             ns           A + T_Q: end of the wait, begin of the service
`Delivery.end_ns`               ns           D(n), the departure; D_u(k) for delivery k of u
`Delivery.newest_ns`            ns           g_u(k): A of the newest contribution in delivery k
`peaks()`                       ns           Delta_p(k): ages just before deliveries
`Run.sent`, `Run.dropped`       updates      -
`Control.threshold`             ticks        Delta_T: an answer is fresh up to this age
`Control.window` and quota      updates      P_s as a quota: provers cannot average chance
`Control.forced`                ticks        -, Delta_T + (1 - Qmax/N)/v: beyond it P_s = 1
`Instance.answer_delay`         ticks        -, R: from a departure to its receivers
`Objective.limit`               ns or share  epsilon, for the fair objectives
==============================  ===========  =====================================================

The formulas, for delivery k = 0, 1 .. of cluster u::

    wait        start_u(k) >= the departure before it, and >= the arrival that took the slot
    departure   D_u(k)     =  start_u(k) + p/C
    content     g_u(k)     =  the newest arrival of u that joined before start_u(k)
    age         age_u(t)   =  t - g_u(k)         from D_u(k) up to D_u(k+1)
    peak        peak_u(k)  =  D_u(k) - g_u(k-1)  for k >= 1
    mean peak   sum of peak_u(k) / their number
    mean age    integral of age_u(t) from D_u(0) to the horizon / its length
    fair_peak   for all u, v: |mean peak_u - mean peak_v| <= epsilon, and both have one
    worst_peak  for all u, k: peak_u(k) <= bound, and age_u(horizon) <= bound
    starvation  no cluster is without a departure for longer, including the time before its first
    loss        arrivals that found the queue full / all arrivals

``docs/design/010-verifier.md`` lists the repairs to the paper's formulation with their reasons.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olaf.verify.admission import Admission, admit
    from olaf.verify.drawing import draw
    from olaf.verify.fitting import Suggestion
    from olaf.verify.instance import Control, Hears, Instance, Kind, Objective, Sender, Ties
    from olaf.verify.portfolio import PROVERS, DisagreementError, Portfolio
    from olaf.verify.prover import NoRun, Prover, UndecidedError
    from olaf.verify.reading import read, read_newcomer
    from olaf.verify.record import verdict_record
    from olaf.verify.schedule import Delivery, Run, Schedule, Send, replay, trace_of, value
    from olaf.verify.spec import ClusterSpec, Spec
    from olaf.verify.ticks import instance_of, objective_of
    from olaf.verify.verdict import Answer, Verdict, Witness
    from olaf.verify.verifying import decide, verify

__all__ = [
    "PROVERS",
    "Admission",
    "Answer",
    "ClusterSpec",
    "Control",
    "Delivery",
    "DisagreementError",
    "Hears",
    "Instance",
    "Kind",
    "NoRun",
    "Objective",
    "Portfolio",
    "Prover",
    "Run",
    "Schedule",
    "Send",
    "Sender",
    "Spec",
    "Suggestion",
    "Ties",
    "UndecidedError",
    "Verdict",
    "Witness",
    "admit",
    "decide",
    "draw",
    "instance_of",
    "objective_of",
    "read",
    "read_newcomer",
    "replay",
    "trace_of",
    "value",
    "verdict_record",
    "verify",
]

_HOMES = {
    "admission": ("Admission", "admit"),
    "drawing": ("draw",),
    "fitting": ("Suggestion",),
    "instance": ("Control", "Hears", "Instance", "Kind", "Objective", "Sender", "Ties"),
    "portfolio": ("PROVERS", "DisagreementError", "Portfolio"),
    "prover": ("NoRun", "Prover", "UndecidedError"),
    "record": ("verdict_record",),
    "schedule": ("Delivery", "Run", "Schedule", "Send", "replay", "trace_of", "value"),
    "spec": ("ClusterSpec", "Spec"),
    "reading": ("read", "read_newcomer"),
    "ticks": ("instance_of", "objective_of"),
    "verdict": ("Answer", "Verdict", "Witness"),
    "verifying": ("decide", "verify"),
}


def __getattr__(name: str) -> object:
    """Import a name when it is used: each prover's process imports this package too."""
    for home, names in _HOMES.items():
        if name in names:
            found: object = getattr(import_module(f"olaf.verify.{home}"), name)
            globals()[name] = found
            return found
    raise AttributeError(f"module 'olaf.verify' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
