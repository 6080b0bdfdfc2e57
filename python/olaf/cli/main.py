"""The ``olaf`` program: finds the command, and turns every ending into an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from olaf.cli.group import Lazy
from olaf.outcome import Exit, failure_of

COMMANDS = {
    "train": ("olaf.cli.train:train", "Train on this machine: server, switch and workers."),
    "compare": ("olaf.cli.compare:compare", "The same training with FIFO and with OLAF."),
    "evaluate": ("olaf.cli.evaluate:evaluate", "How good the model of a run is, played greedily."),
    "export": ("olaf.cli.export:export", "The model of a run as ONNX, TorchScript or arrays."),
    "switch": ("olaf.cli.roles:switch", "Run an aggregation switch."),
    "server": ("olaf.cli.roles:server", "Run a parameter server."),
    "worker": ("olaf.cli.roles:worker", "Run one worker that learns and pushes."),
    "replay": ("olaf.cli.replay:replay", "Replay recorded arrivals through the pure queue."),
    "simulate": ("olaf.cli.simulate:simulate", "Workers, switches and a server in virtual time."),
    "verify": ("olaf.cli.verify:verify", "Does it hold in every run? Proved, or a counterexample."),
    "admit": ("olaf.cli.admit:admit", "May a cluster join those that run, and what would fit?"),
    "schedule": ("olaf.cli.schedule:schedule", "MINA's scheduler: hosts and trees for jobs."),
    "reproduce": ("olaf.cli.reproduce:reproduce", "A paper's figures, measured again."),
    "config": ("olaf.cli.config:config", "Print the configuration as TOML, each key explained."),
}

EPILOG = """\b
Examples:
  olaf train                                   LunarLander-v3, eight workers, until solved
  olaf train --env CartPole-v1 --workers 4     a smoke test of some seconds
  olaf train --uplink 2mbit --slots 4          through a narrow link
  olaf train --resume runs/latest              go on where it stopped
  olaf evaluate runs/latest                    how good the model is
  olaf compare                                 FIFO against OLAF on a narrow link
  olaf reproduce --list                        the papers' figures, measured again
  olaf verify examples/verify/jitter.toml      do clusters stay fresh, in every run?
  olaf config > my.toml                        every key, explained; then --config my.toml

\b
Exit codes:
  0 done   1 failed, or the reward asked for was not reached   2 usage or configuration
  3 a peer did not answer in time   4 port in use   5 refused by the job   130 interrupted
  verify, admit:  0 holds   1 violated   2 undecided   3 bad input
"""


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from olaf._olaf import __version__

        click.echo(f"olaf {__version__}")
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
    help="Print the version and stop.",
)
def olaf() -> None:
    """Distributed reinforcement learning in which the network does part of the sum.

    Workers push their updates through an aggregation switch, which replaces and merges them while
    they wait for its uplink (OLAF); a parameter server applies what arrives.
    """


def run(argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code."""
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
        click.echo(f"olaf: {failure}", err=True)
        return failure.code
    return int(result) if isinstance(result, int) else Exit.OK


def main() -> NoReturn:
    """Enter from the shell."""
    sys.exit(run())
