"""What survives a restart: the accepted commands, in one SQLite file.

The core is deterministic, so its commands are its state. A command is on the disk (WAL,
``synchronous=FULL``: fsync at each commit) before anybody hears of what it did. Now and then a
snapshot takes the place of the commands before it.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olaf._olaf import Allocator
from olaf.outcome import Exit, RunError
from olaf.schedule.worth import Worth
from olaf.usage import ConfigurationError

APPLICATION = 0x4F6C6166
"""``Olaf``: tells our files from other programs'."""

VERSION = 2
"""Of the tables. A file of a newer version is refused; one of an older is brought up to date."""

TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE commands (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at_ms INTEGER NOT NULL,
    command TEXT NOT NULL,
    digest INTEGER NOT NULL
) STRICT;
CREATE TABLE snapshots (
    command INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    events INTEGER NOT NULL,
    state BLOB NOT NULL
) STRICT;
CREATE TABLE keys (
    key TEXT PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    request TEXT NOT NULL,
    job INTEGER NOT NULL
) STRICT;
"""
PATTERNS = "CREATE TABLE IF NOT EXISTS patterns (name TEXT PRIMARY KEY, text TEXT NOT NULL) STRICT;"
"""Since version 2, as is the fact ``network``."""


KEYS_KEPT_MS = 7 * 86_400_000
"""How long a client may take to ask again for what it submitted."""


@dataclass(frozen=True)
class Kept:
    """What is in the file: a state, and what was accepted since."""

    state: str | None
    """The core's snapshot; none: it began empty."""
    events: int
    """How many there had been by then."""
    commands: list[tuple[int, str, int]]
    """Time, command and digest of its outcome."""


@dataclass(frozen=True)
class Accepted:
    """A command that was applied, and what tells its outcome from others."""

    at_ms: int
    command: str
    digest: int
    key: str | None = None
    """Of a submission: what the client calls it, so that it can ask again."""
    request: str | None = None
    """Of a submission: in the client's words, to be compared when it asks again."""
    job: int | None = None
    """Of a submission: the number that it got."""
    pattern: tuple[str, str] | None = None
    """Of a submission: its pattern's name and contents, kept if the store has none of the name."""


class StoreError(RunError):
    """The file cannot be used, or could not be written."""


