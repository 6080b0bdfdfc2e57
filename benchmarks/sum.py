"""All-reduce and broadcast from torch: Olaf against gloo, in one run.

    python benchmarks/sum.py [--mtu 1500] [--backends gloo] [--workers 8] [--json] ..

Each worker and the switch have a network namespace of their own. Their links carry 1 Gbit/s each
way (HTB with a small bucket, segmentation offload on). Where namespaces are not allowed, the
benchmark says so and measures only the loopback.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from sum_network import Link, Network, allowed, loopback, shaped

HERE = Path(__file__).parent
REDUCE = {10_000: 200, 40_000: 200, 3_300_000: 10, 6_400_000: 6, 25_000_000: 3}
"""Bytes -> calls in each pass."""
BROADCAST_BYTES = 25_000_000
LOSSES = (0.0001, 0.001, 0.01)

SHARE_GOAL = {3_300_000: 0.97, 6_400_000: 0.97, 25_000_000: 0.97}
"""Least share of the line rate."""
RATIO_GOAL = {10_000: 5.0, 40_000: 2.0, 3_300_000: 1.45, 6_400_000: 1.45, 25_000_000: 1.45}
"""Least ratio of gloo's time to ours."""
TIME_GOAL_MS = {10_000: 0.15, 40_000: 0.40}
"""Longest time of the small ones."""
BROADCAST_GOAL = {"share": 0.95, "ratio": 1.8}
LOSS_GOAL = {0.0001: 0.99, 0.001: 0.95, 0.01: 0.80}
"""Least throughput, compared with no loss."""

SAME = ("network", "collective", "bytes")
"""What two rows have in common that are compared."""

Row = dict[str, Any]


def main() -> None:
    """Measure what was asked for, and print one table for each setting."""
    given = arguments()
    rows: list[Row] = []
    show = (lambda row: print(json.dumps(row), flush=True)) if given.json else print_row
    if not given.json:
        print(
            f"{given.workers} workers, {given.rate / 1e9:g} Gbit/s each way, bucket "
            f"{given.burst} B, MTU {given.mtu}, seed {given.seed}, {given.passes} passes in turns"
        )
    for setting in settings(given):
        if not given.json:
            print(f"\n{setting['title']}\n{HEADING}")
        for row in run(given, setting):
            judge(row, rows)
            rows.append(row)
            show(row)


def settings(given: argparse.Namespace) -> Iterator[Row]:
    """What to measure: the network, the loss, the steps."""
    reduces = [step("all_reduce", size, REDUCE[size], given) for size in given.bytes]
    broadcast = step("broadcast", BROADCAST_BYTES, 3, given)
    refused = allowed()
    if refused:
        print(f"no shaped links: network namespaces are not allowed here ({refused})")
    wanted = set(given.only or ("links", "loopback", "loss"))
    if "links" in wanted and not refused:
        steps = [*reduces, *([broadcast] if given.broadcast else [])]
        yield {"title": "shaped links", "network": "links", "loss": 0.0, "steps": steps}
    if "loopback" in wanted:
        yield {"title": "loopback, unshaped", "network": "loopback", "loss": 0.0, "steps": reduces}
    if "loss" in wanted and "olaf" in given.backends:
        network = "loopback" if refused else "links"
        large = [step("all_reduce", max(given.bytes), REDUCE[max(given.bytes)], given)]
        for loss in (0.0, *LOSSES):
            title = f"{loss:.2%} of the datagrams lost, each way, {network}"
            yield {"title": title, "network": network, "loss": loss, "steps": large, "ours": True}


def step(collective: str, size: int, rounds: int, given: argparse.Namespace) -> Row:
    """One series of a plan."""
    return {
        "collective": collective,
        "bytes": size,
        "rounds": rounds,
        "passes": given.passes,
        "seed": given.seed,
    }


