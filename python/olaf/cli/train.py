"""``olaf train``: a whole job on this machine, watched and reported."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf import extras
from olaf.cli import options

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings
    from olaf.jobs.training import Outcome

KEYS = {
    "env": "learner.environment",
    "on": "train.on",
    "workers": "train.workers",
    "clusters": "train.clusters",
    "leaves": "train.leaves",
    "learner": "learner.learner",
    "queue": "switch.queue",
    "slots": "switch.slots",
    "uplink": "switch.uplink",
    "credits": "switch.credits",
    "gate": "switch.gate",
    "transmission": "worker.transmission",
    "rule": "server.rule",
    "aggregate": "server.aggregate",
    "updates": "train.updates",
    "until_reward": "train.until_reward",
    "time_limit": "train.time_limit_s",
    "seed": "train.seed",
    "record": "train.record",
    "out": "train.out",
}


@click.command()
@click.option("--env", metavar="ID", help="Any id that gymnasium.make knows, or module:ID.")
@click.option("--on", metavar="local|ray[:ADDRESS]|slurm", help="Where the processes run.")
@click.option("--workers", type=int, help="Worker processes.")
@click.option("--clusters", type=int, help="Clusters the workers are dealt to.")
@click.option("--leaves", metavar="N", help="Leaf switches below the switch; clusters share them.")
@click.option("--learner", metavar="numpy|torch", help="torch needs the extra `torch`.")
@click.option("--queue", metavar="olaf|fifo|freshest", help="Discipline of the switch's uplink.")
@click.option("--slots", type=int, help="Updates the queue holds.")
@click.option("--uplink", metavar="RATE", help="Rate of the uplink as tc writes it: 1.9mbit.")
@click.option("--credits", metavar="N", help="Updates outstanding towards the server.")
@click.option("--gate", metavar="THRESHOLD|off", help="Reward gate of the switch.")
@click.option("--transmission", metavar="off|paper|fair", help="When a worker sends (OLAF §5).")
@click.option("--rule", metavar="delta|paper-literal", help="How an update changes the model.")
@click.option("--aggregate", metavar="each|periodic|round", help="When updates change the model.")
@click.option("--updates", metavar="N|off", help="Stop after so many updates in all.")
@click.option("--until-reward", metavar="R|solved|off", help="Stop at this mean reward.")
@click.option("--time-limit", metavar="SECONDS", help="Stop after so long.")
@click.option("--seed", type=int, help="Seed of the run.")
@click.option("--record", metavar="FILE", help="Keep who pushed when, for `olaf replay`.")
@click.option("--out", metavar="DIR", help="Folder for everything the run leaves.")
@options.as_json
@options.configuration
@click.pass_context
def train(ctx: click.Context, /, **given: Any) -> int:
    """Train on this machine: a server, a switch and workers, real processes over UDP.

    Runs until the environment counts as solved (mean reward of the last 100 training episodes of
    all workers), or to --updates. Processes that die are started again and named. Leaves run.json,
    report.html, model.npz and TensorBoard scalars in --out.

    \b
    Examples:
      olaf train
      olaf train --env CartPole-v1 --workers 4 --until-reward 200
      olaf train --queue fifo --uplink 2mbit --slots 4 --clusters 4
      olaf train --clusters 4 --leaves 2 --set leaf.uplink=2mbit --uplink 3mbit
      olaf train --set learner.steps_per_update=500 --set server.step=sum
    """
    extras.need("train", what="olaf train")
    settings = options.settings(ctx, KEYS)
    outcome, result = run_training(settings, json_out=given["json_out"])
    show_result(result, Path(settings.train.out), json_out=given["json_out"])
    return int(outcome.code)


def run_training(settings: Settings, *, json_out: bool) -> tuple[Outcome, dict[str, Any]]:
    """Run, watch, and keep what a run leaves behind."""
    from olaf.jobs.lines import Control
    from olaf.jobs.places import open_place
    from olaf.jobs.recording import write_trace
    from olaf.jobs.rehearsal import rehearse
    from olaf.jobs.result import conclude, write_run
    from olaf.jobs.training import Training

    settings = rehearse(settings)
    _make_folder(Path(settings.train.out))
    place = open_place(settings)
    control = Control().catch_signals()  # only now: Ray takes signals for itself when it starts
    with _observer(settings, json_out=json_out) as observer:
        outcome = Training(settings, observer, control, place=place).run()
    result = conclude(outcome)
    out = Path(settings.train.out)
    record = write_run(out, outcome, result)
    if settings.train.record is not None:
        write_trace(Path(settings.train.record), outcome.progress)
    _write_report(out, record)
    return outcome, result


def _make_folder(out: Path) -> None:
    """Make the folder now: a run that has nowhere to leave its model should not begin."""
    from olaf.jobs.outcome import Exit, RunError

    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".olaf"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise RunError(
            f"--out {out}: cannot write there ({error.strerror}); name a folder of yours",
            Exit.USAGE,
        ) from None


def show_result(result: dict[str, Any], out: Path, *, json_out: bool) -> None:
    """Print the last table, and the result as JSON if that was asked for."""
    from olaf.report.tables import fates_table, result_table, switches_table

    console = options.console(json_out=json_out)
    console.print()
    console.print(result_table(result))
    console.print()
    console.print(fates_table(result))
    console.print()
    if len(result["switches"]) > 1:
        console.print(switches_table(result))
        console.print()
    console.print(f"report  {out / 'report.html'}   record  {out / 'run.json'}")
    if json_out:
        click.echo(json.dumps(result))


def _observer(settings: Settings, *, json_out: bool) -> Any:
    stream = sys.stderr if json_out else sys.stdout
    if stream.isatty():
        from rich.console import Console

        from olaf.cli.live import Display

        return Display(Console(file=stream), _title(settings))
    from olaf.cli.display import Lines

    return Lines(stream)


def _title(settings: Settings) -> str:
    switch, train = settings.switch, settings.train
    link = switch.uplink or (f"{switch.credits} credits" if switch.credits else "no limit")
    leaves = f" at {train.leaves} leaves" if train.leaves else ""
    return (
        f"{settings.learner.environment}   {train.workers} workers in {train.clusters} clusters"
        f"{leaves}"
        f"   {switch.queue} queue of {switch.slots}   uplink {link}   seed {train.seed}"
    )


def _write_report(out: Path, record: dict[str, Any]) -> None:
    from olaf.report.page import run_page
    from olaf.report.scalars import write_scalars

    (out / "report.html").write_text(run_page(record), encoding="utf-8")
    write_scalars(out, record)
