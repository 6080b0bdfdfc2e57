"""All-reduce and broadcast from torch: Olaf against gloo, in one run.

    python benchmarks/sum.py [--mtu 1500] [--backends gloo] [--workers 8] [--json] ..

Each worker and the switch have a network namespace of their own. Their links carry 1 Gbit/s each
way (HTB with a small bucket, segmentation offload on). Where namespaces are not allowed, the
benchmark says so and measures only the loopback. At the end come a tree of switches against one
switch, and the bits that a switch sums for each second of a core, on one core and on two.
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
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from sum_network import Link, Network, allowed, loopback, shaped
from sum_papers import PARTS as PAPER_PARTS
from sum_papers import limit
from sum_switches import Switches, started

from olaf.sums.protocols import PROTOCOLS

HERE = Path(__file__).parent
REDUCE = {10_000: 200, 40_000: 200, 3_300_000: 10, 6_400_000: 6, 25_000_000: 3}
"""Bytes -> calls in each pass."""
BROADCAST_BYTES = 25_000_000
LOSSES = (0.0001, 0.001, 0.01)

PARTS = ("links", "loopback", "parts", "loss", "tree", "cores", "papers", *PAPER_PARTS)
"""What `--only` chooses from."""

IN_PARTS = ("reduce_scatter", "all_gather")

SHARE_GOAL = {3_300_000: 0.97, 6_400_000: 0.97, 25_000_000: 0.97}
"""Least share of the line rate."""
RATIO_GOAL = {10_000: 5.0, 40_000: 2.0, 3_300_000: 1.45, 6_400_000: 1.45, 25_000_000: 1.45}
"""Least ratio of gloo's time to ours."""
TIME_GOAL_MS = {10_000: 0.15, 40_000: 0.40}
"""Longest time of the small ones."""
BROADCAST_GOAL = {"share": 0.95, "ratio": 1.8}
LOSS_GOAL = {0.0001: 0.99, 0.001: 0.95, 0.01: 0.80}
"""Least throughput, compared with no loss."""

TREE_BYTES = 25_000_000
TREE_WORKERS, TREE_LEAVES = 8, 2
TREE_GOAL = 1 / 1.05
"""Least throughput of a tree, compared with one switch."""
PAPERS = ("iswitch", "trio", "atp")
PAPER_BYTES = (3_300_000, 25_000_000)
CORES = (1, 2)
CORES_GOAL = 0.8
"""Least work of a core among several, compared with one core alone."""

SAME = ("network", "collective", "bytes", "workers", "protocol")
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
    for part in set(given.only or PARTS) & set(PAPER_PARTS):
        if "olaf" in given.backends and not allowed():
            paper_part(part, given)


def paper_part(part: str, given: argparse.Namespace) -> None:
    """Measure and print one of the tables of `sum_papers.py`."""
    measured, show = PAPER_PARTS[part]
    if not given.json:
        show(None)
    for row in measured(given):
        if given.json:
            print(json.dumps(row), flush=True)
        else:
            show(row)


