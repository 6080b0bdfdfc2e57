"""``olaf schedule``: the group; each command is a file of its own."""

from __future__ import annotations

import click

from olaf.cli.group import Lazy

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("olaf.cli.schedule_serve:serve", "Run the allocation controller."),
    "submit": ("olaf.cli.schedule_jobs:submit", "Submit a job."),
    "list": ("olaf.cli.schedule_jobs:list_jobs", "List jobs."),
    "explain": ("olaf.cli.schedule_jobs:explain", "Why does a job sit where it sits?"),
    "status": ("olaf.cli.schedule_jobs:status", "Show the cluster."),
    "events": ("olaf.cli.schedule_jobs:events", "Print what happened, and what happens."),
    "finish": ("olaf.cli.schedule_jobs:finish", "A job has ended well."),
    "fail": ("olaf.cli.schedule_jobs:fail", "A job is dead."),
    "cancel": ("olaf.cli.schedule_jobs:cancel", "Stop a job."),
    "drain": ("olaf.cli.schedule_jobs:drain", "Keep trees from a switch, or jobs from a host."),
    "undrain": ("olaf.cli.schedule_jobs:undrain", "Let them have it again."),
    "mix": ("olaf.cli.schedule_mix:mix", "Jobs drawn by chance, as a list for the simulator."),
    "share": ("olaf.cli.schedule_sharing:share", "Run the sharing controller."),
    "host": ("olaf.cli.schedule_sharing:host", "Play one host of a job that shares."),
    "predict": ("olaf.cli.schedule_sharing:predict", "What will jobs that share gain?"),
    "shared": ("olaf.cli.schedule_sharing:shared", "Did those that shared keep the rules?"),
    "record": ("olaf.cli.schedule_record:record", "What a model communicates in a step."),
    "timeline": ("olaf.cli.schedule_timeline:timeline", "Draw a record over time: page or trace."),
}


@click.group(cls=Lazy, table=COMMANDS)
def schedule() -> None:
    """Schedule jobs that share the switches' capacity to sum (MINA).

    A job gets its hosts, and an aggregation tree through switches that nobody else uses.

    \b
    Examples:
      olaf schedule serve --topology fat-tree:16 --store cluster.db
      olaf schedule submit vgg --hosts 16          the service gives it hosts and a tree
      olaf schedule explain 1                      why it sits where it sits
    """
