"""The service's persistent state: the accepted commands, in one SQLite file.

The core is deterministic, so its commands are its state. A command is on the disk (WAL,
``synchronous=FULL``: fsync at each commit) before its result leaves the service. From time to time
a snapshot replaces the commands before it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olaf._olaf import Allocator
from olaf.errors.outcome import Exit, RunError
from olaf.errors.usage import ConfigurationError
from olaf.schedule.acknowledged import Acknowledged, Row
from olaf.schedule.worth import Worth

APPLICATION = 0x4F6C6166
"""``Olaf`` in ASCII: tells our files from other programs'."""

VERSION = 2
"""Version of the tables. A newer file is refused, an older one is converted."""

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
"""Since version 2, like the fact ``network``."""


KEYS_KEPT_MS = 7 * 86_400_000
"""Time in which a client may repeat a submission."""


@dataclass(frozen=True)
class Kept:
    """The contents of the file: a state, and the commands since then."""

    state: str | None
    """The core's snapshot; None: it began empty."""
    events: int
    """Number of events up to the snapshot."""
    commands: list[tuple[int, str, int]]
    """(time, command, digest of its outcome) of each."""


@dataclass(frozen=True)
class Accepted:
    """An applied command with the digest of its outcome."""

    at_ms: int
    command: str
    digest: int
    key: str | None = None
    """For a submission: the client's key, for repetitions."""
    request: str | None = None
    """For a submission: the request as the client wrote it, compared at a repetition."""
    job: int | None = None
    """For a submission: the number of its job."""
    pattern: tuple[str, str] | None = None
    """For a submission: its pattern's name and contents, stored if the name is new."""


class StoreError(RunError):
    """The file cannot be used, or could not be written."""