def settings(given: argparse.Namespace) -> Iterator[Row]:
    """What to measure: the network, the loss, the steps."""
    reduces = [step("all_reduce", size, REDUCE[size], given) for size in given.bytes]
    broadcast = step("broadcast", BROADCAST_BYTES, 3, given)
    refused = allowed()
    if refused:
        print(f"no shaped links: network namespaces are not allowed here ({refused})")
    wanted = set(given.only or PARTS)
    if "links" in wanted and not refused:
        steps = [*reduces, *([broadcast] if given.broadcast else [])]
        yield {"title": "shaped links", "network": "links", "loss": 0.0, "steps": steps}
    if "parts" in wanted and not refused:
        steps = [
            step(collective, size, REDUCE[size], given)
            for collective in (*IN_PARTS, "all_reduce")
            for size in given.bytes
        ]
        title = "sums and arrays in parts, shaped links"
        yield {"title": title, "network": "links", "loss": 0.0, "steps": steps}
    if "loopback" in wanted:
        yield {"title": "loopback, unshaped", "network": "loopback", "loss": 0.0, "steps": reduces}
    if "loss" in wanted and "olaf" in given.backends:
        network = "loopback" if refused else "links"
        large = [step("all_reduce", max(given.bytes), REDUCE[max(given.bytes)], given)]
        for loss in (0.0, *LOSSES):
            title = f"{loss:.2%} of the datagrams lost, each way, {network}"
            yield {"title": title, "network": network, "loss": loss, "steps": large, "ours": True}
    ours = {"network": "links", "loss": 0.0, "ours": True}
    if "tree" in wanted and "olaf" in given.backends and not refused:
        steps = [step("all_reduce", TREE_BYTES, REDUCE[TREE_BYTES], given)]
        ours |= {"workers": TREE_WORKERS, "steps": steps}
        yield ours | {"title": f"{TREE_WORKERS} workers, one switch", "leaves": 0}
        title = f"{TREE_WORKERS} workers, {TREE_LEAVES} lower switches and an upper one"
        yield ours | {"title": title, "leaves": TREE_LEAVES}
    if "papers" in wanted and "olaf" in given.backends and not refused:
        steps = [step("all_reduce", size, REDUCE[size], given) for size in PAPER_BYTES]
        for paper in PAPERS:
            for loss in (0.0, *LOSSES):
                title = f"the protocol {paper}, {loss:.2%} of the datagrams lost, each way"
                own = {"title": title, "protocol": paper, "loss": loss, "ours": True}
                yield own | {"network": "links", "steps": steps}
    if "cores" in wanted and "olaf" in given.backends:
        steps = [step("all_reduce", TREE_BYTES, 10, given)]
        for cores in CORES:
            title = f"a switch with --cores {cores}, loopback"
            core = {"network": "loopback", "loss": 0.0, "steps": steps, "ours": True}
            yield core | {"title": title, "cores": cores}


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
    """Build the network, start switches and workers, and yield a row for each series."""
    link = Link(given.rate, given.burst, given.mtu)
    backends = ["olaf"] if setting.get("ours") else given.backends
    plan = {
        "backends": backends,
        "steps": setting["steps"],
        "timeout_s": given.timeout,
        "protocol": setting.get("protocol", "reduce"),
        "connection": lossy(setting["loss"], given.seed + 1) | given.connection,
    }
    paper = PROTOCOLS[plan["protocol"]]
    engine = {"engines": [paper.engine, *paper.beside]}
    config = engine | given.switch | lossy(setting["loss"], given.seed)
    if "cores" in setting:
        config["reduce"] = config.get("reduce", {}) | {"cores": setting["cores"]}
    rows: list[Row] = []
    with build(setting, given, link) as network:
        needed = started(network, config, show=given.statistics)
        with needed if "olaf" in backends else nullcontext(Switches()) as switches:
            for line in work(network, plan, switches.addresses, given):
                for name, seconds in line["seconds"].items():
                    row = row_of(name, seconds, line["step"], setting, given)
                    if "cores" in setting:
                        rows.append(row)  # The switch's processor time is known at the end.
                    else:
                        yield row
    for row in rows:
        io = switches.counted[0]["io"]
        row["gbit_per_core_s"] = io["received_bytes"] * 8 / io["cpu_s"] / 1e9
        yield row


@contextmanager
def build(setting: Row, given: argparse.Namespace, link: Link) -> Iterator[Network]:
    """The network of a setting."""
    workers = setting.get("workers", given.workers)
    if setting["network"] == "links":
        with shaped(workers, link, leaves=setting.get("leaves", 0)) as network:
            yield network
    else:
        yield loopback(workers)


def work(
    network: Network, plan: Row, addresses: list[str], given: argparse.Namespace
) -> Iterator[Row]:
    """Start the workers; yield what rank 0 prints."""
    port = _free_port(network)
    processes: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryFile("w+") as errors:
        for rank, place in enumerate(network.workers):
            environment = os.environ | {
                "RANK": str(rank),
                "WORLD_SIZE": str(len(network.workers)),
                "MASTER_ADDR": network.workers[0].address,
                "MASTER_PORT": str(port),
                "GLOO_SOCKET_IFNAME": place.interface,
                "OMP_NUM_THREADS": "1",
                "OLAF_SWITCH": addresses[network.switch_of[rank]] if addresses else "",
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
        "workers": setting.get("workers", given.workers),
        "leaves": setting.get("leaves"),
        "cores": setting.get("cores"),
        "protocol": setting.get("protocol", "reduce"),
        "seed": series["seed"],
        "calls": len(seconds),
    }
    if setting["network"] == "links":
        row["share"] = series["bytes"] * 8 / given.rate / middle
        if row["protocol"] in PAPERS:
            row["share_of_limit"] = row["share"] / limit(row["protocol"], given.mtu)
    return row


