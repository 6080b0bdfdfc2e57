"""What the papers' protocols do when the switch is short of memory, and when a worker stops.

Parts of `benchmarks/sum.py`: `slots` (ATP) and `straggler` (Trio-ML). The workers are processes
of numpy, `sum_paper_worker.py`, with links of their own.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sum_network import Link, Network, shaped
from sum_switches import Switches, started

PROGRAM = Path(__file__).with_name("sum_paper_worker.py")

HEADERS = 14 + 20 + 8
"""Bytes of Ethernet, IPv4 and UDP."""

SLOT_SHARES = (1.0, 0.5, 0.33, 0.0)
"""Aggregators, as a share of the packets that all jobs may have open. With 0 there is one: nearly
every packet goes to the server, as without a switch."""
SLOT_JOBS = (1, 2, 3, 4)
SLOT_WORKERS = 2
SLOT_WINDOW = 512
"""Largest number of packets that a worker has open."""
SLOT_BYTES = 3_300_000
SLOT_RATE = 1e8
"""Bits per second: eight workers of two cores keep up with it."""
SLOT_CALLS = 8

STOP_S = 0.1
STOP_SETTINGS = ((10, 10), (10, 20), (10, 50), (5, 10), (10, None))
"""The switch's timer_ms, and the job's deadline in milliseconds. The paper has both equal: then a
block ages out after one deadline to two. A finer timer makes it less. Without a deadline everybody
waits: the baseline."""
STOP_BYTES = 40_000
STOP_CALLS = 40
STOP_EVERY = 4
"""One call in four has the straggler."""

Row = dict[str, Any]


def limit(protocol: str, mtu: int) -> float:
    """Share of a link's bytes that are values, in the packets of the protocol."""
    header, values = {"iswitch": (8, 366), "trio": (12, 1024), "atp": (30, 62)}[protocol]
    room = (mtu - 28 - header) // 4
    payload = 4 * min(values, room)
    return payload / (payload + header + HEADERS)


def slots(given: argparse.Namespace) -> Iterator[Row]:
    """ATP with fewer aggregators than its jobs have packets on their way (ATP §3.5, §5.2.2)."""
    for jobs in SLOT_JOBS:
        first: Row | None = None
        for share in SLOT_SHARES:
            row = with_slots(jobs, share, given)
            first = first or row
            row["against_all_slots"] = first["median_ms"] / row["median_ms"]
            yield row


def with_slots(jobs: int, share: float, given: argparse.Namespace) -> Row:
    """One row of `slots`."""
    aggregators = max(1, math.ceil(share * jobs * SLOT_WINDOW))
    plans = [
        {
            "protocol": "atp",
            "job": job,
            "rank": rank,
            "workers": SLOT_WORKERS,
            "connection": {"most_packets": SLOT_WINDOW},
            "bytes": SLOT_BYTES,
            "calls": SLOT_CALLS,
            "seed": given.seed + job,
        }
        for job in range(jobs)
        for rank in range(SLOT_WORKERS)
    ]
    link = Link(SLOT_RATE, given.burst, given.mtu)
    with shaped(len(plans) + 1, link) as network:
        # The server has a link of its own: it is the one that shortage fills.
        server = Network([network.workers[-1]], [], [])
        with started(server, {"engines": ["atp_server"]}, show=given.statistics) as servers:
            own = {"aggregators": aggregators, "upstream": servers.addresses[0]}
            told, switches = measured(network, plans, {"engines": ["atp"], "atp": own}, given)
    seconds = [second for worker in told for second in worker["seconds"]]
    pieces = switches.counted[0]["pieces"]
    row = spread(seconds) | {
        "part": "slots",
        "jobs": jobs,
        "workers_of_each": SLOT_WORKERS,
        "slot_share": share,
        "aggregators": aggregators,
        "bytes": SLOT_BYTES,
        "rate": SLOT_RATE,
        "seed": given.seed,
        "summed_in_switch": pieces["summed"] / pieces["received"],
        "gradients_of_each_fragment": switches.counted[0]["gradients"]
        / (fragments(SLOT_BYTES) * told[0]["operations"] * jobs),
    }
    row["share"] = SLOT_BYTES * 8 / SLOT_RATE / (row["median_ms"] / 1e3)
    row["share_of_limit"] = row["share"] / limit("atp", given.mtu)
    return row


def fragments(size: int) -> int:
    """Packets of an array of `size` bytes, with ATP's 62 values in each."""
    return math.ceil(size / 4 / 62)


def straggler(given: argparse.Namespace) -> Iterator[Row]:
    """Trio-ML with a worker that stops for 100 ms (Trio-ML §5, §6.2, Figure 14)."""
    for timer_ms, deadline_ms in STOP_SETTINGS:
        yield with_straggler(timer_ms, deadline_ms, given)


