"""``olaf schedule share``, ``host``, ``predict`` and ``shared``: sharing between processes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from olaf.cli import options
from olaf.values import units
from olaf.values.defaults import SHARING

POLICIES = ("plan", "mina", "greedy", "none")
FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--cluster", "file", type=FILE, required=True, metavar="FILE.toml")
@click.option(
    "--fence",
    default="",
    metavar="COMMAND",
    help="Command that tears down the tree of a dead job at the switches. The job's number is "
    "appended; exit code 0 means that the tree is down. Without it a dead job keeps its tree.",
)
@click.option(
    "--epoch-file",
    type=FILE,
    metavar="FILE",
    help="File that counts the controller's restarts.  [default: FILE.toml.epoch]",
)
@click.option("--log", "log", type=FILE, metavar="FILE", help="Append events as JSON lines.")
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default=SHARING["policy"],
    show_default=True,
    help="Policy that decides which all-reduces use the switches, as in the simulator. "
    "`olaf schedule predict` predicts its score.",
)
@click.option(
    "--ahead",
    type=options.Seconds(
        0.0001,
        0.1,
        why="a shorter time than a round trip to the hosts is too late, and an earlier grant keeps "
        "the switches from other jobs",
    ),
    default=units.write("ahead_ns", SHARING["ahead_ns"]),
    show_default=True,
    metavar="TIME",
    help="Ask for a grant this long before its first all-reduce starts: a few round trips to the "
    "hosts. If it is too short, the all-reduce goes without the switches; if it is too long, "
    "other jobs wait for nothing. From 100us to 100ms.",
)
@options.metrics
@options.metrics_token
def share(
    *,
    file: Path,
    fence: str,
    epoch_file: Path | None,
    log: Path | None,
    policy: str,
    ahead: float,
    metrics: str | None,
    metrics_token_file: str | None,
) -> None:
    """Run the sharing controller for the jobs in a file, until all jobs have ended.

    The hosts report their progress, the controller follows the jobs' patterns from there, and it
    decides each all-reduce as the simulator would. The last line tells how late its timers were.

    The controller first asks every host for the state of its job, so you can kill and restart it at
    any time. Meanwhile the jobs continue, without the switches once their grants are used up.

    \b
    Examples:
      olaf schedule share --cluster examples/schedule/sharing.toml
      olaf schedule share --cluster jobs.toml --policy mina --ahead 500us
      olaf schedule share --cluster jobs.toml --fence "tear-down --now" --log controller.jsonl
      olaf schedule share --cluster jobs.toml --metrics 127.0.0.1:9103    # olaf top 127.0.0.1:9103
    """
    from olaf.errors.outcome import configuring
    from olaf.processes.sink import Sink, lost_as_json
    from olaf.schedule.sharing import Watched, controller_config, next_epoch, read_cluster
    from olaf.schedule.sharing_controller import Fences, control

    cluster = read_cluster(file)
    epoch = next_epoch(epoch_file or file.with_name(file.name + ".epoch"))
    watched = Watched(metrics, metrics_token_file)
    ahead_ns = round(ahead * 1e9)
    config = controller_config(
        file, cluster, epoch, watched=watched, policy=policy, ahead_ns=ahead_ns
    )
    shown = Sink(sys.stdout, lost_as_json)
    logged = Sink(log.open("a", encoding="utf-8"), lost_as_json) if log else None

    def say(event: dict[str, Any]) -> None:
        line = json.dumps(event)
        if logged is not None:
            logged.write(line)
        if event["event"] not in ("granted", "free", "aborted"):
            shown.write(line)

    with configuring():
        control(config, Fences(shlex.split(fence)), say, jobs=len(cluster.jobs))
    shown.drain()


@click.command()
@click.option("--cluster", "file", type=FILE, required=True, metavar="FILE.toml")
@click.option("--job", type=click.IntRange(min=1), required=True, metavar="N")
@click.option("--rank", type=click.IntRange(min=0), required=True, metavar="N")
@click.option(
    "--log",
    "log",
    type=FILE,
    required=True,
    metavar="FILE",
    help="Also log the begin and the end of each all-reduce.",
)
@options.metrics
@options.metrics_token
def host(
    *,
    file: Path,
    job: int,
    rank: int,
    log: Path,
    metrics: str | None,
    metrics_token_file: str | None,
) -> None:
    """Play one host of a job in real time: its recorded steps, all-reduce by all-reduce.

    The controller's grants decide whether an all-reduce uses the switches. No bytes are summed: the
    hosts of the job wait for each other, and then for the time that the all-reduce would take.
    Prints what the host did at the end; with --metrics first a line with that address. The host
    repeats its leave until the controller answers, for 10 s at most ("dismissed").

    \b
    Examples:
      olaf schedule host --cluster sharing.toml --job 1 --rank 0 --log host-1-0.jsonl
      olaf schedule host --cluster sharing.toml --job 1 --rank 1 --log b.jsonl --metrics 127.0.0.1:0

    \b
    Exit codes: 0: played; 2: invalid options or configuration; 3: another host of the job is gone.
    """
    from olaf.errors.outcome import configuring
    from olaf.processes.sink import Sink, lost_as_json
    from olaf.schedule.runtime import play
    from olaf.schedule.sharing import Watched, host_config, read_cluster

    watched = Watched(metrics, metrics_token_file)
    config = host_config(file, read_cluster(file), job, rank, log, watched=watched)

    shown = Sink(sys.stdout, lost_as_json)

    def say(event: dict[str, Any]) -> None:
        shown.write(json.dumps(event))

    with configuring():
        said = play(config, say)
    say(said)
    shown.drain()
    if not said["dismissed"]:
        place = json.loads(config)["controller"]
        click.echo(
            f"olaf: the controller at {place} did not answer this host's leave: it may take the "
            f"host for dead, and fence job {job}",
            err=True,
        )


@click.command()
@click.option("--cluster", "file", type=FILE, required=True, metavar="FILE.toml")
@click.option("--policy", type=click.Choice(POLICIES), default=SHARING["policy"], show_default=True)
def predict(*, file: Path, policy: str) -> None:
    """Simulate the jobs of a file, as `share` and `host` would run them, without delays.

    The score is 1 if the jobs end as early as with the switches to themselves, and 0 if they end as
    late as without switches. All jobs start at once.

    \b
    Example:
      olaf schedule predict --cluster examples/schedule/sharing.toml --policy greedy
    """
    from olaf.schedule.predicted import predicted
    from olaf.schedule.sharing import read_cluster

    click.echo(json.dumps(predicted(file, read_cluster(file), policy)))


@click.command()
@click.option("--cluster", "file", type=FILE, required=True, metavar="FILE.toml")
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default=SHARING["policy"],
    show_default=True,
    help="The policy of the `share` that wrote the logs.",
)
@click.argument("logs", type=FILE, nargs=-1, required=True)
def shared(*, file: Path, logs: tuple[Path, ...], policy: str) -> int:
    """Check the logs of a run: no overbooked resource, no all-reduce in two modes.

    `score` tells what the switches gained, once all hosts have ended: 1 if the jobs took as long as
    with the switches to themselves, 0 if as long as without. `simulated` is the simulator's score
    for these jobs and `--policy`. If it cannot simulate them, `simulated` is null and stderr gives
    the reason. `late_us` is the lateness of the timers in microseconds.

    \b
    Example:
      olaf schedule shared --cluster sharing.toml host-*.jsonl controller.jsonl

    \b
    Exit codes: 0: both rules hold; 1: a rule was broken; 2: no logs of these jobs.
    """
    from statistics import fmean

    from olaf.errors.usage import ConfigurationError
    from olaf.schedule.predicted import predicted
    from olaf.schedule.shared import account, live_score
    from olaf.schedule.sharing import read_cluster

    cluster = read_cluster(file)
    said = account(cluster, logs)
    simulated = None
    try:
        simulated = predicted(file, cluster, policy)["score"]
    except ConfigurationError as error:
        click.echo(f"no simulated score: {error}", err=True)
    report = {
        "launches": said.launches,
        "in_network": said.in_network,
        "grants": said.grants,
        "aborts": said.aborts,
        "fenced": said.fenced,
        "controllers": said.controllers,
        "locked_us_mean": fmean(said.locked_ns or [0]) / 1000,
        "locked_us_max": max(said.locked_ns, default=0) / 1000,
        "decide_us_mean": fmean(said.decide_ns or [0]) / 1000,
        "decide_us_max": max(said.decide_ns, default=0) / 1000,
        "score": live_score(cluster, said),
        "simulated": simulated,
        "late_us": said.late_us,
        "wrong": said.wrong,
    }
    click.echo(json.dumps(report))
    return 1 if said.wrong else 0
