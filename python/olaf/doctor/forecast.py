"""The prediction as a section of the report."""

from __future__ import annotations

from dataclasses import asdict

from olaf.doctor.finding import Section
from olaf.doctor.prediction import Job, predict
from olaf.values import numbers


def forecast(job: Job, *, is_measured: bool = True) -> Section:
    """What aggregation gains for this job. A gain of nothing is an answer, and nothing to fix.

    is_measured: whether somebody was asked for the round trip; otherwise it counts as 0.
    """
    section = Section(
        f"{numbers.counted(job.workers, 'worker')}, "
        f"a model of {_size(job.model_bytes)}, "
        f"{numbers.duration(job.compute_s)} of computation a step"
    )
    found = predict(job)
    section.measured.update(asdict(job))
    section.measured.update(asdict(found))
    step = found.step
    section.note(
        "links",
        f"worker {numbers.rate(job.link_bps / 8)}, switch {numbers.rate(job.switch_bps / 8)}, "
        f"uplink {numbers.rate(job.uplink_bps / 8)}, "
        f"round trip {numbers.duration(job.round_trip_s)}"
        + ("" if is_measured else " (not measured: name --switch)"),
    )
    section.note(
        "a step",
        f"{numbers.duration(step.switch_s)} with a switch that sums, "
        f"{numbers.duration(step.ring_s)} with a ring, "
        f"{numbers.duration(step.server_s)} with a parameter server",
    )
    section.note("a switch that sums", f"gains {_gain(found.synchronous)}{found.synchronous_why}")
    section.note(
        "a queue that merges", f"gains {_gain(found.asynchronous)}{found.asynchronous_why}"
    )
    return section


def _size(length: int) -> str:
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if length >= size:
            return f"{length / size:,.1f} {unit}"
    return f"{length} bytes"


def _gain(answer: str) -> str:
    return "nothing: " if answer == "nothing" else "something: "