class Store:
    """The file; only one process can open it at a time."""

    def __init__(
        self, file: Path, spec: dict[str, Any] | None, *, left_out: Collection[str] = ()
    ) -> None:
        """Open it, or make it for this ``spec`` of the allocator.

        Without a spec the file must exist. left_out: keys of the trees' policy (``trees``,
        ``join``) that the user did not give; an existing file may have other values. Raises
        ConfigurationError if the file does not exist or was made for another spec; StoreError if it
        is not a store, is of a newer version, or is in use.
        """
        self.file = file
        self._acknowledged = Acknowledged(file)
        if spec is None and not file.exists():
            raise ConfigurationError(
                f"--store {file}: no such file; give --topology too, and it will be made"
            )
        try:
            # The thread that serves differs from the one that opens the file.
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
                f"--store {self.file}: has version {version}, but this Olaf writes {VERSION}: "
                "use the newer Olaf",
                Exit.USAGE,
            )
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        # A store of version 1 reads as one without patterns; ``keep`` makes it version 2.
        if not tables:
            self._make(spec)
        made = self._made()
        if spec is not None and (wanted := _with_left_out(spec, made, left_out)) != made:
            raise ConfigurationError(f"--store {self.file}: {_difference(made, wanted)}")
        self.spec: dict[str, Any] = made

    def _made(self) -> dict[str, Any]:
        """The spec of the file, in the words of this version of Olaf."""
        try:
            made: dict[str, Any] = json.loads(Allocator.resolve(self._fact("spec")))
        except ValueError as error:
            raise StoreError(f"--store {self.file}: its stored spec is invalid: {error}") from None
        return made

    def _make(self, spec: dict[str, Any] | None) -> None:
        if spec is None:
            raise ConfigurationError(
                f"--store {self.file}: empty; give --topology too, and it will be made"
            )
        # Written at once: a service that is killed here leaves an empty file, and makes it again.
        script = f"BEGIN IMMEDIATE; {TABLES} {PATTERNS}"
        self._db.executescript(script)
        self._db.execute("INSERT INTO facts VALUES ('spec', ?)", (json.dumps(spec),))
        self._db.execute(f"PRAGMA application_id = {APPLICATION}")
        self._db.execute(f"PRAGMA user_version = {VERSION}")
        self._db.execute("COMMIT")
        # The file's name is on the disk only after its folder is synchronised.
        folder = os.open(self.file.resolve().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def worth(self) -> Worth | None:
        """The values that determine gains. None in a new store, and in one of version 1."""
        row = self._db.execute("SELECT value FROM facts WHERE name = 'network'").fetchone()
        if row is None:
            return None
        patterns = dict(self._db.execute("SELECT name, text FROM patterns").fetchall())
        return Worth(json.loads(row[0]), patterns)

    def keep(self, worth: Worth) -> None:
        """Store the values that determine gains from now on. Makes a version 1 file version 2.

        Raises StoreError; the file is then unchanged.
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
        """Everything that makes up the state.

        Raises StoreError if it cannot be read, or if it lacks what was acknowledged.
        """
        try:
            found = self._db.execute("SELECT command, events, state FROM snapshots").fetchone()
            last, events, packed = found or (0, 0, None)
            state = None if packed is None else zlib.decompress(packed).decode()
            rows = self._db.execute(
                "SELECT id, at_ms, command, digest FROM commands WHERE id > ? ORDER BY id", (last,)
            ).fetchall()
        except (sqlite3.Error, zlib.error, UnicodeDecodeError) as error:
            raise self._failed(error) from None
        if wrong := self._acknowledged.check(last, rows):
            log = self.file.with_name(f"{self.file.name}-wal")
            saved = log.with_name(f"{log.name}-damaged")
            # Closing the database removes the log, and with it what may still be read there.
            with contextlib.suppress(OSError):
                shutil.copyfile(log, saved)
            raise StoreError(
                f"--store {self.file}: {wrong}: the file or its log is damaged, or an older copy; "
                f"nothing was done, and the log is kept in {saved.name}. Go on with a whole copy; "
                f"or, to go on with what is here, delete {self._acknowledged.file}"
            )
        return Kept(state, events, [row[1:] for row in rows])

    def submitted(self, key: str) -> tuple[str, int] | None:
        """The request that was accepted under this key, and the number of its job."""
        row = self._db.execute("SELECT request, job FROM keys WHERE key = ?", (key,)).fetchone()
        return None if row is None else (row[0], row[1])

    def append(self, accepted: Sequence[Accepted]) -> None:
        """Write the commands together; they are on the disk when this returns.

        Raises StoreError; the file then has none of them or all.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            rows: list[Row] = []
            for each in accepted:
                written = self._db.execute(
                    "INSERT INTO commands (at_ms, command, digest) VALUES (?, ?, ?)",
                    (each.at_ms, each.command, each.digest),
                )
                rows.append((written.lastrowid or 0, each.at_ms, each.command, each.digest))
                if each.pattern is not None:
                    self._db.execute("INSERT OR IGNORE INTO patterns VALUES (?, ?)", each.pattern)
                if each.key is not None:
                    self._db.execute(
                        "INSERT INTO keys VALUES (?, ?, ?, ?)",
                        (each.key, each.at_ms, each.request, each.job),
                    )
            self._db.execute("COMMIT")
            self._acknowledged.add(rows)
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._failed(error) from None

    def compact(self, at_ms: int, events: int, state: str) -> None:
        """Store this state instead of the commands that led to it.

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
            self._acknowledged.compacted(max(last, before))
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise self._failed(error) from None

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _fact(self, name: str) -> str:
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if row is None:
            raise StoreError(f"--store {self.file}: has no {name}; it is damaged", Exit.FAILED)
        value: str = row[0]
        return value

    def _failed(self, error: Exception) -> StoreError:
        if "locked" in str(error):
            return StoreError(
                f"--store {self.file}: another service has it; stop that, or use another file",
                Exit.USAGE,
            )
        if "not a database" in str(error):
            return StoreError(f"--store {self.file}: not a database", Exit.USAGE)
        return StoreError(f"--store {self.file}: {error}")


def _with_left_out(
    spec: dict[str, Any], made: dict[str, Any], left_out: Collection[str]
) -> dict[str, Any]:
    """The spec, with the store's values for the keys that were left out."""
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
