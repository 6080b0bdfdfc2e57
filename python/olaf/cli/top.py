"""``olaf top``: what running roles do, live in the terminal."""

from __future__ import annotations

import json
import sys
import threading
import time

import click

from olaf import extras
from olaf.cli import options
from olaf.cli.looking import Look, Reader
from olaf.errors.outcome import Exit

DEFAULT = "127.0.0.1:9100"


@click.command()
@click.argument("addresses", nargs=-1, metavar="[HOST:PORT].. ")
@click.option(
    "--every",
    type=options.Seconds(least=0.2),
    default="1s",
    show_default=True,
    metavar="TIME",
    help="Interval between looks.",
)
@click.option("--once", is_flag=True, help="Look twice, to know the rates; print; and stop.")
@click.option("--token-file", metavar="FILE", help="The token of roles on other machines.")
@options.as_json
def top(
    addresses: tuple[str, ...], every: float, once: bool, token_file: str | None, json_out: bool
) -> int:
    """Show what running roles do: jobs, clusters, ages, occupancy, rates, fates, refusals.

    Each address is the one that a role serves its metrics on: start the role with --metrics
    HOST:PORT. Without an address, 127.0.0.1:9100. Ctrl-C ends it.

    \b
    How to read it:
      a rate is an average since the last look; a total counts since the role was started
      age       Age-of-Model: how old the newest update of a cluster in the model is
      behind    versions by which a cluster's updates are late; it grows on a narrow uplink
      occupancy near the number of slots for long: updates wait, so they merge or are replaced
      refused   each line says what was refused, why, and how often

    \b
    Examples:
      olaf switch --metrics 127.0.0.1:9100 --upstream 10.0.0.2:5556 &
      olaf top
      olaf top 127.0.0.1:9100 127.0.0.1:9101          a switch and its server
      olaf top 10.0.0.1:9100 --token-file token.txt   another machine
      olaf top --once --json | jq '.[].status.fates'

    \b
    Exit codes with --once:
      0: every role answered   2: invalid options   3: a role did not answer
    """
    reader = Reader(addresses or (DEFAULT,), token_file)
    if once:
        reader.look()
        threading.Event().wait(every)  # a rate needs two looks
        looks = reader.look()
        _print(looks, json_out=json_out)
        return Exit.OK if all(look.status for look in looks) else Exit.UNREACHABLE
    if json_out:
        _stream(reader, every)
    else:
        _live(reader, every)
    return Exit.OK


def _print(looks: list[Look], *, json_out: bool) -> None:
    if json_out:
        click.echo(json.dumps([look.as_json() for look in looks]))
        return
    from olaf.cli.looking_view import view

    console = options.console(json_out=False)
    console.print(view(looks))


def _stream(reader: Reader, every_s: float) -> None:
    """One JSON line for each look, until the reader of stdout leaves or Ctrl-C."""
    while True:
        click.echo(json.dumps([look.as_json() for look in reader.look()]))
        sys.stdout.flush()
        time.sleep(every_s)


def _live(reader: Reader, every_s: float) -> None:
    extras.need("train", "rich", what="`olaf top`")
    from rich.live import Live

    from olaf.cli.looking_view import view

    console = options.console(json_out=False)
    if not console.is_terminal:
        click.echo(
            "olaf top: the output is no terminal: the last picture is written at the end; --once "
            "prints one and stops, --json prints a line for each look",
            err=True,
        )
    with Live(console=console, auto_refresh=False, screen=console.is_terminal) as live:
        try:
            while True:
                live.update(view(reader.look()), refresh=True)
                time.sleep(every_s)
        except KeyboardInterrupt:
            return
