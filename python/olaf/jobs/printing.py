"""The lines that a run's processes print: shown with their process's name, and bounded.

An environment may print a line a step. The first lines of each process are shown, then some lines
every few seconds, and how many were left out. All lines go to ``output/<process>.txt`` in the run's
folder, up to a size. What is printed is never parsed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from olaf.jobs.supervisor import Printed
from olaf.values.numbers import counted

FOLDER = "output"
"""Folder in the run's folder with a file for each process that has printed something."""

FIRST = 20
"""Lines of a process that are shown in any case: a traceback has about as many."""

EVERY_S = 10.0
"""Afterwards, seconds between two lines of a process that are shown."""

FILE_BYTES = 1 << 20
"""Largest file of a process."""

LONGEST = 500
"""Characters of a line that are shown."""


@dataclass
class _Process:
    shown: int = 0
    left_out: int = 0
    next_s: float = 0.0
    written: int = 0
    file: IO[str] | None = None


class Prints:
    """Takes the printed lines of all processes of a run."""

    def __init__(self, folder: Path) -> None:
        """``folder``: the run's. Nothing is made there before something is printed."""
        self._folder = folder / FOLDER
        self._processes: dict[str, _Process] = {}

    def take(self, line: Printed, at_s: float) -> list[str]:
        """Keep a line; return the texts to show for it: none, or itself, or it and a count."""
        one = self._processes.setdefault(line.name, _Process())
        self._write(line.name, one, line.text)
        if one.shown >= FIRST and at_s < one.next_s:
            one.left_out += 1
            return []
        texts = [line.text[:LONGEST]]
        if one.left_out:
            texts.insert(0, self._left_out(line.name, one))
        one.shown += 1
        one.next_s = at_s + EVERY_S
        return texts

    def end(self) -> Iterator[tuple[str, str]]:
        """The processes with lines that were left out and not yet counted: (process, text)."""
        for name, one in self._processes.items():
            if one.left_out:
                yield name, self._left_out(name, one)
            if one.file is not None:
                with contextlib.suppress(OSError):
                    one.file.close()
                one.file = None

    def _left_out(self, name: str, one: _Process) -> str:
        count, one.left_out = one.left_out, 0
        return f"printed {counted(count, 'more line')}, see {self._file(name)}"

    def _file(self, name: str) -> Path:
        return self._folder / f"{name.replace(' ', '-')}.txt"

    def _write(self, name: str, one: _Process, text: str) -> None:
        if one.written >= FILE_BYTES:
            return
        try:
            if one.file is None:
                self._folder.mkdir(exist_ok=True)
                one.file = self._file(name).open("a", encoding="utf-8", buffering=1)
                one.written = one.file.tell()
            one.written += one.file.write(text + "\n")
            if one.written >= FILE_BYTES:
                one.file.write(f"(the file ends here: {FILE_BYTES >> 20} MiB)\n")
                one.file.close()
        except (OSError, ValueError):
            one.written = FILE_BYTES  # a full disk takes nothing more; the run goes on