def judge(row: Row, earlier: list[Row]) -> None:
    """Add the ratios to other rows, and the goals that apply."""
    if row["backend"] != "olaf":
        return
    for other in earlier:
        compare(row, other)
    row["goals"] = {name: goal for name, goal in goals(row) if name in row}
    row["met"] = all(row[name] >= goal for name, goal in row["goals"].items())
    in_parts = row["collective"] in IN_PARTS
    if row["network"] == "links" and row["bytes"] in TIME_GOAL_MS and not in_parts:
        row["goal_ms"] = TIME_GOAL_MS[row["bytes"]]
        row["met"] = row["met"] and row["median_ms"] <= row["goal_ms"]


def compare(row: Row, other: Row) -> None:
    """Add the ratio to another row, if it is one to compare with."""
    faster = other["median_ms"] / row["median_ms"]
    if row["leaves"] is not None or row["cores"]:
        if row["leaves"] and other["leaves"] == 0:
            row["against_one_switch"] = faster
        if (row["cores"] or 0) > 1 and other["cores"] == 1:
            row["against_one_core"] = row["gbit_per_core_s"] / other["gbit_per_core_s"]
    elif all(other[key] == row[key] for key in SAME):
        if other["backend"] == "gloo" and other["setting"] == row["setting"]:
            row["against_gloo"] = faster
        if other["backend"] == "olaf" and row["loss"] and not other["loss"]:
            row["against_no_loss"] = faster


def goals(row: Row) -> Iterator[tuple[str, float]]:
    """Each figure that has a goal, and its least value."""
    size = row["bytes"]
    if row["protocol"] != "reduce" or row["collective"] in IN_PARTS:
        return
    if row["leaves"] is not None or row["cores"]:
        yield "against_one_switch", TREE_GOAL
        yield "against_one_core", CORES_GOAL
    elif row["loss"]:
        yield "against_no_loss", LOSS_GOAL[row["loss"]]
    elif row["collective"] == "broadcast":
        yield "share", BROADCAST_GOAL["share"]
        yield "against_gloo", BROADCAST_GOAL["ratio"]
    elif row["network"] == "links":
        if size in SHARE_GOAL:
            yield "share", SHARE_GOAL[size]
        yield "against_gloo", RATIO_GOAL[size]
    else:
        yield "against_gloo", 1.0


HEADING = f"{'':24}{'ms':>9}{'p10 .. p90':>20}{'line rate':>11}{'x gloo':>9}{'x other':>11}  goals"


def print_row(row: Row) -> None:
    """One line of a table."""
    name = f"{row['collective']} {row['bytes'] / 1e6:g} MB {row['backend']}"
    spread = f"{row['p10_ms']:.2f} .. {row['p90_ms']:.2f}"
    goals = [f"{key} >= {goal:g}" for key, goal in row.get("goals", {}).items()]
    goals += [f"<= {row['goal_ms']:g} ms"] if "goal_ms" in row else []
    verdict = ("met: " if row["met"] else "NOT MET: ") + ", ".join(goals) if goals else ""
    others = ("against_no_loss", "against_one_switch", "against_one_core")
    other = next((key for key in others if key in row), "")
    per_core = row.get("gbit_per_core_s")
    told = f"{per_core:.1f} Gbit/s in for a core; " if per_core else ""
    if "share_of_limit" in row:
        told += f"{row['share_of_limit']:.3f} of the limit of its packets; "
    print(
        f"{name:24}{row['median_ms']:>9.3f}{spread:>20}{_part(row, 'share'):>11}"
        f"{_part(row, 'against_gloo'):>9}{_part(row, other):>11}  {told}{verdict}",
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
    parser.add_argument("--only", nargs="+", choices=PARTS)
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
