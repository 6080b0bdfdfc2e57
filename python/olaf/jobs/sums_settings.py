"""The configuration of the engines of a switch that sum."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from olaf.jobs.fields import Address, OffInt, OffRate
from olaf.jobs.section import NoneIs, Section
from olaf.values.defaults import SUMMING

REDUCE = SUMMING["reduce"]
ISWITCH = SUMMING["iswitch"]
TRIO = SUMMING["trio"]
ATP = SUMMING["atp"]
ATP_SERVER = SUMMING["atp_server"]


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
    non_finite: Literal["pass", "refuse"] = ISWITCH["non_finite"]
    """What happens to a NaN or an infinity. pass sums it, and the result has it. refuse ends the
    operation at all workers with an error that names the worker. Either way the log names it."""
    tells_numbered: bool = ISWITCH["tells_numbered"]
    """Whether results say that several vectors of one worker may be in their sum, as in pipelined
    training. A synchronous operation then fails instead of taking one worker's vectors for those of
    several. false is for comparisons with the accelerator in rtl/."""
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


class AtpSettings(Section):
    """The engine `atp` of the switch: sums in the packets of the ATP paper where it has room."""

    upstream: Annotated[str | None, NoneIs("off")] = ATP["upstream"]
    """Addresses of up to four servers with commas between them, each with a part of every array; or
    of the switch above. off uses the engine atp_server of the same switch."""
    name: Annotated[str | None, NoneIs("off")] = ATP["name"]
    """Name of this switch in the topology file of the server. off: a random number."""
    aggregators: int = Field(default=ATP["aggregators"], ge=1, le=65_536)
    """Number of aggregators of all jobs together."""
    memory_bytes: int = Field(default=ATP["memory_bytes"], ge=1)
    """Memory of all sums. A packet that finds none goes on to the server."""
    max_age_ms: int = Field(default=ATP["max_age_ms"], ge=1)
    """An aggregator that nothing is added to for this time may be freed by another packet."""
    jobs: int = Field(default=ATP["jobs"], ge=1)
    """Largest number of jobs at once, counted for each server of theirs."""
    silence_ms: int = Field(default=ATP["silence_ms"], ge=1)
    """A worker that is not heard within this time gets no results any more."""
    uplink: OffRate = ATP["uplink"]
    """Bandwidth of the link towards the servers in UDP payload, in tc's units; off sends at
    once."""
    downlink: OffRate = ATP["downlink"]
    """Bandwidth of the link towards the workers in UDP payload; off sends at once."""
    link_limit_datagrams: int = Field(default=ATP["link_limit_datagrams"], ge=1)
    """Largest number of datagrams that wait for each link. The switch drops what comes on top."""
    ecn_depth_datagrams: OffInt = Field(default=ATP["ecn_depth_datagrams"], ge=1)
    """Number of waiting datagrams from which on they are marked as "congestion experienced" (ECN).
    off never marks."""


class AtpServerSettings(Section):
    """The engine `atp_server` of the switch: the parameter server of ATP."""

    topology: Annotated[str | None, NoneIs("off")] = ATP_SERVER["topology"]
    """JSON file that names the switches, the switch above each, and the workers at each. The server
    names workers that are elsewhere. off: the workers' joins alone say where they are."""
    jobs: int = Field(default=ATP_SERVER["jobs"], ge=1)
    """Largest number of jobs at once."""
    memory_bytes: int = Field(default=ATP_SERVER["memory_bytes"], ge=1)
    """Memory for the sums and results of all jobs. Each job gets an equal share: memory / jobs."""
    window: int = Field(default=ATP_SERVER["window"], ge=1, le=1 << 14)
    """Number of packets that a worker may be ahead of its first unanswered one. The job's share of
    the memory may allow fewer."""
    silence_ms: int = Field(default=ATP_SERVER["silence_ms"], ge=1)
    """A worker counts as dead if it was not heard within this time."""
    repeat_ms: int = Field(default=ATP_SERVER["repeat_ms"], ge=1)
    """Shortest time between two copies of a result."""
    settle_ms: int = Field(default=ATP_SERVER["settle_ms"], ge=1)
    """Time that the server waits for other workers to follow one that changed its switch."""
    rack_scale: bool = ATP_SERVER["rack_scale"]
    """Only the first switch on the way adds, and the server gets a sum from each: what ATP's paper
    compares with."""
    non_finite: Literal["pass", "refuse"] = ATP_SERVER["non_finite"]
    """What happens to a NaN or an infinity, or a sum that is too large for f32. pass sums it, and
    the result has it. refuse ends the operation at all workers. Either way the log names the
    worker."""
    link: OffRate = ATP_SERVER["link"]
    """Bandwidth of the link in UDP payload, in tc's units; off sends at once."""
    link_limit_datagrams: int = Field(default=ATP_SERVER["link_limit_datagrams"], ge=1)
    """Largest number of datagrams that wait for the link; more are dropped, and asked for again."""
