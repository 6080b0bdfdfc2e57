"""Code that a run's files name: it runs only where the user has made the run, or says to trust it.

A run's settings may name modules (``learner.environment = "mine:Dot-v0"``), a file
with a pickled environment, and options of a batch system. Somebody else's run could name
anything. So a run carries a mark: a code of authentication (HMAC) of these names, under a secret
that stays in the user's home. A run without a right mark runs no code unless ``--trust`` says so.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib.machinery
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.settings import Settings
from olaf.rl.packed import is_packed
from olaf.values.numbers import counted

MARK = ".mark"
"""File of a run's folder with its mark."""

KEYS = ("learner.environment", "learner.module")
SHELL_KEYS = ("slurm.setup", "slurm.options")


@dataclass(frozen=True)
class Named:
    """Code that a run names: a module, a file, or shell lines."""

    key: str
    text: str
    """The setting's value."""
    place: str
    """Where the code is, for people."""
    digest: str = ""
    """SHA-256 of a file in the run's folder."""


def named_by(tables: Mapping[str, Mapping[str, Any]]) -> list[Named]:
    """The code that the tables of a run's settings name. Runs none of it."""
    found = []
    for key in (*KEYS, *SHELL_KEYS):
        section, _, name = key.partition(".")
        value = tables.get(section, {}).get(name)
        if not value:
            continue
        if key in SHELL_KEYS:
            found.append(Named(key, json.dumps(value), "for the batch system"))
        elif is_packed(value):
            found.append(_packed(key, str(value)))
        elif ":" in value:
            found.append(Named(key, str(value), _place(str(value).partition(":")[0])))
    return found


def _packed(key: str, name: str) -> Named:
    file, _, rest = name.rpartition(":")
    try:
        inside = Path(file).read_bytes()
    except OSError:
        return Named(key, rest, f"{file}, which cannot be read")
    digest = hashlib.sha256(inside).hexdigest()
    return Named(key, rest, f"{file}, {counted(len(inside), 'byte')} of pickled code", digest)


def _place(module: str) -> str:
    """Where Python would find a module. Nothing is imported: not even the packages around it."""
    top, *inner = module.split(".")
    paths: list[str] | None = [os.getcwd()]
    spec = importlib.machinery.PathFinder.find_spec(top, paths)
    if spec is None:
        spec = importlib.machinery.PathFinder.find_spec(top)
    for name in inner:
        if spec is None or not spec.submodule_search_locations:
            break
        paths = list(spec.submodule_search_locations)
        spec = importlib.machinery.PathFinder.find_spec(name, paths)
    return "not found" if spec is None or spec.origin is None else spec.origin


def need_trust(
    folder: Path,
    tables: Mapping[str, Mapping[str, Any]],
    *,
    trusts: bool,
    given: Mapping[str, Any] = {},
    starts_jobs: bool = False,
) -> None:
    """Check that the code which a run names may run, before anything of it does.

    folder: the run's. tables: its settings. given: keys that the user has given himself: their code
    is his. trusts: the user has said ``--trust``; the run then gets a mark. starts_jobs: the
    settings for the batch system are used, too.

    Raises RunError, which names the code and where it is.
    """
    used = [one for one in named_by(tables) if starts_jobs or one.key not in SHELL_KEYS]
    theirs = [one for one in used if given.get(one.key) is None]
    if not theirs or is_marked(folder, tables):
        return
    if trusts:
        mark(folder, tables)
        return
    lines = [f"  {one.key} = {one.text}   ({one.place})" for one in theirs]
    raise RunError(
        f"{folder}: it names code, and it carries no mark that you have made it here. This would "
        "run:\n" + "\n".join(lines) + "\nIf you trust it, say --trust; the run then gets your mark",
        Exit.USAGE,
    )


def mark(folder: Path, tables: Mapping[str, Mapping[str, Any]]) -> None:
    """Give a run the user's mark. Without a home to keep the secret in, the run has none."""
    if not named_by(tables):
        return
    with suppress(OSError):
        (folder / MARK).write_text(_mark_of(_secret(create=True), tables) + "\n", encoding="ascii")


def mark_settings(folder: Path, settings: Settings) -> None:
    """The same, from settings."""
    mark(folder, settings.model_dump(mode="json"))


def is_marked(folder: Path, tables: Mapping[str, Mapping[str, Any]]) -> bool:
    """True if the run has the user's mark for the code that it names now."""
    try:
        written = (folder / MARK).read_text(encoding="ascii").strip()
        return hmac.compare_digest(written, _mark_of(_secret(create=False), tables))
    except (OSError, UnicodeDecodeError, TypeError):
        return False


def _mark_of(secret: bytes, tables: Mapping[str, Mapping[str, Any]]) -> str:
    names = [[one.key, one.text, one.digest] for one in named_by(tables)]
    return hmac.new(secret, json.dumps(names).encode(), hashlib.sha256).hexdigest()


def _secret(*, create: bool) -> bytes:
    """The user's secret. Raises OSError if there is none, or none can be made."""
    home = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    file = Path(home) / "olaf" / "runs.secret"
    with suppress(FileNotFoundError):
        return file.read_bytes()
    if not create:
        raise FileNotFoundError(file)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Two runs may begin at the same time: the first one's secret stays.
    half = file.with_name(f"{file.name}.{os.getpid()}")
    with os.fdopen(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(secrets.token_bytes(32))
    try:
        with suppress(FileExistsError):
            os.link(half, file)
    finally:
        half.unlink()
    return file.read_bytes()
