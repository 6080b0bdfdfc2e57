"""What a store has acknowledged, in a file of a few bytes beside it.

SQLite ends a write-ahead log at the first frame whose checksum is wrong, and says nothing: to it
this is the end of a write that a crash cut short. So one flipped bit takes all later commands with
it. This file names the last command that was on the disk, with a checksum of all since the last
snapshot. It is written after each commit and before its result leaves the service. So a store never
has less than this file says, unless something was lost. It is not synchronised: after a power
failure it may name an earlier command, which a whole store has, too.
"""

from __future__ import annotations

import contextlib
import os
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path

FORM = struct.Struct(">4sQQI")
"""Magic, the command of the last snapshot, the last command, the checksum of those between."""
MAGIC = b"OLAS"

Row = tuple[int, int, str, int]
"""(id, time, command, digest). The digest is not in the checksum: a replay compares it."""


class Acknowledged:
    """The file beside a store."""

    def __init__(self, store: Path) -> None:
        self.file = store.with_name(f"{store.name}-acknowledged")
        self._snapshot, self._last, self._sum = 0, 0, 0

    def check(self, snapshot: int, rows: Iterable[Row]) -> str | None:
        """What is wrong with the commands since the store's snapshot; None: nothing.

        From here on the file goes on with them.
        """
        told = self._read()
        self._snapshot, self._last, self._sum = snapshot, snapshot, 0
        wrong = None
        for row in rows:
            if row[0] != self._last + 1:
                return f"command {self._last + 1} is missing"
            self._add(row)
            is_told = told is not None and told[:2] == (snapshot, self._last)
            if is_told and told != (snapshot, self._last, self._sum):
                wrong = f"its commands up to {self._last} are not those that were written"
        if told is not None and told[1] > self._last:
            return (
                f"it ends with command {self._last}, and command {told[1]} was written and "
                "acknowledged"
            )
        return wrong

    def add(self, rows: Iterable[Row]) -> None:
        """These commands are on the disk."""
        for row in rows:
            self._add(row)
        self._write()

    def compacted(self, snapshot: int) -> None:
        """A snapshot stands for all commands up to this one."""
        self._snapshot, self._last, self._sum = snapshot, snapshot, 0
        self._write()

    def _add(self, row: Row) -> None:
        self._last = row[0]
        self._sum = zlib.crc32(repr(row[:3]).encode(), self._sum)

    def _read(self) -> tuple[int, int, int] | None:
        """Snapshot, last command and checksum. None where there is none, or where it is damaged."""
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return None
        body, check = data[:-4], data[-4:]
        if len(body) != FORM.size or zlib.crc32(body).to_bytes(4, "big") != check:
            return None
        magic, snapshot, last, total = FORM.unpack(body)
        return (snapshot, last, total) if magic == MAGIC else None

    def _write(self) -> None:
        body = FORM.pack(MAGIC, self._snapshot, self._last, self._sum)
        data = body + zlib.crc32(body).to_bytes(4, "big")
        # A store works on without this file: it then says less about what it lost.
        with contextlib.suppress(OSError):
            there = os.open(self.file, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                os.pwrite(there, data, 0)
            finally:
                os.close(there)
