"""``olaf schedule``: the group; each command is a file of its own."""

from __future__ import annotations

import click

from olaf.cli.group import Lazy

COMMANDS: dict[str, tuple[str, str]] = {
    "mix": ("olaf.cli.schedule_mix:mix", "Jobs drawn by chance, as a list for the simulator."),
    "record": ("olaf.cli.schedule_record:record", "What a model communicates in a step."),
}


@click.group(cls=Lazy, table=COMMANDS)
def schedule() -> None:
    """Schedule jobs that share the switches' capacity to sum (MINA).

    A job gets its hosts, and an aggregation tree through switches that nobody else uses.

    \b
    Examples:
      olaf schedule COMMAND --help                 what each command takes, with examples
    """
