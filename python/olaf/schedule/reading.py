"""Reads job lists, recorded patterns and topologies from users' files.

One ConfigurationError lists all mistakes with the file, and the line if there is one.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from olaf.errors.usage import ConfigurationError
from olaf.values.parsed import json_of, toml_of

BUNDLED = Path(__file__).parent / "patterns"
"""The patterns that come with Olaf; ``olaf schedule record`` makes others."""

LONGEST_S = 86_400
"""Longest step, and latest start in it; the core's limit."""
MOST_BYTES = 1 << 40
"""Most bytes of an all-reduce; the core's limit."""
MOST_OPERATIONS = 65_536
"""Most all-reduces of a step; the core's limit."""

MOST_SAID = 10
"""Number of wrong lines that are shown."""


@dataclass(frozen=True, slots=True)
class Job:
    """A line of a job list."""

    pattern: str
    hosts: int
    steps: int
    line: int
    """Line number in its file, from 1."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One all-reduce: its earliest start from the step's begin, and its bytes."""

    start_ns: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """The communication of a job in one step, MINA §IV-B."""

    name: str
    compute_ns: int
    operations: tuple[Operation, ...]


def read_jobs(file: Path) -> list[Job]:
    """The jobs of a list, ``pattern hosts steps`` per line, in order of arrival.

    Empty lines and comments after a ``#`` are ignored.
    """
    jobs: list[Job] = []
    wrong: list[str] = []
    for number, text in enumerate(_text(file).splitlines(), start=1):
        words = text.partition("#")[0].split()
        if not words:
            continue
        try:
            jobs.append(_job(words, number))
        except ValueError as error:
            wrong.append(f"{file}:{number}: {error}")
    if wrong:
        more = f"\nand {len(wrong) - MOST_SAID} more" if len(wrong) > MOST_SAID else ""
        raise ConfigurationError("\n".join(wrong[:MOST_SAID]) + more)
    if not jobs:
        raise ConfigurationError(f"{file}: no jobs; write `pattern hosts steps` per line")
    return jobs


def read_pattern(file: Path) -> Pattern:
    """A recorded step: ``{"duration": s, "allreduces": [{"start": s, "size": bytes}, ..]}``.

    Seconds are rounded to whole nanoseconds here, once; see docs/design/013-mina.md.
    """
    try:
        data = json.loads(_text(file), parse_float=Decimal)
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{file}:{error.lineno}: not JSON: {error.msg}") from None
    except (ValueError, ArithmeticError):
        raise ConfigurationError(f"{file}: a number is too large") from None
    except RecursionError:
        raise ConfigurationError(f"{file}: brackets are nested too deeply") from None
    try:
        return _pattern(file.stem, data)
    except ValueError as error:
        raise ConfigurationError(f"{file}: {error}") from None


def read_patterns(folder: Path, names: list[str], jobs: Path) -> list[Pattern]:
    """The patterns of these names, ``NAME.json`` in the folder; the file ``jobs`` names them."""
    if not folder.is_dir():
        raise ConfigurationError(f"--traces {folder}: no such folder")
    known = sorted(file.stem for file in folder.glob("*.json"))
    missing = [name for name in names if name not in known]
    if missing:
        have = ", ".join(known) if known else "no pattern at all"
        raise ConfigurationError(
            f"{jobs}: no pattern `{missing[0]}` in {folder}; there is {have} "
            "(a pattern is a file NAME.json; `olaf schedule record` makes one)"
        )
    return [read_pattern(folder / f"{name}.json") for name in names]


def read_topology(word: str) -> dict[str, Any]:
    """A topology for the core: a word such as ``fat-tree:16``, or a graph in a TOML file."""
    file = Path(word)
    if file.suffix not in (".toml", ".json"):
        return {"word": word}
    text = _text(file)
    try:
        return {"graph": json_of(text) if file.suffix == ".json" else toml_of(text)}
    except (ValueError, RecursionError) as error:  # both parsers' errors for invalid text
        raise ConfigurationError(f"{file}: {error}") from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: not UTF-8 text: {error.reason}") from None


def _job(words: list[str], line: int) -> Job:
    if len(words) != 3:
        raise ValueError(f"{len(words)} words: a job is `pattern hosts steps`")
    name, hosts, steps = words
    return Job(name, _count("hosts", hosts), _count("steps", steps), line)


def _count(what: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20) or int(text) == 0:
        raise ValueError(f"{what} {text!r}: must be a whole number from 1")
    return int(text)


def _pattern(name: str, data: Any) -> Pattern:
    if not isinstance(data, dict) or "duration" not in data or "allreduces" not in data:
        raise ValueError('a pattern is {"duration": seconds, "allreduces": [..]}')
    if not isinstance(data["allreduces"], list):
        raise ValueError("allreduces: must be a list")
    if len(data["allreduces"]) > MOST_OPERATIONS:
        count = len(data["allreduces"])
        raise ValueError(f"allreduces: {count}; must be at most {MOST_OPERATIONS}")
    operations: list[Operation] = []
    for at, each in enumerate(data["allreduces"]):
        where = f"allreduces[{at}]"
        if not isinstance(each, dict) or "start" not in each or "size" not in each:
            raise ValueError(f'{where}: must be {{"start": seconds, "size": bytes}}')
        size = each["size"]
        if isinstance(size, bool) or not isinstance(size, int) or not 0 < size <= MOST_BYTES:
            raise ValueError(f"{where}.size: {size!r}; must be whole bytes, from 1 to 1 TiB")
        start_ns = _nanoseconds(f"{where}.start", each["start"])
        if operations and start_ns < operations[-1].start_ns:
            raise ValueError(f"{where}.start: earlier than the one before it; sort them")
        operations.append(Operation(start_ns, size))
    compute_ns = _nanoseconds("duration", data["duration"])
    if compute_ns == 0:
        raise ValueError("duration: a step takes at least a nanosecond")
    return Pattern(name, compute_ns, tuple(operations))


def _nanoseconds(what: str, seconds: Any) -> int:
    """Rounded to the nearest nanosecond, from the decimal number in the file."""
    number = not isinstance(seconds, bool) and isinstance(seconds, int | Decimal)
    if not number or not math.isfinite(seconds) or not 0 <= seconds <= LONGEST_S:
        raise ValueError(f"{what}: {seconds!s:.40}; must be seconds from 0 to {LONGEST_S}")
    return round(Decimal(seconds) * 1_000_000_000)
