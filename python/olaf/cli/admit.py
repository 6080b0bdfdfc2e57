"""``olaf admit``: may a cluster join the running ones?"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf.cli import asking, options

if TYPE_CHECKING:
    from olaf.verify.admission import Admission

EXITS = {"admit": asking.YES, "refuse": asking.NO, "undecided": asking.UNDECIDED}
COLOURS = {"admit": "green", "refuse": "red", "undecided": "yellow"}


@click.command(cls=asking.Question)
@click.option(
    "--cluster",
    "cluster",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="NEW.toml",
    help="The new cluster: one table [cluster].",
)
@click.option(
    "--to",
    "running",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="RUNNING.toml",
    help="A SPEC.toml: the running clusters, their queue, and the objectives.",
)
@click.option(
    "--timeout",
    callback=asking.time_of,
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Time limit for the answer and the suggestion together.",
)
@options.as_json
def admit(*, cluster: Path, running: Path, timeout: Decimal, json_out: bool) -> int:
    """Prove that a cluster may join: with it, every objective of RUNNING.toml must still hold.

    If an objective would not hold, the command also searches for a larger interval, a quota or
    more slots with which all hold. It suggests only a change that it has proved.

    \b
    Examples:
      olaf admit --cluster examples/verify/new.toml --to examples/verify/running.toml
      olaf admit --cluster new.toml --to running.toml --timeout 10s --json

    \b
    Exit codes:
      0: admit   1: refuse   2: undecided within --timeout   3: invalid input
    """
    from olaf import extras

    extras.need("verify", "z3", "rich", what="olaf admit")
    from olaf.verify import admission
    from olaf.verify.reading import read, read_newcomer

    asking.above_zero(timeout)
    newcomer, spec = read_newcomer(cluster), read(running)
    with asking.interruptible() as stop, asking.Thinking() as thinking:
        said = admission.admit(
            newcomer, spec, timeout_s=float(timeout) / 1000, say=thinking.say, stop=stop
        )
    if json_out:
        click.echo(json.dumps(_record(newcomer.name, said)))
    console = options.console(json_out=json_out)

    def line(text: str, style: str = "") -> None:
        console.print(text, soft_wrap=True, markup=False, style=style)

    line(f"{said.answer.upper():9}  {newcomer.name}: {said.reason}", f"bold {COLOURS[said.answer]}")
    for verdict in said.verdicts:
        from olaf.verify.words import claim

        line(f"           {verdict.answer}: {claim(verdict.instance, verdict.objective)}")
    if said.suggestion is not None:
        line(f"           would fit: {said.suggestion.key} = {said.suggestion.value}")
    if said.running_holds is False:
        line("           the running clusters violate it alone: `olaf verify` shows how")
    return EXITS[said.answer]


def _record(newcomer: str, said: Admission) -> dict[str, Any]:
    from olaf.verify.record import SCHEMA, model_of, verdict_record

    suggestion = said.suggestion
    return {
        "schema": SCHEMA,
        "newcomer": newcomer,
        "answer": said.answer,
        "reason": said.reason,
        "running_holds": said.running_holds,
        "suggestion": None
        if suggestion is None
        else {
            "key": suggestion.key,
            "value": float(suggestion.value),
            "text": suggestion.text,
            "verdicts": [verdict_record(verdict) for verdict in suggestion.verdicts],
        },
        "model": model_of(said.verdicts[0].instance),
        "verdicts": [verdict_record(verdict) for verdict in said.verdicts],
    }
