"""``olaf schedule serve``: run the allocation controller."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from olaf.cli import options

PLACEMENTS = ("fragments", "first-fit", "random")
TREES = ("gain", "mina", "first", "first-gain", "random", "none")
JOINS = ("none", "one", "several")
SHARING = ("gain", "mina")
"""The policies for trees under which jobs can share switches."""
DEFAULTS = {
    "capacity": "port:1",
    "placement": "fragments",
    "trees": "gain",
    "seed": 0,
    "most_queued": 10_000,
    "most_ended": 1_000,
}


@click.command()
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="SQLite file in which the service keeps its state. Created if missing.",
)
@click.option(
    "--topology",
    metavar="fat-tree:16|FILE",
    help="Hosts and switches: fat-tree:DEGREE, leaf-spine:LEAVES,HOSTS,SPINES, or a graph in a "
    "TOML or JSON file. The topology of a store never changes.",
)
@click.option(
    "--capacity",
    metavar="port:1|switch:1|slots:8",
    help="Capacity of the switches: port:N (jobs per port), switch:N (jobs per switch) or slots:N "
    "(slots per switch). Default: port:1.",
)
@click.option(
    "--placement", type=click.Choice(PLACEMENTS), help="Policy for hosts. Default: fragments."
)
@click.option("--trees", type=click.Choice(TREES), help="Policy for trees. Default: gain.")
@click.option(
    "--join",
    type=click.Choice(JOINS),
    help="Number of job groups with which a job may share switches when its trees conflict with "
    "theirs. none: a switch never has more jobs than its capacity, and a job may wait without a "
    "tree. one, several: jobs share switches; a program of yours must make them take turns. "
    "Default: none, or the value in the store.",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), help="Random seed. Default: 0.")
@click.option(
    "--patterns",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    multiple=True,
    metavar="DIR",
    help="Folder of patterns, NAME.json, added to those that come with Olaf. Repeatable. The store "
    "keeps their contents: a restart needs no folder.",
)
@click.option(
    "--bandwidth",
    metavar="RATE",
    help="Bandwidth of a host-only all-reduce, in tc's units. Together with --speedup and the "
    "pattern it determines how much time a tree saves. Kept in the store. Default: 100gbit.",
)
@click.option(
    "--speedup",
    type=click.FloatRange(1, 1000),
    help="Speed of an all-reduce in the switches relative to host-only. Kept in the store. "
    "Default: 2.",
)
@click.option(
    "--change",
    is_flag=True,
    help="Accept a --bandwidth, --speedup or --patterns that differs from the store, for jobs "
    "submitted from now on. Without --change the service refuses to start.",
)
@click.option(
    "--listen",
    default="127.0.0.1:7070",
    show_default=True,
    metavar="HOST:PORT",
    help="Address for clients; port 0 picks a free port.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File with the token that every request must send. Required unless the address is local.",
)
@options.log_format
@options.log_level
@options.as_json
def serve(
    *,
    store: Path,
    topology: str | None,
    patterns: tuple[Path, ...],
    bandwidth: str | None,
    speedup: float | None,
    change: bool,
    listen: str,
    token_file: Path | None,
    log_format: str,
    log_level: str,
    json_out: bool,
    **chosen: Any,
) -> None:
    """Run the allocation controller until SIGTERM or Ctrl-C.

    Clients submit jobs over HTTP and JSON (GET /openapi.json describes the API). Jobs start in the
    order of submission. Each gets hosts and an aggregation tree. GET /events tells its runtime when
    to release a tree and when to acquire another. The service writes each request to --store before
    it answers, so it continues after a crash. The store also keeps the cluster, the policies, the
    bandwidth, the speed-up and the patterns: a restart needs only --store, and the same request
    has the same gain.

    \b
    Examples:
      olaf schedule serve --topology fat-tree:16 --store cluster.db
      olaf schedule serve --store cluster.db                 # continue with this store
      olaf schedule serve --store cluster.db --bandwidth 25gbit --change
      olaf schedule serve --topology racks.toml --capacity slots:8 --store racks.db
      olaf schedule serve --topology fat-tree:16 --store c.db --listen 0.0.0.0:7070 \\
          --token-file token --json                          # one line of JSON per event

    \b
    Exit codes:
      0: stopped by SIGTERM or Ctrl-C   1: the store failed   2: invalid options
      4: the address is in use
    """
    from olaf import extras

    extras.need("schedule", "fastapi", "uvicorn", what="olaf schedule serve")
    from olaf.schedule.reading import read_topology
    from olaf.schedule.serving import Settings
    from olaf.schedule.serving import serve as run
    from olaf.schedule.simulation import trees_policy
    from olaf.values import units

    network = {}
    if bandwidth is not None:
        try:
            network["bytes_per_second"] = max(units.rate(bandwidth) // 8, 1)
        except ValueError as error:
            raise click.UsageError(f"--bandwidth: {error}") from None
    if speedup is not None:
        network["speedup_millis"] = round(speedup * 1000)
    given = {key: value for key, value in chosen.items() if value is not None}
    spec = None
    left_out = () if "join" in given else ("join",) if "trees" in given else ("join", "trees")
    if topology is not None:
        # The simulator shares by default. Here no program makes the jobs take turns yet.
        trees = given.get("trees", DEFAULTS["trees"])
        join = given.pop("join", "none" if trees in SHARING else None)
        spec = {"topology": read_topology(topology), **DEFAULTS, **given}
        if join is not None:
            spec["trees"] = trees_policy(str(spec["trees"]), join=join)
    elif given:
        raise click.UsageError(f"--{next(iter(given))} is for a new store: give --topology too")
    settings = Settings(
        store=store,
        listen=listen,
        spec=spec,
        left_out=left_out,
        token_file=token_file,
        patterns=list(patterns),
        network=network,
        change=change,
    )
    run(settings, as_json=json_out, log_format=log_format, log_level=log_level)
