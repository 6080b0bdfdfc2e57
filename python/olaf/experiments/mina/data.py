"""Selects the recorded patterns and job lists of a figure.

The authors' patterns and job lists are not part of Olaf. The figure's parameter ``data`` or the
environment variable `VARIABLE` names a folder with them (``traces/NAME.json``,
``jobs-NAME.txt``). Without such a folder, a figure uses the patterns that come with Olaf. A CPU
recorded these, so they are computed faster to make the network matter. The page says which data
were used. Rows are compared with the paper's numbers only for the authors' data.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from olaf.errors.usage import ConfigurationError
from olaf.schedule.mixes import Mix, draw
from olaf.schedule.reading import BUNDLED, Job, Pattern, read_jobs, read_pattern

VARIABLE = "OLAF_MINA_DATA"
AUTHORS = "8f94e6637fbb7cad213e5f68672a8a73337742c1b89485f5ff6e3b0f7e421aab"
"""`digest` of the authors' seven patterns and the two job lists drawn by their code."""
OWN_SPEED = 100
"""Speed of computation for our own patterns relative to the record: one CPU thread recorded them,
and at 100 Gbit/s nothing would ever wait for the network."""


@dataclass(frozen=True)
class Data:
    """Patterns, and lists of jobs with these patterns."""

    patterns: tuple[Pattern, ...]
    lists: dict[str, list[Job]]
    """Job lists by name: ``mix1-seed42``."""
    name: str
    """``authors``, ``own``, or the digest of a folder; the value in a record's parameters."""
    words: str
    """A description for the reader."""
    speed: int = field(default=1)
    """Speed of all jobs' computation relative to the record."""

    @property
    def comparable(self) -> bool:
        """True if the paper's numbers are for these data."""
        return self.name == "authors"

    def pattern_names(self) -> list[str]:
        """The patterns in order."""
        return [pattern.name for pattern in self.patterns]

    def given(self, name: str, mix: Mix, count: int) -> list[Job]:
        """The first ``count`` jobs of that list; drawn from the mix if there is no such list."""
        known = self.lists.get(name)
        return self.drawn(mix, count, 0) if known is None else known[:count]

    def drawn(self, mix: Mix, count: int, seed: int) -> list[Job]:
        """Jobs of the mix, by seed."""
        return draw(mix, self.pattern_names(), count, seed)

    def whence(self, name: str) -> str:
        """The origin of the jobs: ``the list mix1-seed42``, or a mix."""
        if name in self.lists:
            return f"the list {name}"
        return f"a list drawn by seed 0 from a mix with the host counts of {name}"


def choose(value: Any) -> Data:
    """The data of a parameter: ``auto``, ``own``, ``authors`` or a folder.

    ``auto`` is the folder in the environment variable if it is set, otherwise ``own``. Raises
    ValueError with advice.
    """
    if isinstance(value, Data):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError("use `auto`, `own`, `authors`, or a folder with traces/ and jobs-NAME.txt")
    named = os.environ.get(VARIABLE, "")
    if value == "own" or (value == "auto" and not named):
        return own()
    if value not in ("auto", "authors"):
        return folder(Path(value))
    if not named:
        raise ValueError(f"set {VARIABLE} to the folder of the authors' patterns and job lists")
    read = folder(Path(named))
    if value == "authors" and not read.comparable:
        raise ValueError(f"{VARIABLE} does not name the authors' data, but {read.words}")
    return read


DataChoice = Annotated[Data, PlainValidator(choose), PlainSerializer(lambda data: data.name)]
"""A parameter; a record stores the data's name, never a path."""


def own() -> Data:
    """The patterns that come with Olaf."""
    patterns = _patterns(BUNDLED)
    names = ", ".join(pattern.name for pattern in patterns)
    return Data(
        patterns, {}, "own",
        f"Olaf's own patterns ({names}; recorded on a CPU, computed {OWN_SPEED} times as fast), "
        "not the paper's: its numbers are shown, but nothing is compared",
        OWN_SPEED,
    )  # fmt: skip


def folder(path: Path) -> Data:
    """Patterns and job lists in a folder. Raises ValueError for missing or broken files."""
    traces = path / "traces"
    if not traces.is_dir():
        raise ValueError(f"{path}: no folder traces/ with a pattern NAME.json in it")
    try:
        patterns = _patterns(traces)
        lists = {
            file.stem.removeprefix("jobs-"): read_jobs(file)
            for file in sorted(path.glob("jobs-*.txt"))
        }
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    known = {pattern.name for pattern in patterns}
    for name, jobs in lists.items():
        stranger = next((job for job in jobs if job.pattern not in known), None)
        if stranger is not None:
            raise ValueError(f"jobs-{name}.txt:{stranger.line}: no pattern {stranger.pattern}")
    content = digest(patterns, lists)
    if content == AUTHORS:
        words = (
            "the MINA authors' recorded patterns (seven models, batch size 4) and job lists "
            f"({', '.join(lists)})"
        )
        return Data(patterns, lists, "authors", words)
    names = ", ".join(pattern.name for pattern in patterns)
    told = ", ".join(lists) or "none"
    words = (
        f"other data than the paper's, of digest {content[:12]} (patterns: {names}; job lists: "
        f"{told}): its numbers are shown, but nothing is compared"
    )
    return Data(patterns, lists, content[:12], words)


def _patterns(path: Path) -> tuple[Pattern, ...]:
    patterns = tuple(read_pattern(file) for file in sorted(path.glob("*.json")))
    if not patterns:
        raise ValueError(f"{path}: no pattern NAME.json in it")
    return patterns


def digest(patterns: Sequence[Pattern], lists: dict[str, list[Job]]) -> str:
    """The digest of their contents, whatever their format."""
    said = {
        "patterns": [asdict(pattern) for pattern in patterns],
        "lists": {name: [asdict(job) for job in jobs] for name, jobs in lists.items()},
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
