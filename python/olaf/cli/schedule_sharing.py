"""``olaf schedule share``, ``host`` and ``shared``: the sharing protocol as processes."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import IO, Any

import click

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
def share(*, file: Path, fence: str, epoch_file: Path | None, log: Path | None) -> None:
    """Run the sharing controller of the jobs in a file, until all have ended.

    It first asks every host what its job holds, so it may be killed and started at any time: the
    jobs go on without it, and without the switches once their grants are used up.

    \b
    Examples:
      olaf schedule share --cluster examples/schedule/sharing.toml
      olaf schedule share --cluster jobs.toml --fence "tear-down --now" --log controller.jsonl
    """
    from olaf.jobs.outcome import configuring
    from olaf.schedule.sharing import controller_config, next_epoch, read_cluster
    from olaf.schedule.sharing_controller import Fences, control

    cluster = read_cluster(file)
    epoch = next_epoch(epoch_file or file.with_name(file.name + ".epoch"))
    config = controller_config(file, cluster, epoch)
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
    from olaf.jobs.outcome import configuring
    from olaf.schedule.runtime import play
    from olaf.schedule.sharing import host_config, read_cluster

    config = host_config(file, read_cluster(file), job, rank, log)
    with configuring():
        said = play(config)
    click.echo(json.dumps(said))


@click.command()
@click.option("--cluster", "file", type=FILE, required=True, metavar="FILE.toml")
@click.argument("logs", type=FILE, nargs=-1, required=True)
def shared(*, file: Path, logs: tuple[Path, ...]) -> int:
    """Check the logs of a run: no resource beyond its units, no all-reduce in two modes.

    \b
    Exit codes: 0 both were kept; 1 one was broken; 2 no logs of these jobs.
    """
    from statistics import fmean

    from olaf.schedule.shared import account
    from olaf.schedule.sharing import read_cluster

    said = account(read_cluster(file), logs)
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
        "wrong": said.wrong,
    }
    click.echo(json.dumps(report))
    return 1 if said.wrong else 0
