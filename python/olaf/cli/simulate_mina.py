"""``olaf simulate mina``: jobs on a cluster whose switches can sum for a few jobs at a time."""

from __future__ import annotations

import json
import re
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from olaf import extras
from olaf.cli import options

if TYPE_CHECKING:
    from olaf.schedule.ilp import Solver
    from olaf.schedule.reading import Job
    from olaf.schedule.simulation import Cluster, Costs, Join, Outcome, Window
    from olaf.schedule.summary import Cost, Summary

PLACEMENTS = ["first-fit", "random", "fragments"]
TREES = ["none", "first", "first-gain", "random", "mina", "gain", "exact"]
JOINS = ["none", "one", "several"]
SHARING = ["none", "greedy", "mina", "plan"]


BAD_PAIR = (
    "warning: --sharing mina lets one job of a sharing group use the switches at a time, and with "
    "--join several nearly all jobs may become one group; take --join one, or --sharing greedy"
)


class Nanoseconds(click.ParamType[int]):
    """A time with its unit, ``50us`` or ``125ms``; ``0`` needs no unit."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The time in whole nanoseconds."""
        from olaf.cli.asking import milliseconds

        if isinstance(value, int):
            return value
        try:
            return 0 if str(value) == "0" else round(milliseconds(str(value)) * 1_000_000)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Thousandths(click.ParamType[int]):
    """A factor such as ``1.5``, in thousandths."""

    name = "FACTOR"

    def __init__(self, least: str) -> None:
        self._least = Decimal(least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Thousandths."""
        if isinstance(value, int):
            return value
        try:
            factor = Decimal(str(value))
        except ArithmeticError:
            self.fail(f"{value!r} is not a number", param, ctx)
        if not factor.is_finite() or not self._least <= factor <= 1000 or (factor * 1000) % 1:
            least = self._least
            self.fail(
                f"{value}: must be from {least} to 1000, with at most three decimals", param, ctx
            )
        return int(factor * 1000)


@click.command()
@click.option(
    "--jobs",
    "job_list",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The jobs in order of arrival, `pattern hosts steps` per line; # begins a comment.",
)
@click.option(
    "--traces",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of recorded steps, PATTERN.json each. Default: those that come with Olaf.",
)
@click.option(
    "--topology",
    default="fat-tree:16",
    show_default=True,
    metavar="SHAPE",
    help="The cluster: fat-tree:DEGREE, fat-tree:HOSTS,TORS,PODS:AGGS,CORES (oversubscribed if it "
    "has fewer links up than down), leaf-spine:LEAVES,HOSTS,SPINES, or a graph in FILE.toml.",
)
@click.option(
    "--capacity",
    default="port:1",
    show_default=True,
    metavar="WHAT:N",
    help="Number of jobs for which a port, or a whole switch, can sum at once: port:1 is Quantum-2 "
    "NDR, switch:1 is Quantum HDR.",
)
@click.option(
    "--conflicts",
    type=click.Choice(["capacity", "switch"]),
    default="capacity",
    show_default=True,
    help="When two trees conflict. capacity: together they exceed a capacity; switch: they share a "
    "switch, whatever its capacity, as in the authors' code for Table I.",
)
@click.option(
    "--placement",
    type=click.Choice(PLACEMENTS),
    default="fragments",
    show_default=True,
    help="Policy for hosts. first-fit: the first free hosts; random: any free hosts; fragments: "
    "the choice that leaves job and cluster in the fewest fragments (MINA §III-B).",
)
@click.option(
    "--alpha",
    type=Thousandths("0"),
    default="0.5",
    show_default=True,
    help="For --placement fragments: weight of a fragment of free hosts relative to a fragment of "
    "the job, from 0 to 4.",
)
@click.option(
    "--trees",
    type=click.Choice(TREES),
    default="gain",
    show_default=True,
    help="Policy for aggregation trees. none: no trees; first, random: the first or any tree "
    "without a conflict; first-gain: as first, but only for jobs that gain by a tree; mina: as "
    "many jobs without conflict as possible, chosen again at each arrival (§III-C); gain (ours): "
    "the jobs that gain most, changed only where a change pays; exact: as gain, and HiGHS "
    "searches for a better choice whenever a job has no tree of its own.",
)
@click.option(
    "--join",
    type=click.Choice(JOINS),
    help="For --trees mina, gain or exact: the jobs with which a job takes turns if it finds no "
    "tree of its own. none: no jobs, it goes without a tree; one: the jobs of one sharing group "
    "(§III-C); several: also jobs of several groups, which are then merged. Default: several for "
    "gain and exact; one for mina, which has no several.",
)
@click.option(
    "--candidates",
    type=click.IntRange(min=0),
    metavar="K",
    help="For --trees mina, gain or exact: number of candidate trees per job, 0 for all (MINA "
    "Figure 14). Default: 5 for mina, 64 otherwise.",
)
@click.option(
    "--migration-price",
    type=Thousandths("0"),
    metavar="FACTOR",
    help="For --trees gain or exact: cost of changing a running job's tree, as a fraction of the "
    "gain by the tree. Default: 0.05.",
)
@click.option(
    "--solver-time",
    type=click.FloatRange(min=0, min_open=True, max=3600),
    default=1.0,
    show_default=True,
    metavar="S",
    help="For --trees exact: time limit of one choice in seconds. A choice at the limit reports "
    "how far from the best it may be, and may differ on another machine.",
)
@click.option(
    "--sharing",
    type=click.Choice(SHARING),
    help="Policy for the all-reduces that use a tree. none: no all-reduces; greedy: each one that "
    "finds the tree free; mina: those worth more than their rivals' (§III-D); plan (ours): those "
    "that make all steps end less late. plan is better if jobs rarely wait for the network, "
    "greedy if they often do. Default: greedy.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=2**63 - 1),
    default=0,
    show_default=True,
    metavar="S",
    help="Random seed of the policies that draw: random hosts and trees, and candidates.",
)
@click.option(
    "--bandwidth",
    default="100gbit",
    show_default=True,
    metavar="RATE",
    help="Bandwidth of a host-only all-reduce, in tc's units.",
)
@click.option(
    "--speedup",
    type=Thousandths("1"),
    default="2",
    show_default=True,
    help="Speed of an all-reduce in the switches relative to host-only.",
)
@click.option(
    "--latency",
    type=Nanoseconds(),
    default="50us",
    show_default=True,
    help="Fixed time of each all-reduce, however small.",
)
@click.option(
    "--compute-speed",
    type=Thousandths("0.001"),
    default="1",
    show_default=True,
    help="Speed of the computation relative to the record: 1.5 makes the network matter more.",
)
@click.option(
    "--migration-time",
    type=Nanoseconds(),
    default="0",
    show_default=True,
    help="Time that a running job is without a tree while it changes trees. The paper measures "
    "559ms (§V-D); the authors' simulator uses 0.",
)
@click.option(
    "--ties",
    type=click.Choice(["together", "forwards", "backwards"]),
    default="together",
    show_default=True,
    help="Order when jobs end at the same instant. together: all leave, then waiting jobs are "
    "placed; forwards, backwards: one leaves and jobs are placed, then the next leaves, in the "
    "order of the list or in reverse.",
)
@click.option(
    "--timeline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw which jobs ran on which hosts and held which switches: a page for a browser (.html) "
    "or Chrome's trace format for ui.perfetto.dev (.json). Or keep it for `olaf schedule timeline` "
    "(.record.json).",
)
@click.option(
    "--timeline-window",
    metavar="FROM..TO",
    help="Show each use of the switches in this part of the run: 10s..12s. Default: the first "
    "second.",
)
@options.as_json
def mina(
    *,
    job_list: Path,
    traces: Path | None,
    topology: str,
    capacity: str,
    conflicts: Literal["capacity", "switch"],
    placement: str,
    alpha: int,
    trees: str,
    join: Join | None,
    candidates: int | None,
    migration_price: int | None,
    solver_time: float,
    sharing: Literal["none", "greedy", "mina", "plan"] | None,
    seed: int,
    bandwidth: str,
    speedup: int,
    latency: int,
    compute_speed: int,
    migration_time: int,
    ties: Literal["together", "forwards", "backwards"],
    timeline: Path | None,
    timeline_window: str | None,
    json_out: bool,
) -> None:
    """Simulate jobs whose switches sum all-reduces, and print the share of the possible gain.

    Jobs start in the order of the list as hosts become free, and repeat their recorded step. Either
    the switches of the job's tree or its hosts sum each all-reduce. The score is 0 if the hosts sum
    all of them, and 1 if the switches do. The same options give the same numbers on every machine.
    docs/mina.md is the tutorial.

    \b
    Examples:
      olaf simulate mina --jobs jobs.txt
      olaf simulate mina --jobs jobs.txt --placement first-fit --trees first --sharing greedy
      olaf simulate mina --jobs jobs.txt --placement fragments --trees mina --sharing mina
      olaf simulate mina --jobs jobs.txt --traces recorded/ --capacity switch:1 --json

    \b
    Exit codes: 0: simulated; 2: an invalid file or value; 130: interrupted.
    """
    from olaf.schedule.reading import read_jobs, read_topology
    from olaf.schedule.simulation import Cluster, Network, placement_policy, trees_policy
    from olaf.schedule.summary import cost, summarize

    cluster = Cluster(
        topology=read_topology(topology),
        capacity=capacity,
        conflicts=conflicts,
        placement=placement_policy(placement, alpha_millis=alpha, seed=seed),
        trees=trees_policy(trees, candidates=candidates, price_millis=migration_price, join=join),
        sharing=sharing or Cluster.model_fields["sharing"].default,
        network=Network(
            bytes_per_second=_bytes_per_second(bandwidth),
            speedup_millis=speedup,
            latency_ns=latency,
        ),
        compute_speed_millis=compute_speed,
        migration_ns=migration_time,
        ties=ties,
        seed=seed,
    )
    if cluster.sharing == "mina" and cluster.trees.get("join") == "several":
        click.echo(BAD_PAIR, err=True)
    window = _window(timeline, timeline_window)
    jobs = read_jobs(job_list)
    begin_s = time.process_time()
    solver = None
    if trees == "exact":
        extras.need("schedule", "highspy", what="the exact solver")
        from olaf.schedule.ilp import Solver

        solver = Solver(time_limit_s=solver_time)
    outcome, costs = _run(cluster, jobs, job_list, traces, window, solver=solver)
    spent = cost(costs, time.process_time() - begin_s)
    summary = summarize(outcome, [job.hosts for job in jobs])
    if json_out:
        told = {
            "setting": cluster.model_dump(mode="json"),
            "summary": summary.model_dump(mode="json"),
            "cost": spent.model_dump(mode="json"),
            "solver": None if solver is None else solver.account(),
        }
        click.echo(json.dumps(told))
    else:
        _show(summary, spent)
        if solver is not None:
            click.echo(solver.words())
    if timeline is not None:
        from olaf.schedule.simulation import record
        from olaf.schedule.timeline import write

        write(record(outcome, jobs), timeline, title=f"{job_list.stem}, {trees} trees")
        click.echo(f"wrote {timeline}", err=json_out)


def _run(
    cluster: Cluster,
    jobs: list[Job],
    job_list: Path,
    traces: Path | None,
    window: Window | None,
    *,
    solver: Solver | None,
) -> tuple[Outcome, Costs]:
    from olaf.cli.asking import Thinking
    from olaf.errors.usage import ConfigurationError
    from olaf.schedule.reading import BUNDLED, read_patterns
    from olaf.schedule.simulation import simulate

    names = list(dict.fromkeys(job.pattern for job in jobs))
    patterns = read_patterns(traces or BUNDLED, names, job_list)
    try:
        with Thinking() as thinking:

            def say(over: int, running: int, now_ns: int) -> None:
                thinking.say(
                    f"{over} of {len(jobs)} jobs ended, {running} running, at {now_ns / 1e9:.1f} s"
                )

            return simulate(cluster, patterns, jobs, timeline=window, say=say, solve=solver)
    except ConfigurationError as error:
        about = re.match(r"jobs\[(\d+)\]: ", str(error))
        if about is None:
            raise
        line = jobs[int(about[1])].line
        raise ConfigurationError(f"{job_list}:{line}: {str(error)[about.end() :]}") from None


def _window(timeline: Path | None, text: str | None) -> Window | None:
    from olaf.cli.asking import milliseconds
    from olaf.schedule.simulation import Window

    if timeline is None:
        if text is not None:
            raise click.UsageError("--timeline-window needs --timeline FILE as well")
        return None
    if timeline.suffix.lower() not in (".html", ".htm", ".json"):
        raise click.BadParameter("the name must end with .html or .json", param_hint="--timeline")
    try:
        ends = [milliseconds(end) for end in (text or "0s..1s").split("..")]
        begin_ns, end_ns = (round(end * 1_000_000) for end in ends)
    except ValueError:
        begin_ns = end_ns = 0
    if begin_ns >= end_ns:
        message = f"{text!r}: write two times, as in 10s..12s"
        raise click.BadParameter(message, param_hint="--timeline-window")
    return Window(from_ns=begin_ns, to_ns=end_ns)


def _bytes_per_second(rate: str) -> int:
    from olaf.values import units

    try:
        return units.rate(rate) // 8
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--bandwidth") from None


def _show(summary: Summary, cost: Cost) -> None:
    from rich.table import Table

    console = options.console(json_out=False)
    trees, moves = summary.trees, summary.migrations
    first = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, value, words in [
        (
            "score",
            _number(summary.score),
            "0: the hosts sum everything; 1: the switches do, undisturbed",
        ),
        ("  by hosts", _number(summary.score_by_hosts), "score, weighted by each job's hosts"),
        (
            "  worst tenth",
            _number(summary.worst_decile),
            "mean score of the worst-off 10 % of the jobs",
        ),
        (
            "at stake",
            f"{summary.headroom:.2%}",
            "share of the jobs' time that aggregation could save at most",
        ),
        ("utilisation", _number(summary.utilisation), "share of a job's time with the switches"),
        ("  by hosts", _number(summary.utilisation_by_hosts), ""),
        ("  of the cluster", _number(summary.utilisation_of_cluster), "share of all hosts' time"),
        ("hosts busy", _number(summary.hosts_busy), ""),
        (
            "jobs",
            f"{summary.jobs:,}",
            f"{trees.own:,} with a tree of their own, {trees.shared:,} shared one, "
            f"{trees.without:,} without, {trees.one_host:,} on one host",
        ),
        (
            "migrations",
            f"{moves.per_job:.3f} per job",
            f"{moves.moved:,} trees moved, {moves.gained:,} gained, {moves.lost:,} lost",
        ),
        (
            "makespan",
            f"{summary.makespan_s:,.3f} s",
            f"up to {summary.most_running:,} jobs at once",
        ),
        (
            "all-reduces",
            f"{summary.operations:,}",
            f"{summary.operations_in_network:,} in the network; {summary.events:,} events",
        ),
        (
            "CPU",
            f"{cost.placement_s + cost.trees_s + cost.rest_s:.2f} s",
            f"placement {cost.placement_s:.2f} s, trees {cost.trees_s:.2f} s (an arrival: median "
            f"{cost.trees.median_ms:.3f} ms, 99 % under {cost.trees.p99_ms:.2f} ms)",
        ),
    ]:
        first.add_row(name, value, words)
    console.print(first)
    sizes = Table(box=None, padding=(0, 2, 0, 0), title="by size", title_justify="left")
    for column in ("hosts", "jobs", "score"):
        sizes.add_column(column, justify="right")
    for size in summary.sizes:
        sizes.add_row(str(size.hosts), f"{size.jobs:,}", _number(size.score))
    console.print(sizes)


def _number(value: float | None) -> str:
    """Four digits, or more if the value would otherwise round to 1."""
    if value is None:
        return "no gain"
    digits = next((n for n in range(4, 9) if value == 1 or f"{value:.{n}f}" < "1"), 9)
    return f"{value:.{digits}f}"
