"""``olaf train``: run, watch and report a whole job on this machine."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf import extras
from olaf.cli import options
from olaf.cli.consoles import plain_console
from olaf.jobs import forking
from olaf.jobs.queues import METAVAR
from olaf.values.numbers import counted

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings
    from olaf.runs.session import Run

    Observe = Callable[[Settings], Any]

KEYS = {
    "env": "learner.environment",
    "env_options": "learner.environment_options",
    "on": "train.on",
    "workers": "train.workers",
    "clusters": "train.clusters",
    "leaves": "train.leaves",
    "learner": "learner.learner",
    "queue": "switch.queue",
    "slots": "switch.slots",
    "uplink": "switch.uplink",
    "downlink": "switch.downlink",
    "credits": "switch.credits",
    "gate": "switch.gate",
    "transmission": "worker.transmission",
    "rule": "server.rule",
    "aggregate": "server.aggregate",
    "updates": "train.updates",
    "steps": "train.steps",
    "until_reward": "train.until_reward",
    "time_limit": "train.time_limit_s",
    "evaluate_every": "train.evaluate_every",
    "seed": "train.seed",
    "record": "train.record",
    "out": "train.out",
    "key_file": "train.key_file",
    "insecure": "train.insecure",
    "local": "train.local",
    "wandb": "train.wandb",
    "against": "train.against",
    "transport": "train.transport",
}


@click.command()
@click.option("--env", metavar="ID", help="Any id that gymnasium.make knows, or module:ID.")
@options.env_option
@click.option("--on", metavar="local|ray[:ADDRESS]|slurm", help="Where the processes run.")
@click.option("--workers", type=int, help="Number of worker processes.")
@click.option("--clusters", type=int, help="Number of clusters; the workers are spread over them.")
@click.option("--leaves", metavar="N", help="Number of leaf switches; the clusters share them.")
@click.option("--learner", metavar="numpy|torch", help="torch needs the extra `torch`.")
@click.option("--queue", metavar=METAVAR, help="Discipline of the switch's uplink.")
@click.option("--slots", type=int, help="Number of updates that the queue holds.")
@click.option("--uplink", metavar="RATE", help="Bandwidth of the uplink in tc's units: 1.9mbit.")
@click.option(
    "--downlink", metavar="RATE", help="Bandwidth of the link towards the workers: 10mbit."
)
@click.option("--credits", metavar="N", help="Most unanswered updates on the way to the server.")
@click.option("--gate", metavar="THRESHOLD|off", help="Reward gate of the switch.")
@click.option("--transmission", metavar="off|paper|fair", help="When a worker sends (OLAF §5).")
@click.option("--transport", metavar="udp|tcp", help="tcp: a plain TCP server, as a baseline.")
@click.option("--rule", metavar="delta|paper-literal", help="How an update changes the model.")
@click.option("--aggregate", metavar="each|periodic|round", help="When updates change the model.")
@click.option("--updates", metavar="N|off", help="Stop after N updates of all workers together.")
@click.option("--steps", metavar="N|off", help="Stop after N steps of all environments together.")
@click.option("--until-reward", metavar="R|solved|off", help="Stop at this mean reward.")
@click.option("--time-limit", metavar="TIME|off", help="Stop after TIME: 90s, 2min.")
@click.option(
    "--evaluate-every", metavar="N|off", help="Evaluate after every N updates; keep the best model."
)
@click.option("--seed", type=int, help="Random seed of the run.")
@click.option("--record", metavar="FILE", help="Record all pushes, for `olaf replay`.")
@click.option("--out", metavar="DIR", help="Folder of the run. Default: runs/<time>-<environment>.")
@click.option(
    "--key-file", metavar="FILE", help="Key of the job (olaf keys), for all processes of the run."
)
@click.option(
    "--insecure",
    is_flag=True,
    default=None,
    help="Listen beyond this machine without a key, so that anybody there may take part.",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Continue the run in this folder, with its settings, model and learners.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="With --resume: run the code that the run names although it is not your own run.",
)
@click.option(
    "--local",
    is_flag=True,
    default=None,
    help="Train in this one process, without a network: a baseline.",
)
@click.option(
    "--against",
    metavar="local|off",
    help="Also run the one-process baseline, and print it beside the run.",
)
@click.option(
    "--wandb",
    is_flag=False,
    flag_value="olaf",
    metavar="[PROJECT]",
    help="Also log to Weights & Biases; needs the extra `wandb`.",
)
@click.option("--dry-run", is_flag=True, help="With --on slurm: write the script, submit nothing.")
@click.option(
    "--script",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With --on slurm: write the script to FILE, submit nothing.",
)
@options.preset
@options.log_format
@options.log_level
@options.as_json
@options.configuration
@click.pass_context
def train(ctx: click.Context, /, **given: Any) -> int:
    """Train with a server, a switch and workers: processes over UDP, here or --on many machines.

    Training stops when the environment is solved, judged by the mean reward of the last 100
    episodes of all workers, or after --updates, --steps or --time-limit. A process that dies is
    reported and started again. Each run writes its model, report, record and TensorBoard scalars to
    its own folder, runs/<time>-<environment>; runs/latest links to the newest. Nothing is
    overwritten.

    \b
    Examples:
      olaf train
      olaf train --env CartPole-v1 --workers 4 --until-reward 200
      olaf train --env mine:Dot --env-option size=3
      olaf train --preset pendulum                 settings that suit a task; --preset list
      olaf train --resume runs/latest --updates 8000
      olaf train --local --env CartPole-v1
      olaf train --against local
      olaf train --transport tcp --uplink 200kbit
      olaf train --queue fifo --uplink 2mbit --slots 4 --clusters 4
      olaf train --clusters 4 --leaves 2 --set leaf.uplink=2mbit --uplink 3mbit
      olaf train --set learner.steps_per_update=500 --set server.step=sum
      olaf train --on ray:auto --workers 64        actors of the Ray cluster that runs here
      olaf train --on slurm --workers 64 --set slurm.nodes=4 --set slurm.partition=cpu
      olaf train --on slurm --dry-run              write the batch script, submit nothing
    """
    extras.need("train", what="olaf train")
    with forking.opened():  # it imports while this process reads the settings
        return _train(ctx, given)


def _train(ctx: click.Context, given: Mapping[str, Any]) -> int:
    batch = given["dry_run"] or given["script"] is not None
    if given["resume"] is not None:
        if batch or given["on"] == "slurm":
            raise click.UsageError("--resume: submit the run's own script again with sbatch", ctx)
        run = resume_training(ctx, given["resume"], observer(given))
    else:
        settings = options.settings(ctx, KEYS)
        if settings.train.on == "slurm":
            return run_as_batch_job(
                settings,
                given["script"],
                dry_run=given["dry_run"],
                json_out=given["json_out"],
            )
        if batch:
            raise click.UsageError("--dry-run and --script need --on slurm", ctx)
        run = run_training(settings, observer(given))
    show_result(run.result, run.folder, json_out=given["json_out"])
    return int(run.outcome.code)


def run_as_batch_job(
    settings: Settings, script: Path | None, *, dry_run: bool, json_out: bool
) -> int:
    """Write the batch script of a run, and submit it unless this is a dry run."""
    from olaf.jobs.places.slurm_batch import refuse_strangers, submit, write_batch
    from olaf.jobs.rehearsal import rehearse
    from olaf.runs import folder as folders

    rehearse(settings)
    if script is not None:
        refuse_strangers(script)  # before the folder of the run exists
    out = settings.train.out
    if out is None:
        folder = folders.new_folder(settings.learner.environment)
    else:
        folder = folders.given_folder(Path(out))
    batch = write_batch(settings, folder, script)
    job = None if dry_run or script else submit(batch)
    log = str(batch.log) if job is None else str(batch.log).replace("%j", job)
    if json_out:
        click.echo(json.dumps({"job": job, "script": str(batch.script), "log": log}))
    elif job is None:
        click.echo(f"script  {batch.script}")
        click.echo(f"submit it with  sbatch {shlex.quote(str(batch.script))}")
    else:
        click.echo(f"submitted as job {job}   script {batch.script}")
        click.echo(f"it prints to {log}")
    return 0


def run_training(settings: Settings, observe: Observe) -> Run:
    """Run, watch, and write the results."""
    from olaf.processes.lines import Control
    from olaf.runs.running import start

    return start(settings, observe, Control(), signals=True)


def resume_training(ctx: click.Context, named: Path, observe: Observe) -> Run:
    """Continue the run in a folder with its settings, changed by the options of this command."""
    from olaf.errors.outcome import Exit, RunError
    from olaf.processes.lines import Control
    from olaf.runs.folder import Hold, find_folder
    from olaf.runs.journal import read_journal
    from olaf.runs.running import resume
    from olaf.runs.session import ORPHANS_S, Session
    from olaf.runs.settings import changes, resumed, settings_of
    from olaf.runs.trust import need_trust

    for option, key in (("--out", "out"), ("--config", "config_file"), ("--preset", "preset")):
        if ctx.params[key] is not None:
            raise RunError(
                f"{option} does not go with --resume: a run continues in its own folder with its "
                "own settings; change single settings by their options, or by --set",
                Exit.USAGE,
            )
    folder = find_folder(named)

    def say(text: str) -> None:
        click.echo(text, err=True)

    def waiting() -> None:
        say(f"waiting for the processes of the earlier session of {folder} to end")

    with Hold(folder).take(patience_s=ORPHANS_S, waiting=waiting) as hold:
        earlier = read_journal(folder)
        base = resumed(folder, earlier)
        need_trust(folder, base, trusts=ctx.params["trust"], starts_jobs=True)
        before = settings_of(folder)
        settings = options.settings(ctx, KEYS, base=base)
        told = changes(before, settings)
        say(
            f"continuing {folder}: {counted(earlier.updates, 'update')}, "
            f"{counted(earlier.steps, 'environment step')}, {earlier.at_s:.1f} s so far"
        )
        for change in told:
            say(f"  changed: {change}")
        session = Session(folder, hold, earlier, Control(), signals=True)
        return resume(session, settings, observe)


def show_result(result: dict[str, Any], out: Path, *, json_out: bool) -> None:
    """Print the final table, and with --json the result."""
    from olaf.report.tables import (
        against_note,
        against_table,
        fates_table,
        result_table,
        switches_table,
    )

    console = options.console(json_out=json_out)
    console.print()
    console.print(result_table(result))
    console.print()
    if not result["local"]:
        console.print(fates_table(result))
        console.print()
    if len(result["switches"]) > 1:
        console.print(switches_table(result))
        console.print()
    if result.get("against"):
        if "skipped" not in result["against"]:
            console.print(against_table(result))
        console.print(against_note(result), style="dim")
        console.print()
    console.print(f"report  {out / 'report.html'}   record  {out / 'run.json'}")
    if json_out:
        click.echo(json.dumps(result))


def observer(given: Mapping[str, Any]) -> Observe:
    """What shows a run: a live display on a terminal, or lines in the chosen form and level."""
    return partial(
        _observer,
        json_out=given["json_out"],
        as_json=given["log_format"] == "json",
        level=given["log_level"],
    )


def _observer(settings: Settings, *, json_out: bool, as_json: bool, level: str) -> Any:
    stream = sys.stderr if json_out else sys.stdout
    if stream.isatty() and not as_json and level == "info":
        from olaf.cli.live import Display

        return Display(plain_console(file=stream), title(settings))
    from olaf.cli.display import Lines

    return Lines(stream, as_json=as_json, level=level)


def title(settings: Settings) -> str:
    """The headline of a run: environment, workers and network."""
    from olaf.rl.packed import shown

    switch, train = settings.switch, settings.train
    environment = shown(settings.learner.environment)
    if train.local:
        return f"{environment}   one process, no network   seed {train.seed}"
    if train.transport == "tcp":
        return (
            f"{settings.learner.environment}   {counted(train.workers, 'worker')}, "
            f"plain TCP parameter server   uplink {switch.uplink or 'no limit'}   seed {train.seed}"
        )
    link = switch.uplink or (f"{switch.credits} credits" if switch.credits else "no limit")
    leaves = f" at {counted(train.leaves, 'leaf', 'leaves')}" if train.leaves else ""
    return (
        f"{settings.learner.environment}   {counted(train.workers, 'worker')} in "
        f"{counted(train.clusters, 'cluster')}"
        f"{leaves}"
        f"   {switch.queue} queue of {switch.slots}   uplink {link}   seed {train.seed}"
    )