class Store:
    """The file. One process has it at a time."""

    def __init__(
        self, file: Path, spec: dict[str, Any] | None, *, left_out: Collection[str] = ()
    ) -> None:
        """Open it, or make it for this ``spec`` of the allocator.

        Without a spec the file must be there. left_out: of ``trees`` and ``join`` (of the trees),
        what nobody asked for in ``spec``; a file that is there may have another.
        Raises ConfigurationError when it is not there, or was made for another spec; StoreError
        when it is no store, of a newer version, or in use.
        """
        self.file = file
        if spec is None and not file.exists():
            raise ConfigurationError(
                f"--store {file}: no such file; give --topology too, and it will be made"
            )
        try:
            # The thread that serves is not the one that opens.
            self._db = sqlite3.connect(
                file, isolation_level=None, timeout=1.0, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._failed(error) from None
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._check(spec, left_out)
        except sqlite3.Error as error:
            self._db.close()
            raise self._failed(error) from None
        except RunError:
            self._db.close()
            raise

    def _check(self, spec: dict[str, Any] | None, left_out: Collection[str]) -> None:
        (application,) = self._db.execute("PRAGMA application_id").fetchone()
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        (tables,) = self._db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and application != APPLICATION:
            raise StoreError(f"--store {self.file}: a database of another program", Exit.USAGE)
        if version > VERSION:
            raise StoreError(
                f"--store {self.file}: of version {version}, this Olaf writes {VERSION}: "
                "use the newer Olaf",
                Exit.USAGE,
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        # A store of version 1 reads as one without patterns; ``keep`` says that it is of 2.
        if not tables:
            self._make(spec)
        made = self._made()
        if spec is not None and (wanted := _with_left_out(spec, made, left_out)) != made:
            raise ConfigurationError(f"--store {self.file}: {_difference(made, wanted)}")
        self.spec: dict[str, Any] = made

    def _made(self) -> dict[str, Any]:
        """What it was made for, in this Olaf's words: an earlier one had others for the same."""
        try:
            made: dict[str, Any] = json.loads(Allocator.resolve(self._fact("spec")))
        except ValueError as error:
            raise StoreError(f"--store {self.file}: what it was made for: {error}") from None
        return made

    def _make(self, spec: dict[str, Any] | None) -> None:
        if spec is None:
            raise ConfigurationError(
                f"--store {self.file}: empty; give --topology too, and it will be made"
            )
        # Written as one: a service that is killed here leaves an empty file, and makes it anew.
        script = f"BEGIN IMMEDIATE; {TABLES} {PATTERNS}"
        self._db.executescript(script)
        self._db.execute("INSERT INTO facts VALUES ('spec', ?)", (json.dumps(spec),))
        self._db.execute(f"PRAGMA application_id = {APPLICATION}")
        self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("COMMIT")
        # The file's name is on the disk only when its folder is.
        folder = os.open(self.file.resolve().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def worth(self) -> Worth | None:
        """What gains are computed from. None in a new store, and in one of version 1."""
        row = self._db.execute("SELECT value FROM facts WHERE name = 'network'").fetchone()
        if row is None:
            return None
        patterns = dict(self._db.execute("SELECT name, text FROM patterns").fetchall())
        return Worth(json.loads(row[0]), patterns)

    def keep(self, worth: Worth) -> None:
        """From now on gains are computed from this. A file of version 1 becomes one of 2.

        Raises StoreError; then it is as it was.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute(PATTERNS)
            self._db.execute(
                "INSERT OR REPLACE INTO facts VALUES ('network', ?)", (json.dumps(worth.network),)
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO patterns VALUES (?, ?)", worth.patterns.items()
            )
            self._db.execute(f"PRAGMA user_version = {VERSION}")
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._failed(error) from None

    def load(self) -> Kept:
        """All that the state is made of. Raises StoreError when it cannot be read."""
        try:
            found = self._db.execute("SELECT command, events, state FROM snapshots").fetchone()
            last, events, packed = found or (0, 0, None)
            state = None if packed is None else zlib.decompress(packed).decode()
            rows = self._db.execute(
                "SELECT at_ms, command, digest FROM commands WHERE id > ? ORDER BY id", (last,)
            )
            return Kept(state, events, rows.fetchall())
        except (sqlite3.Error, zlib.error, UnicodeDecodeError) as error:
            raise self._failed(error) from None

    def submitted(self, key: str) -> tuple[str, int] | None:
        """The request that was accepted under this key, and the job that it became."""
        row = self._db.execute("SELECT request, job FROM keys WHERE key = ?", (key,)).fetchone()
        return None if row is None else (row[0], row[1])

    def append(self, accepted: Sequence[Accepted]) -> None:
        """Write them as one; they are on the disk when this returns.

        Raises StoreError; then none of them is, or all are: what is in the file says which.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            for each in accepted:
                self._db.execute(
                    "INSERT INTO commands (at_ms, command, digest) VALUES (?, ?, ?)",
                    (each.at_ms, each.command, each.digest),
                )
                if each.pattern is not None:
                    self._db.execute("INSERT OR IGNORE INTO patterns VALUES (?, ?)", each.pattern)
                if each.key is not None:
                    self._db.execute(
                        "INSERT INTO keys VALUES (?, ?, ?, ?)",
                        (each.key, each.at_ms, each.request, each.job),
                    )
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._failed(error) from None

    def compact(self, at_ms: int, events: int, state: str) -> None:
        """Keep this state instead of the commands that led to it.

        Raises StoreError as ``append`` does.
        """
        packed = zlib.compress(state.encode(), 1)
        try:
            self._db.execute("BEGIN IMMEDIATE")
            (last,) = self._db.execute("SELECT coalesce(max(id), 0) FROM commands").fetchone()
            (before,) = self._db.execute(
                "SELECT coalesce(max(command), 0) FROM snapshots"
            ).fetchone()
            self._db.execute("DELETE FROM snapshots")
            self._db.execute(
                "INSERT INTO snapshots VALUES (?, ?, ?, ?)",
                (max(last, before), at_ms, events, packed),
            )
            self._db.execute("DELETE FROM commands")
            self._db.execute("DELETE FROM keys WHERE at_ms < ?", (at_ms - KEYS_KEPT_MS,))
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._failed(error) from None

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def _fact(self, name: str) -> str:
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise StoreError(f"--store {self.file}: it has no {name}; it was damaged", Exit.FAILED)
        value: str = row[0]
        return value

    def _failed(self, error: Exception) -> StoreError:
        if "locked" in str(error):
            return StoreError(
                f"--store {self.file}: another service has it; stop that, or use another file",
                Exit.USAGE,
            )
        if "not a database" in str(error):
            return StoreError(f"--store {self.file}: no database", Exit.USAGE)
        return StoreError(f"--store {self.file}: {error}")


def _with_left_out(
    spec: dict[str, Any], made: dict[str, Any], left_out: Collection[str]
) -> dict[str, Any]:
    """The spec, and in it what was left out as the store has it."""
    if "trees" in left_out:
        return {**spec, "trees": made["trees"]}
    trees = spec["trees"]
    same = trees["policy"] == made["trees"]["policy"]
    if "join" in left_out and same and "join" in made["trees"]:
        return {**spec, "trees": {**trees, "join": made["trees"]["join"]}}
    return spec


def _difference(made: dict[str, Any], wanted: dict[str, Any]) -> str:
    for name, value in wanted.items():
        if made.get(name) != value:
            return (
                f"made for {name} {_short(made.get(name))}, not {_short(value)}; leave the option "
                "out to go on with it, or use another file"
            )
    return "made for something else; use another file"


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."
