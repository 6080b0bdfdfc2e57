"""The patterns that the service knows, and the time that a tree saves a job with one of them.

The store keeps the contents of every pattern that was used: the same request then has the same gain
after a restart, even if the folders have changed.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from olaf._olaf import tree_gain
from olaf.errors.usage import ConfigurationError
from olaf.schedule.reading import read_pattern

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")

LATENCY_NS = 50_000
NETWORK = {"bytes_per_second": 12_500_000_000, "speedup_millis": 2000, "latency_ns": LATENCY_NS}
"""The core's ``Network::PAPER``: MINA §V with the values of the authors' simulator."""


class UnknownPatternError(Exception):
    """There is no pattern of this name, or its file is invalid."""

    def __init__(self, text: str, advice: str) -> None:
        super().__init__(text)
        self.advice = advice


class Known:
    """Patterns by name: those in the store, and ``NAME.json`` in some folders."""

    def __init__(
        self,
        folders: list[Path],
        network: Mapping[str, int] | None = None,
        kept: Mapping[str, str] | None = None,
    ) -> None:
        """kept: name -> contents, as ``read`` returns them; they come before the folders."""
        self._folders = folders
        self.network = dict(network or NETWORK)
        """The core's ``Network``."""
        self._network = json.dumps(self.network)
        self._kept = dict(kept or {})

    def names(self) -> list[str]:
        """The names of all patterns, sorted."""
        return sorted({*self._kept, *(file.stem for file in _files(self._folders))})

    def gain(self, pattern: str | None, hosts: int) -> int:
        """Time that a tree saves, in host-nanoseconds per second; 0 without a pattern.

        Raises UnknownPatternError.
        """
        return 0 if pattern is None else tree_gain(self.text(pattern), self._network, hosts)

    def text(self, pattern: str) -> str:
        """The contents of a pattern; they are fixed from now on. Raises UnknownPatternError.

        The caller stores them together with the job that uses them.
        """
        if pattern in self._kept:
            return self._kept[pattern]
        if NAME.fullmatch(pattern):
            for folder in self._folders:
                file = folder / f"{pattern}.json"
                if file.is_file():
                    try:
                        return self._kept.setdefault(pattern, read(file))
                    except ConfigurationError as error:
                        raise UnknownPatternError(str(error), "correct the file") from None
        names = self.names()
        have = ", ".join(names[:12]) + (", .." if len(names) > 12 else "") if names else "none"
        raise UnknownPatternError(
            f"{pattern!r} is not known; there is {have}",
            "put NAME.json into a folder that the service was given with --patterns; "
            "`olaf schedule record` makes one",
        )


def read(file: Path) -> str:
    """A pattern's contents, as the core takes them. Raises ConfigurationError."""
    return json.dumps(dataclasses.asdict(read_pattern(file)))


def contents(folders: list[Path]) -> dict[str, str]:
    """The patterns in the folders; the first of each name. Invalid files are left out.

    A job that names an invalid file gets an error about it.
    """
    found: dict[str, str] = {}
    for file in _files(folders):
        if file.stem not in found:
            try:
                found[file.stem] = read(file)
            except ConfigurationError:
                continue
    return found


def _files(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from (f for f in sorted(folder.glob("*.json")) if NAME.fullmatch(f.stem))
