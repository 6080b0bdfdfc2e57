"""``olaf flight``: the last operations of all workers of a sum, side by side."""

from __future__ import annotations

import json
from pathlib import Path

import click

from olaf.cli import options
from olaf.errors.outcome import Exit


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option(
    "--last",
    default=10,
    show_default=True,
    type=click.IntRange(1, 1_000_000),
    help="Operations to show of each job: the last ones, or those up to the first trouble.",
)
@click.option(
    "--ask/--no-ask",
    default=True,
    show_default=True,
    help="Ask workers that run to write their files anew. They answer within 2 s.",
)
@options.as_json
def flight(*, folder: Path, last: int, ask: bool, json_out: bool) -> int:
    """Show the last operations of all workers of a sum, side by side.

    Workers that were started with OLAF_FLIGHT=FOLDER write them there: of olaf.connect_sum, and of
    torch's backend olaf. With OLAF_CHECK=1 each operation has the line of the program that called
    it. The first operation at which workers differ has a mark, and below the table stands who has
    not begun it, and who waits for it.

    \b
    Examples:
      OLAF_FLIGHT=/tmp/flight OLAF_CHECK=1 torchrun --nproc-per-node 4 train.py
      olaf flight /tmp/flight                 why does the job hang?
      olaf flight /tmp/flight --last 50 --json

    \b
    Exit codes:
      0: nothing differs and nothing has failed   1: something does   2: no files there
    """
    from olaf.doctor import flight as reading
    from olaf.doctor import flight_text as text

    if ask:
        reading.asked(folder)
    try:
        jobs, wrong = reading.read(folder)
    except reading.NoFlightError as error:
        raise click.UsageError(str(error)) from None
    for problem in wrong:
        click.echo(f"left out {problem}", err=True)
    if json_out:
        click.echo(json.dumps({"jobs": [text.told(job) for job in jobs], "left_out": wrong}))
    else:
        for job in jobs:
            click.echo("\n".join(text.lines_of(job, last)) + "\n")
    good = all(job.is_good for job in jobs)
    return Exit.OK if good else Exit.FAILED
