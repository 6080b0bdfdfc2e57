"""The patterns that the service knows, and what a tree wins a job that has one."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

from olaf._olaf import tree_gain
from olaf.jobs.usage import ConfigurationError
from olaf.schedule.reading import read_pattern

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")

LATENCY_NS = 50_000
NETWORK = {"bytes_per_second": 12_500_000_000, "speedup_millis": 2000, "latency_ns": LATENCY_NS}
"""The core's ``Network::PAPER``: MINA §V as the authors' simulator sets it."""


class UnknownPatternError(Exception):
    """No pattern of this name, or none that can be read."""

    def __init__(self, text: str, advice: str) -> None:
        super().__init__(text)
        self.advice = advice


class Known:
    """``NAME.json`` in some folders; a file that is new or changed is read when it is named."""

    def __init__(self, folders: list[Path], network: dict[str, int] | None = None) -> None:
        self._folders = folders
        self._network = json.dumps(network or NETWORK)
        self._read: dict[Path, tuple[int, str]] = {}

    def names(self) -> list[str]:
        """Of all of them, sorted."""
        return sorted({file.stem for folder in self._folders for file in folder.glob("*.json")})

    def gain(self, pattern: str | None, hosts: int) -> int:
        """Host-nanoseconds a second that a tree wins; 0 without a pattern.

        Raises UnknownPatternError.
        """
        if pattern is None:
            return 0
        if NAME.fullmatch(pattern):
            for folder in self._folders:
                file = folder / f"{pattern}.json"
                if file.is_file():
                    return tree_gain(self._text(file), self._network, hosts)
        names = self.names()
        have = ", ".join(names[:12]) + (", .." if len(names) > 12 else "") if names else "none"
        raise UnknownPatternError(
            f"{pattern!r} is not known; there is {have}",
            "put NAME.json into a folder that the service was given with --patterns; "
            "`olaf schedule record` makes one",
        )

    def _text(self, file: Path) -> str:
        changed = file.stat().st_mtime_ns
        if self._read.get(file, (0, ""))[0] != changed:
            try:
                pattern = read_pattern(file)
            except ConfigurationError as error:
                raise UnknownPatternError(str(error), "mend the file") from None
            self._read[file] = (changed, json.dumps(dataclasses.asdict(pattern)))
        return self._read[file][1]
