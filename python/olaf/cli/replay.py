"""``olaf replay``: run recorded arrivals through the pure engine, in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from olaf.cli import options
from olaf.jobs.queues import EXPLAINED, NAMES


@click.command()
@click.argument("trace", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option(
    "--engine",
    type=click.Choice(NAMES),
    default="olaf",
    show_default=True,
    help=f"Discipline of the queue: {EXPLAINED}",
)
@click.option(
    "--slots",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Number of updates that the queue holds, including the update on the wire.",
)
@click.option("--rate", required=True, metavar="RATE", help="Bandwidth of the link: 1.9mbit.")
@click.option(
    "--gate",
    default="off",
    show_default=True,
    metavar="THRESHOLD|off",
    help="Reward gate: a threshold in units of reward.",
)
@click.option(
    "--head",
    type=click.Choice(["locked", "open", "gone"]),
    default="locked",
    show_default=True,
    help="While an update is sent, its slot is locked, still merges (open), or is free (gone).",
)
@options.as_json
def replay(**given: Any) -> None:
    """Run the arrivals of TRACE.csv through a queue in virtual time, to the last departure.

    The columns are t_ns,cluster,worker,seq,reward,bytes, in order of time. A departure starts when
    the link is free, and takes bytes*8/rate seconds.

    \b
    Examples:
      olaf replay trace.csv --rate 2mbit --slots 4
      olaf replay trace.csv --rate 2mbit --engine freshest
      olaf replay trace.csv --engine fifo --rate 40gbit --json > fifo.json
    """
    from olaf import _olaf
    from olaf.values import units

    engine, slots, rate, gate = (given[key] for key in ("engine", "slots", "rate", "gate"))
    try:
        units.rate(rate)
        text = _olaf.replay(
            str(given["trace"]),
            engine=engine,
            slots=slots,
            rate=rate,
            gate=_threshold(gate),
            head=given["head"],
            full=given["json_out"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if given["json_out"]:
        click.echo(text)
    else:
        _print_summary(json.loads(text)["summary"], f"{engine}, {slots} slots, {rate}, gate {gate}")


def _threshold(gate: str) -> float | None:
    try:
        return None if gate == "off" else float(gate)
    except ValueError:
        raise click.BadParameter(
            f"{gate!r} is neither a number nor off", param_hint="--gate"
        ) from None


def _print_summary(summary: dict[str, Any], title: str) -> None:
    from olaf.report.tables import replay_table

    options.console(json_out=False).print(replay_table(summary, title))
