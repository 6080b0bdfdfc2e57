"""The ``olaf`` program: finds the command, and turns every result and error into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from olaf.cli.group import Lazy
from olaf.errors.outcome import Exit, failure_of
from olaf.values.printable import printable

COMMANDS = {
    "train": ("olaf.cli.train:train", "Train on this machine: server, switch and workers."),
    "compare": ("olaf.cli.compare:compare", "Train with FIFO, with OLAF and with two baselines."),
    "evaluate": ("olaf.cli.evaluate:evaluate", "Play with the model of a run; print its reward."),
    "export": ("olaf.cli.export:export", "Write a run's model as ONNX, TorchScript or arrays."),
    "switch": ("olaf.cli.roles:switch", "Run an aggregation switch."),
    "server": ("olaf.cli.roles:server", "Run a parameter server."),
    "worker": ("olaf.cli.roles:worker", "Run one worker that learns and pushes."),
    "top": ("olaf.cli.top:top", "Show live what running switches, servers and workers do."),
    "keys": ("olaf.cli.keys:keys", "Make the keys of jobs, so that only their workers get in."),
    "doctor": ("olaf.cli.doctor:doctor", "Find what is wrong on the way to a switch."),
    "flight": ("olaf.cli.flight:flight", "Show the last operations of all workers of a sum."),
    "replay": ("olaf.cli.replay:replay", "Replay recorded arrivals through a queue."),
    "simulate": ("olaf.cli.simulate:simulate", "Simulate training, a network or MINA's jobs."),
    "verify": ("olaf.cli.verify:verify", "Prove that clusters stay fresh, or show a violation."),
    "admit": ("olaf.cli.admit:admit", "Prove that a cluster may join the running ones."),
    "schedule": ("olaf.cli.schedule:schedule", "MINA's scheduler: give jobs hosts and trees."),
    "reproduce": ("olaf.cli.reproduce:reproduce", "Measure the papers' figures again."),
    "config": ("olaf.cli.config:config", "Print the configuration as TOML, each key explained."),
}

EPILOG = """\b
Examples:
  olaf train                                   LunarLander-v3, eight workers, until solved
  olaf train --env CartPole-v1 --workers 4     a smoke test of a few seconds
  olaf train --uplink 2mbit --slots 4          through a narrow link
  olaf train --resume runs/latest              continue a run that stopped
  olaf evaluate runs/latest                    the mean reward of the model
  olaf compare                                 FIFO and OLAF on a narrow link
  olaf reproduce --list                        the figures of the papers
  olaf verify examples/verify/jitter.toml      do clusters stay fresh in every run?
  olaf doctor --switch 10.0.0.1:5555           what is wrong on the way to the switch?
  olaf config > my.toml                        every key explained; use it with --config my.toml

\b
Exit codes:
  0: done   1: failed, or --until-reward was not reached   2: invalid options or configuration
    3: a peer did not answer in time   4: port in use   5: refused by the job   130: interrupted
    verify, admit:  0: holds   1: violated   2: undecided   3: invalid input
"""


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from olaf._olaf import __version__, wire_versions

        wire = ", ".join(f"{name} {version}" for name, version in wire_versions())
        click.echo(f"olaf {__version__} (wire versions: {wire})")
        ctx.exit()


@click.group(
    cls=Lazy,
    table=COMMANDS,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_version,
    help="Print the version, and those of the messages on the wire, and stop.",
)
def olaf() -> None:
    """Distributed reinforcement learning in which switches sum part of the updates.

    Workers push their updates to an aggregation switch. While updates wait for the uplink, the
    switch replaces and merges them (OLAF). A parameter server applies the updates that arrive.
    """


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return the exit code."""
    try:
        result: Any = olaf.main(args=argv, prog_name="olaf", standalone_mode=False)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("olaf: interrupted", err=True)
        return Exit.INTERRUPTED
    except BrokenPipeError:
        return Exit.OK
    except Exception as error:
        failure = failure_of(error)
        if failure is None:
            raise
        # A worker's words may be in it.
        text = printable(str(failure), keep="\n\t")
        click.echo(f"olaf: {text}", err=True)
        return failure.code
    return int(result) if isinstance(result, int) else Exit.OK


def main() -> NoReturn:
    """Entry point of the shell command."""
    sys.exit(run())