def run(given: argparse.Namespace, setting: Row) -> Iterator[Row]:
    """Build the network, start the switch and the workers, and yield a row for each series."""
    link = Link(given.rate, given.burst, given.mtu)
    backends = ["olaf"] if setting.get("ours") else given.backends
    plan = {
        "backends": backends,
        "steps": setting["steps"],
        "timeout_s": given.timeout,
        "connection": lossy(setting["loss"], given.seed + 1) | given.connection,
    }
    with (
        build(setting["network"], given.workers, link) as network,
        switch(network, setting["loss"], given, needed="olaf" in backends) as address,
    ):
        for line in work(network, plan, address, given):
            for name, seconds in line["seconds"].items():
                yield row_of(name, seconds, line["step"], setting, given)


@contextmanager
def build(kind: str, workers: int, link: Link) -> Iterator[Network]:
    """The network of a setting."""
    if kind == "links":
        with shaped(workers, link) as network:
            yield network
    else:
        yield loopback(workers)


@contextmanager
def switch(
    network: Network, loss: float, given: argparse.Namespace, *, needed: bool
) -> Iterator[str]:
    """A switch at its place; yields its address."""
    if not needed:
        yield ""
        return
    config = {"engines": ["reduce"], "listen": f"{network.switch.address}:0", **given.switch}
    argv = (sys.executable, str(HERE / "sum_switch.py"))
    process = subprocess.Popen(
        network.switch.command(*argv, json.dumps(config | lossy(loss, given.seed))),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if given.statistics else subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        yield address or sys.exit("the switch ended without listening")
    finally:
        process.communicate(timeout=10)


def work(network: Network, plan: Row, address: str, given: argparse.Namespace) -> Iterator[Row]:
    """Start the workers; yield what rank 0 prints."""
    port = _free_port(network)
    processes: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryFile("w+") as errors:
        for rank, place in enumerate(network.workers):
            environment = os.environ | {
                "RANK": str(rank),
                "WORLD_SIZE": str(given.workers),
                "MASTER_ADDR": network.workers[0].address,
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": place.interface,
                "OMP_NUM_THREADS": "1",
                "OLAF_SWITCH": address,
                "OLAF_BENCH_PLAN": json.dumps(plan),
            }
            argv = place.command(sys.executable, str(HERE / "sum_worker.py"))
            out = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
            processes.append(
                subprocess.Popen(argv, stdout=out, stderr=errors, env=environment, text=True)
            )
        try:
            assert processes[0].stdout is not None
            for line in processes[0].stdout:
                yield json.loads(line)
            _check_end(processes, errors)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _check_end(processes: list[subprocess.Popen[str]], errors: IO[str]) -> None:
    codes = [process.wait(30) for process in processes]
    if any(codes):
        errors.seek(0)
        sys.exit(f"workers ended with {codes}:\n{errors.read()[-4000:]}")


def _free_port(network: Network) -> int:
    """A port for torch's store. A new namespace has all of them free."""
    if network.workers[0].namespace:
        return 29_500
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        return int(trial.getsockname()[1])


def lossy(loss: float, seed: int) -> Row:
    """The option of the driver that drops received datagrams; nothing without loss."""
    return {"receive_loss": {"probability": loss, "seed": seed}} if loss else {}


def row_of(
    name: str, seconds: list[float], series: Row, setting: Row, given: argparse.Namespace
) -> Row:
    """The figures of one series of one backend."""
    low, *_, high = statistics.quantiles(seconds, n=10)
    middle = statistics.median(seconds)
    row = {
        "setting": setting["title"],
        "mtu": given.mtu if setting["network"] == "links" else None,
        "collective": series["collective"],
        "bytes": series["bytes"],
        "backend": name,
        "median_ms": middle * 1e3,
        "p10_ms": low * 1e3,
        "p90_ms": high * 1e3,
        "loss": setting["loss"],
        "network": setting["network"],
        "workers": given.workers,
        "seed": series["seed"],
        "calls": len(seconds),
    }
    if setting["network"] == "links":
        row["share"] = series["bytes"] * 8 / given.rate / middle
    return row


def judge(row: Row, earlier: list[Row]) -> None:
    """Add the ratio to gloo, or to no loss, and the goals that apply."""
    if row["backend"] != "olaf":
        return
    size = row["bytes"]
    same = [each for each in earlier if all(each[key] == row[key] for key in SAME)]
    for other in same:
        if other["backend"] == "gloo" and other["setting"] == row["setting"]:
            row["against_gloo"] = other["median_ms"] / row["median_ms"]
        if other["backend"] == "olaf" and row["loss"] and not other["loss"]:
            row["against_no_loss"] = other["median_ms"] / row["median_ms"]
    goals: list[tuple[str, float, float]] = []  # name, measured, goal
    links = row["network"] == "links"
    if row["loss"]:
        goals.append(("against_no_loss", row.get("against_no_loss", 0), LOSS_GOAL[row["loss"]]))
    elif row["collective"] == "broadcast":
        goals.append(("share", row.get("share", 0), BROADCAST_GOAL["share"]))
        goals.append(("against_gloo", row.get("against_gloo", 0), BROADCAST_GOAL["ratio"]))
    else:
        if links and size in SHARE_GOAL:
            goals.append(("share", row["share"], SHARE_GOAL[size]))
        if "against_gloo" in row:
            goals.append(("against_gloo", row["against_gloo"], RATIO_GOAL[size] if links else 1.0))
        if links and size in TIME_GOAL_MS:
            row["goal_ms"] = TIME_GOAL_MS[size]
            row["met"] = row["median_ms"] <= TIME_GOAL_MS[size]
    row["goals"] = {name: goal for name, _, goal in goals}
    row["met"] = row.get("met", True) and all(value >= goal for _, value, goal in goals)


HEADING = (
    f"{'':24}{'ms':>9}{'p10 .. p90':>20}{'line rate':>11}{'x gloo':>9}{'x no loss':>11}  goals"
)


def print_row(row: Row) -> None:
    """One line of a table."""
    name = f"{row['collective']} {row['bytes'] / 1e6:g} MB {row['backend']}"
    spread = f"{row['p10_ms']:.2f} .. {row['p90_ms']:.2f}"
    goals = [f"{key} >= {goal:g}" for key, goal in row.get("goals", {}).items()]
    goals += [f"<= {row['goal_ms']:g} ms"] if "goal_ms" in row else []
    verdict = ("met: " if row["met"] else "NOT MET: ") + ", ".join(goals) if goals else ""
    print(
        f"{name:24}{row['median_ms']:>9.3f}{spread:>20}{_part(row, 'share'):>11}"
        f"{_part(row, 'against_gloo'):>9}{_part(row, 'against_no_loss'):>11}  {verdict}",
        flush=True,
    )


def _part(row: Row, key: str) -> str:
    return f"{row[key]:.3f}" if key in row else ""


def arguments() -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--rate", type=float, default=1e9, help="bits per second of each link")
    parser.add_argument("--burst", type=int, default=10_000, help="bytes of the HTB bucket")
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--passes", type=int, default=3, help="turns of each backend")
    parser.add_argument("--seed", type=int, default=1, help="of the values and of the loss")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds for a collective")
    parser.add_argument("--backends", nargs="+", default=["gloo", "olaf"])
    parser.add_argument("--bytes", nargs="+", type=int, default=list(REDUCE), choices=REDUCE)
    parser.add_argument("--only", nargs="+", choices=("links", "loopback", "loss"))
    parser.add_argument("--no-broadcast", dest="broadcast", action="store_false")
    parser.add_argument("--switch", type=json.loads, default={}, help="switch's options, as JSON")
    parser.add_argument("--statistics", action="store_true", help="print the switch's counters")
    parser.add_argument(
        "--connection", type=json.loads, default={}, help="options of olaf.connect_sum, as JSON"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object a row")
    return parser.parse_args()


if __name__ == "__main__":
    main()
