"""The configuration of the engines of a switch that sum."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from olaf.defaults import SUMMING
from olaf.jobs.fields import Address, OffInt, OffRate
from olaf.jobs.section import NoneIs, Section

REDUCE = SUMMING["reduce"]
ISWITCH = SUMMING["iswitch"]
TRIO = SUMMING["trio"]


class ReduceSettings(Section):
    """The engine `reduce` of the switch, which sums the arrays of all workers (all-reduce)."""

    upstream: Annotated[Address | None, NoneIs("off")] = REDUCE["upstream"]
    """Address of the switch above, which sums the sums of several switches; off makes this switch
    the uppermost."""
    cores: int = Field(default=REDUCE["cores"], ge=1, le=256)
    """Number of cores to sum on. Each has a thread and a port of its own; the ports follow each
    other. The workers of a job with a fixed number of workers divide large operations among the
    cores. Other jobs use the first core. All switches of a tree have the same number."""
    memory_bytes: int = Field(default=REDUCE["memory_bytes"], ge=1)
    """Memory for the blocks of all jobs. Each job gets an equal share: memory / jobs."""
    jobs: int = Field(default=REDUCE["jobs"], ge=1)
    """Largest number of jobs at once."""
    slots: int = Field(default=REDUCE["slots"], ge=1, le=1 << 20)
    """Largest number of blocks of a job that are summed at once. The job's share of the memory may
    allow fewer."""
    silence_ms: int = Field(default=REDUCE["silence_ms"], ge=1)
    """A worker counts as dead if others wait for it and it was not heard within this time."""
    deadline_ms: OffInt = Field(default=REDUCE["deadline_ms"], ge=1)
    """A block that is incomplete after this time is sent without the missing workers, for jobs that
    ask for no deadline of their own. off waits for all workers."""
    non_finite: Literal["pass", "refuse"] = REDUCE["non_finite"]
    """What happens to a NaN or an infinity. pass sums it, and the result says so. refuse takes no
    piece that has one: the worker's piece counts as missing."""
    uplink: OffRate = REDUCE["uplink"]
    """Bandwidth of the link towards the switch above in UDP payload, in tc's units; off sends at
    once."""
    downlink: OffRate = REDUCE["downlink"]
    """Bandwidth of the link towards the workers in UDP payload; off sends at once."""
    downlink_limit_datagrams: int = Field(default=REDUCE["downlink_limit_datagrams"], ge=1)
    """Largest number of results that wait for the downlink. The switch drops what comes on top, and
    workers ask for it again."""
    downlink_ecn_depth_datagrams: OffInt = Field(
        default=REDUCE["downlink_ecn_depth_datagrams"], ge=1
    )
    """Number of waiting results from which on results are marked as "congestion experienced" (ECN),
    so that workers slow down. off never marks."""


class IswitchSettings(Section):
    """The engine `iswitch` of the switch: sums in the packets of the iSwitch paper."""

    upstream: Annotated[Address | None, NoneIs("off")] = ISWITCH["upstream"]
    """Address of the switch above, which sums the sums of several switches; off makes this switch
    the uppermost."""
    memory_bytes: int = Field(default=ISWITCH["memory_bytes"], ge=1)
    """Memory for the packets of all jobs. Each job gets an equal share: memory / jobs."""
    jobs: int = Field(default=ISWITCH["jobs"], ge=1, le=128)
    """Largest number of jobs at once."""
    slots: int = Field(default=ISWITCH["slots"], ge=1, le=1 << 20)
    """Largest number of packets of a job that are summed at once. The job's share of the memory may
    allow fewer."""
    silence_ms: int = Field(default=ISWITCH["silence_ms"], ge=1)
    """A worker counts as dead if others wait for it and it was not heard within this time."""
    uplink: OffRate = ISWITCH["uplink"]
    """Bandwidth of the link towards the switch above in UDP payload, in tc's units; off sends at
    once."""
    downlink: OffRate = ISWITCH["downlink"]
    """Bandwidth of the link towards the workers in UDP payload; off sends at once."""
    downlink_limit_datagrams: int = Field(default=ISWITCH["downlink_limit_datagrams"], ge=1)
    """Largest number of results that wait for the downlink. The switch drops what comes on top, and
    workers ask for it again."""
    downlink_ecn_depth_datagrams: OffInt = Field(
        default=ISWITCH["downlink_ecn_depth_datagrams"], ge=1
    )
    """Number of waiting results from which on results are marked as "congestion experienced" (ECN),
    so that workers slow down. off never marks."""


class TrioSettings(Section):
    """The engine `trio` of the switch: sums in the packets of the Trio-ML paper."""

    upstream: Annotated[Address | None, NoneIs("off")] = TRIO["upstream"]
    """Address of the switch above, which sums the sums of several switches; off makes this switch
    the uppermost."""
    memory_bytes: int = Field(default=TRIO["memory_bytes"], ge=1)
    """Memory for the blocks of all jobs. Each job gets an equal share: memory / jobs."""
    jobs: int = Field(default=TRIO["jobs"], ge=1, le=256)
    """Largest number of jobs at once."""
    timer_ms: int = Field(default=TRIO["timer_ms"], ge=1)
    """Time in which the timers look at every block once: the shortest deadline."""
    threads: int = Field(default=TRIO["threads"], ge=1, le=10_000)
    """Number of timers. Each looks at its part of the table."""
    deadline_ms: OffInt = Field(default=TRIO["deadline_ms"], ge=1)
    """A block without a new piece for this time is sent without the missing workers, for jobs that
    ask for no deadline of their own. It may take up to `timer` longer. off waits for all."""
    straggler_check_ms: int = Field(default=TRIO["straggler_check_ms"], ge=1)
    """Interval between two looks at what each worker has contributed."""
    permanent_after_ms: int = Field(default=TRIO["permanent_after_ms"], ge=1)
    """Blocks no longer wait for a straggler that contributes nothing for this time, while other
    blocks are sent without it."""
    silence_ms: int = Field(default=TRIO["silence_ms"], ge=1)
    """A worker counts as dead if a block without a deadline waits for it and it was not heard
    within this time."""
    uplink: OffRate = TRIO["uplink"]
    """Bandwidth of the link towards the switch above in UDP payload, in tc's units; off sends at
    once."""
    downlink: OffRate = TRIO["downlink"]
    """Bandwidth of the link towards the workers in UDP payload; off sends at once."""
    downlink_limit_datagrams: int = Field(default=TRIO["downlink_limit_datagrams"], ge=1)
    """Largest number of results that wait for the downlink. The switch drops what comes on top, and
    workers ask for it again."""
