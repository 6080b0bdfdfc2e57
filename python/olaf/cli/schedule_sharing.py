"""``olaf schedule share``, ``host`` and ``shared``: the sharing protocol as processes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import IO, Any

import click

from olaf.cli import options

POLICIES = ("plan", "mina", "greedy", "none")
FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--cluster", "file", type=FILE, required=True, metavar="FILE.toml")
@click.option(
    "--fence",
    default="",
    metavar="COMMAND",
    help="Tears the tree of a dead job down at the switches; its number is added, exit code 0 says "
    "that it is down. Without it, what a dead job held stays held.",
)
@click.option(
    "--epoch-file",
    type=FILE,
    metavar="FILE",
    help="Counts the controller's lives.  [default: FILE.toml.epoch]",
)
@click.option("--log", "log", type=FILE, metavar="FILE", help="Add what happens, as JSON lines.")
@click.option(
    "--policy",
    type=click.Choice(POLICIES),
    default="plan",
    show_default=True,
    help="Which all-reduces use the switches: the simulator's policies, by the same code. "
    "`olaf schedule predict` says what to expect.",
)
@click.option(
    "--ahead",
    type=options.Seconds(
        0.0001,
        0.1,
        why="a round with the hosts takes longer than less, and a grant that is asked for earlier "
        "keeps the switches from others",
    ),
    default="5ms",
    show_default=True,
    metavar="TIME",
    help="Ask for a grant this long before its first all-reduce starts: some times what a round "
    "with the hosts takes. Later, and the all-reduce goes without the switches; much earlier, and "
    "others are kept from them for nothing. From 100us to 100ms.",
)
def share(
    *,
    file: Path,
    fence: str,
    epoch_file: Path | None,
    log: Path | None,
    policy: str,
    ahead: float,
) -> None:
    """Run the sharing controller of the jobs in a file, until all have ended.

    The jobs' patterns are taken forward from what their hosts tell, and each all-reduce is decided
    as the simulator would. The last line says how late its timers were.

    It first asks every host what its job holds, so it may be killed and started at any time: the
    jobs go on without it, and without the switches once their grants are used up.

    \b
    Examples:
      olaf schedule share --cluster examples/schedule/sharing.toml
      olaf schedule share --cluster jobs.toml --policy mina --ahead 500us
      olaf schedule share --cluster jobs.toml --fence "tear-down --now" --log controller.jsonl
    """
    from olaf.outcome import configuring
    from olaf.schedule.sharing import controller_config, next_epoch, read_cluster
    from olaf.schedule.sharing_controller import Fences, control

    cluster = read_cluster(file)
    epoch = next_epoch(epoch_file or file.with_name(file.name + ".epoch"))
    config = controller_config(file, cluster, epoch, policy=policy, ahead_ns=round(ahead * 1e9))
    stream: IO[str] | None = log.open("a", buffering=1) if log else None

    def say(event: dict[str, Any]) -> None:
        line = json.dumps(event)
        if stream is not None:
            stream.write(line + "\n")
        if event["event"] not in ("granted", "free", "aborted"):
            click.echo(line)

    with configuring():
        control(config, Fences(shlex.split(fence)), say, jobs=len(cluster.jobs))


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
    help="Add a line for each begin and end of an all-reduce.",
)
def host(*, file: Path, job: int, rank: int, log: Path) -> None:
    """Play one host of a job in real time: its recorded steps, all-reduce by all-reduce.

    Each runs with or without the switches, as the controller's grants say at its launch; no bytes
    are summed, the hosts of the job wait for each other and for the time that it would take.

    \b
    Example:
      olaf schedule host --cluster sharing.toml --job 1 --rank 0 --log host-1-0.jsonl

    \b
    Exit codes: 0 played; 2 usage or configuration; 3 another host of the job is gone.
    """
    from olaf.outcome import configuring
    from olaf.schedule.runtime import play
    from olaf.schedule.sharing import host_config, read_cluster

    config = host_config(file, read_cluster(file), job, rank, log)
    with configuring():
        said = play(config)
    click.echo(json.dumps(said))


@click.command()
@click.option("--cluster", "file", type=FILE, required=True, metavar="FILE.toml")
@click.option("--policy", type=click.Choice(POLICIES), default="plan", show_default=True)
def predict(*, file: Path, policy: str) -> None:
    """Simulate the jobs of a file, as `share` and `host` would run them, without delays.

    The score is 1 if the jobs end as early as if each had the switches to itself, and 0 if they
    end as late as without any. All jobs begin at once.

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
    default="plan",
    show_default=True,
    help="What `share` ran with.",
)
@click.argument("logs", type=FILE, nargs=-1, required=True)
def shared(*, file: Path, logs: tuple[Path, ...], policy: str) -> int:
    """Check the logs of a run: no resource beyond its units, no all-reduce in two modes.

    Where all hosts have ended, `score` says what the switches gained: 1 if the jobs took as long as
    if each had them to itself, 0 if as long as without. `simulated` is the score that the
    simulator has for these jobs and `--policy`; where it cannot simulate them, `simulated` is null
    and stderr says why. `late_us` is how late timers were.

    \b
    Example:
      olaf schedule shared --cluster sharing.toml host-*.jsonl controller.jsonl

    \b
    Exit codes: 0 both were kept; 1 one was broken; 2 no logs of these jobs.
    """
    from statistics import fmean

    from olaf.schedule.predicted import predicted
    from olaf.schedule.shared import account, live_score
    from olaf.schedule.sharing import read_cluster
    from olaf.usage import ConfigurationError

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
