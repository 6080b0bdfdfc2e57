"""``olaf keys``: make the keys of jobs, and look at them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from olaf.cli import options
from olaf.errors.outcome import ConfigurationError, RunError

T = TypeVar("T")
FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def keys() -> None:
    """Make a key for a job, so that only workers with the key are let in.

    A key is a file that only its owner may read. Workers and servers get the job's key; a switch
    gets the switch's key, which is derived from it. With a key every datagram is signed: who has
    none cannot join, change, or repeat anything. Datagrams are not encrypted.

    `public` in the place of a key file names a key that everybody has. It finds content that
    changed on the way, and keeps nobody out.

    \b
    Examples:
      olaf keys new job.key                         a key for any job
      olaf keys new job7.key --job 7                a key that is good for job 7 alone
      olaf keys switch job.key switch.key           what the switch needs of it
      olaf keys rotate job.key --old-until 24h      a new key; the old one works for a day more
      olaf keys rotate job.key --finish             the old one ends
      olaf switch --listen 0.0.0.0:5555 --key-file switch.key
      olaf server --listen 0.0.0.0:5556 --key-file job.key
      OLAF_KEY_FILE=job.key python train.py         for olaf.connect, connect_sum, torchrun
    """


@keys.command()
@click.argument("file", type=FILE)
@click.option("--job", type=click.IntRange(0, 2**32 - 1), help="The one job that it is for.")
@options.as_json
def new(file: Path, job: int | None, json_out: bool) -> None:
    """Write a new key to FILE, which must not exist."""
    from olaf import _olaf

    name = _made(lambda: _olaf.new_key(file, job))
    _tell({"file": str(file), "name": name, "kind": "job", "job": job}, as_json=json_out)


@keys.command()
@click.argument("file", type=FILE)
@click.argument("out", type=FILE)
@options.as_json
def switch(file: Path, out: Path, json_out: bool) -> None:
    """Write what a switch needs of the key in FILE to OUT.

    OUT must not exist, or have what the switch needed of the same key before a rotation: then it is
    replaced in one step, and a running switch takes it up. A switch with it checks and signs
    datagrams. The job's key cannot be found from it.
    """
    from olaf import _olaf

    name = _made(lambda: _olaf.switch_key(file, out))
    _, kind, job = _made(lambda: _olaf.key_info(out))
    _tell({"file": str(out), "name": name, "kind": kind, "job": job}, as_json=json_out)


@keys.command()
@click.argument("file", type=FILE)
@options.as_json
def show(file: Path, json_out: bool) -> None:
    """Print the public name of the key in FILE, who it is for, and its job.

    Two parties understand each other if their keys have the same name.
    """
    from olaf import _olaf

    name, kind, job = _made(lambda: _olaf.key_info(file))
    about = {"file": str(file), "name": name, "kind": kind, "job": job}
    _tell(about | _old(file), as_json=json_out)


@keys.command()
@click.argument("file", type=FILE)
@click.option(
    "--old-until",
    type=options.Seconds(),
    metavar="TIME",
    help="How long the key until now works on, such as 24h; 0 ends it at once.",
)
@click.option("--finish", is_flag=True, help="End the old key of the last rotation now.")
@options.as_json
def rotate(file: Path, old_until: float | None, finish: bool, json_out: bool) -> None:
    """Write a new key in the place of the one in FILE, while its job runs.

    The file then has both keys. Copy it to every worker and server, and write the switches' files
    anew: `olaf keys switch FILE SWITCH.key`. The order does not matter. Running parties take the
    file up within two seconds, without a restart, and no update is lost. Parties with the old file
    work until the time is over.

    `with_old_key` in the status of switches and servers (`olaf top`, /metrics) counts the parties
    that still use the old key. When all counts are 0, end it with --finish: first where the server
    is, then at the switches and the workers.
    """
    from olaf import _olaf

    if finish == (old_until is not None):
        raise ConfigurationError(
            "give one of the two: --old-until TIME for a new key, or --finish to end the old one"
        )
    if finish:
        name = _made(lambda: _olaf.end_old_key(file))
    else:
        until_s = int(time.time() + (old_until or 0.0))
        name = _made(lambda: _olaf.rotate_key(file, until_s))
    _, kind, job = _made(lambda: _olaf.key_info(file))
    about = {"file": str(file), "name": name, "kind": kind, "job": job}
    _tell(about | _old(file), as_json=json_out)


def _old(file: Path) -> dict[str, Any]:
    """What the file says of the key before the last rotation."""
    from olaf import _olaf

    old = _made(lambda: _olaf.old_key(file))
    if old is None:
        return {}
    name, until_s, is_good = old
    return {"old_name": name, "old_until_unix_s": until_s, "old_is_good": is_good}


def _made(call: Callable[[], T]) -> T:
    """What the core returns. A file that is no private key is a configuration error."""
    try:
        return call()
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    except OSError as error:
        raise RunError(str(error)) from None


def _tell(about: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(about))
        return
    job = "any job" if about["job"] is None else f"job {about['job']}"
    whose = {"job": "workers and servers", "switch": "switches"}[str(about["kind"])]
    click.echo(f"{about['file']}: key {about['name']} of {job}, for {whose}")
    if "old_name" in about:
        at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(about["old_until_unix_s"]))
        when = f"works until {at}" if about["old_is_good"] else f"has ended ({at})"
        click.echo(f"{about['file']}: the key before, {about['old_name']}, {when}")