def with_straggler(timer_ms: int, deadline_ms: int | None, given: argparse.Namespace) -> Row:
    """One row of `straggler`."""
    plans = [
        {
            "protocol": "trio",
            "job": 1,
            "rank": rank,
            "workers": given.workers,
            "deadline_s": None if deadline_ms is None else deadline_ms / 1e3,
            "bytes": STOP_BYTES,
            "calls": STOP_CALLS,
            "seed": given.seed,
            "stop": {"rank": given.workers - 1, "every": STOP_EVERY, "s": STOP_S},
        }
        for rank in range(given.workers)
    ]
    config = {"engines": ["trio"], "trio": {"timer_ms": timer_ms}}
    with shaped(given.workers, Link(given.rate, given.burst, given.mtu)) as network:
        told, _ = measured(network, plans, config, given)
    late = [
        seconds
        for worker in told[:-1]
        for seconds, stopped in zip(worker["seconds"], worker["stopped"], strict=True)
        if stopped
    ]
    row = spread(late) | {
        "part": "straggler",
        "timer_ms": timer_ms,
        "deadline_ms": deadline_ms,
        "stopped_ms": STOP_S * 1e3,
        "bytes": STOP_BYTES,
        "workers": given.workers,
        "seed": given.seed,
        "contributors": sorted({count for worker in told[:-1] for count in worker["late"]}),
    }
    if deadline_ms is not None:
        row["of_deadline"] = row["median_ms"] / deadline_ms
        row["met"] = row["of_deadline"] <= 2.0
    return row


def spread(seconds: list[float]) -> Row:
    """Median and tenths, in milliseconds."""
    low, *_, high = statistics.quantiles(seconds, n=10)
    return {
        "median_ms": statistics.median(seconds) * 1e3,
        "p10_ms": low * 1e3,
        "p90_ms": high * 1e3,
        "calls": len(seconds),
    }


def measured(
    network: Network, plans: list[Row], config: Row, given: argparse.Namespace
) -> tuple[list[Row], Switches]:
    """What the workers of these plans printed, and the switch that they had."""
    with started(network, config, show=given.statistics) as switches:
        told = work(network, switches, plans, given.timeout)
    return told, switches


def work(network: Network, switches: Switches, plans: list[Row], timeout_s: float) -> list[Row]:
    """Run a worker for each plan, at its place; return what each of them printed."""
    processes: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryFile("w+") as errors:
        try:
            for place, plan in zip(network.workers, plans, strict=False):
                own = plan | {"switch": switches.addresses[0], "timeout_s": timeout_s}
                argv = place.command(sys.executable, str(PROGRAM), json.dumps(own))
                processes.append(
                    subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=errors, text=True)
                )
            printed = [process.communicate(timeout=20 * timeout_s)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        if any(process.returncode for process in processes):
            errors.seek(0)
            sys.exit(f"workers failed:\n{errors.read()[-4000:]}")
    return [json.loads(text) for text in printed]


def print_slots(row: Row | None) -> None:
    """A line of the table of `slots`; None: its heading."""
    if row is None:
        print(
            f"\nATP with fewer aggregators than packets on their way: {SLOT_WORKERS} workers of "
            f"each job, {SLOT_RATE / 1e6:g} Mbit/s, {SLOT_BYTES / 1e6:g} MB, "
            f"{SLOT_WINDOW} packets open\n"
            f"{'jobs':>4}{'slots':>7}{'ms':>9}{'p10 .. p90':>20}{'line':>7}{'of limit':>10}"
            f"{'of 100 %':>10}{'in switch':>11}{'packets/fragment':>18}"
        )
        return
    tenths = f"{row['p10_ms']:.1f} .. {row['p90_ms']:.1f}"
    print(
        f"{row['jobs']:>4}{row['slot_share']:>7.0%}{row['median_ms']:>9.1f}{tenths:>20}"
        f"{row['share']:>7.3f}{row['share_of_limit']:>10.3f}{row['against_all_slots']:>10.3f}"
        f"{row['summed_in_switch']:>11.3f}{row['gradients_of_each_fragment']:>18.2f}",
        flush=True,
    )


def print_straggler(row: Row | None) -> None:
    """A line of the table of `straggler`; None: its heading."""
    if row is None:
        print(
            f"\nTrio-ML, one worker stops for {STOP_S * 1e3:g} ms: time until the others have the "
            f"result, {STOP_BYTES / 1e3:g} KB\n"
            f"{'timer ms':>8}{'deadline ms':>13}{'ms':>9}{'p10 .. p90':>20}{'of deadline':>13}"
            f"{'workers in it':>15}  goals"
        )
        return
    tenths = f"{row['p10_ms']:.1f} .. {row['p90_ms']:.1f}"
    deadline = "none" if row["deadline_ms"] is None else f"{row['deadline_ms']:g}"
    ratio = f"{row['of_deadline']:.2f}" if "of_deadline" in row else ""
    verdict = ("met" if row["met"] else "NOT MET") + ": <= 2" if "met" in row else ""
    contributors = ", ".join(str(count) for count in row["contributors"])
    print(
        f"{row['timer_ms']:>8}{deadline:>13}{row['median_ms']:>9.1f}{tenths:>20}{ratio:>13}"
        f"{contributors:>15}  {verdict}",
        flush=True,
    )


PARTS = {"slots": (slots, print_slots), "straggler": (straggler, print_straggler)}
"""By name: what measures the rows, and what prints one."""
