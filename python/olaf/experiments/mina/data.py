"""Which recorded patterns and job lists a figure is measured with.

The authors' patterns and job lists are not part of Olaf. A folder with them (``traces/NAME.json``,
``jobs-NAME.txt``) is named by the figure's parameter ``data`` or by the environment variable
`VARIABLE`. Without one, a figure is measured with the patterns that come with Olaf, which a CPU
recorded, computed faster so that the network matters. Either way the page says so, and rows are
set beside the paper's numbers only where they are of the authors' data.
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

from olaf.schedule.mixes import Mix, draw
from olaf.schedule.reading import BUNDLED, Job, Pattern, read_jobs, read_pattern
from olaf.usage import ConfigurationError

VARIABLE = "OLAF_MINA_DATA"
AUTHORS = "8f94e6637fbb7cad213e5f68672a8a73337742c1b89485f5ff6e3b0f7e421aab"
"""`digest` of the authors' seven patterns and the two job lists drawn by their code."""
OWN_SPEED = 100
"""How much faster than recorded jobs of our own patterns compute: a thread of a CPU recorded them,
and at 100 Gbit/s nothing would ever wait for the network."""


@dataclass(frozen=True)
class Data:
    """Patterns, and lists of jobs of them."""

    patterns: tuple[Pattern, ...]
    lists: dict[str, list[Job]]
    """By name: ``mix1-seed42``."""
    name: str
    """``authors``, ``own``, or the digest of a folder: what stands among the parameters."""
    words: str
    """What it is, for a reader."""
    speed: int = field(default=1)
    """How much faster than recorded all jobs compute."""

    @property
    def comparable(self) -> bool:
        """Whether it is what the paper's numbers are of."""
        return self.name == "authors"

    def pattern_names(self) -> list[str]:
        """In order."""
        return [pattern.name for pattern in self.patterns]

    def given(self, name: str, mix: Mix, count: int) -> list[Job]:
        """The first ``count`` jobs of that list; drawn from the mix if there is none."""
        known = self.lists.get(name)
        return self.drawn(mix, count, 0) if known is None else known[:count]

    def drawn(self, mix: Mix, count: int, seed: int) -> list[Job]:
        """Jobs of the mix, by seed."""
        return draw(mix, self.pattern_names(), count, seed)

    def whence(self, name: str) -> str:
        """``the list mix1-seed42``, or that there is none."""
        if name in self.lists:
            return f"the list {name}"
        return f"a list drawn by seed 0 from a mix with the host counts of {name}"


def choose(value: Any) -> Data:
    """The data of a parameter: ``auto``, ``own``, ``authors`` or a folder.

    ``auto`` is the folder that the environment variable names, if it does, else ``own``. Raises
    ValueError, which says what to do.
    """
    if isinstance(value, Data):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError("`auto`, `own`, `authors`, or a folder with traces/ and jobs-NAME.txt")
    named = os.environ.get(VARIABLE, "")
    if value == "own" or (value == "auto" and not named):
        return own()
    if value not in ("auto", "authors"):
        return folder(Path(value))
    if not named:
        raise ValueError(f"set {VARIABLE} to the folder of the authors' patterns and job lists")
    read = folder(Path(named))
    if value == "authors" and not read.comparable:
        raise ValueError(f"what {VARIABLE} names is not the authors' data, but {read.words}")
    return read


DataChoice = Annotated[Data, PlainValidator(choose), PlainSerializer(lambda data: data.name)]
"""A parameter; in a record stands the data's name, never a path."""


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
    """Patterns and job lists in a folder. Raises ValueError for what is missing or broken."""
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
    """Of what they say, however it is written."""
    said = {
        "patterns": [asdict(pattern) for pattern in patterns],
        "lists": {name: [asdict(job) for job in jobs] for name, jobs in lists.items()},
    }
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
