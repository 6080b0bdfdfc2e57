"""``olaf schedule``: the group; each subcommand has its own file."""

from __future__ import annotations

import click

from olaf.cli.group import Lazy

COMMANDS: dict[str, tuple[str, str]] = {
    "serve": ("olaf.cli.schedule_serve:serve", "Run the allocation controller."),
    "submit": ("olaf.cli.schedule_jobs:submit", "Submit a job."),
    "list": ("olaf.cli.schedule_jobs:list_jobs", "List jobs."),
    "explain": ("olaf.cli.schedule_jobs:explain", "Explain why a job has its hosts and tree."),
    "status": ("olaf.cli.schedule_jobs:status", "Show the cluster."),
    "events": ("olaf.cli.schedule_jobs:events", "Print past events, and with --follow new ones."),
    "finish": ("olaf.cli.schedule_jobs:finish", "Report that a job has ended well."),
    "fail": ("olaf.cli.schedule_jobs:fail", "Report that a job is dead."),
    "cancel": ("olaf.cli.schedule_jobs:cancel", "Stop a job."),
    "drain": ("olaf.cli.schedule_jobs:drain", "Keep trees off a switch, or jobs off a host."),
    "undrain": ("olaf.cli.schedule_jobs:undrain", "Allow trees or jobs there again."),
    "mix": ("olaf.cli.schedule_mix:mix", "Draw a random list of jobs for the simulator."),
    "share": ("olaf.cli.schedule_sharing:share", "Run the sharing controller."),
    "host": ("olaf.cli.schedule_sharing:host", "Play one host of a job that shares."),
    "predict": ("olaf.cli.schedule_sharing:predict", "Predict what jobs gain by sharing."),
    "shared": ("olaf.cli.schedule_sharing:shared", "Check the logs of jobs that shared."),
    "record": ("olaf.cli.schedule_record:record", "Record the all-reduces of a model's step."),
    "timeline": ("olaf.cli.schedule_timeline:timeline", "Draw a record over time: page or trace."),
}


@click.group(cls=Lazy, table=COMMANDS)
def schedule() -> None:
    """Schedule jobs that compete for the switches' capacity to sum (MINA).

    Each job gets hosts, and an aggregation tree through switches that no other job uses.

    \b
    Examples:
      olaf schedule serve --topology fat-tree:16 --store cluster.db
      olaf schedule submit vgg --hosts 16          the service assigns hosts and a tree
      olaf schedule explain 1                      why job 1 has its hosts and tree
    """
