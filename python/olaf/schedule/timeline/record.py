"""What a timeline is drawn from, checked once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from olaf.usage import ConfigurationError

LATEST_NS = 2**53 - 1
"""104 days. Later times are not whole nanoseconds in a browser."""
MOST_HOSTS = 1 << 20
MOST_SAID = 5
"""Of many wrong places the first are told."""

Time = Annotated[int, Field(ge=0, le=LATEST_NS)]
Index = Annotated[int, Field(ge=0)]


class _Data(BaseModel):
    # Producers may tell more than is drawn.
    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, use_attribute_docstrings=True
    )


class Tree(_Data):
    """A job's tree for a time, or that it has none, and why."""

    from_ns: Time
    to_ns: Time | None = None
    """None: still so at the record's end."""
    root: Index | None = None
    """A switch; None without a tree."""
    switches: list[Index] = []
    """Those that sum, the root among them."""
    reason: Any = ""
    """Of the decision: words, or what the core says."""


class Job(_Data):
    """One job on its hosts."""

    job: int | str
    """Its name."""
    pattern: str = ""
    hosts: list[Index]
    """Where it ran; empty while it waits."""
    queued_ns: Time = 0
    start_ns: Time | None = None
    """None: it had not begun at the record's end."""
    end_ns: Time | None = None
    """None: it had not ended at the record's end."""
    steps: int | None = None
    placement: Any = None
    """Why these hosts: words, or what the core says."""
    trees: list[Tree] = []


class Use(_Data):
    """An all-reduce, or several in a row, that the switches of the job's tree summed."""

    job: int | str
    from_ns: Time
    to_ns: Time


class Window(_Data):
    """A part of the record."""

    from_ns: Time
    to_ns: Time


class Record(_Data):
    """A cluster's time. Hosts and switches are numbers from 0."""

    hosts: Annotated[int, Field(ge=1, le=MOST_HOSTS)]
    """How many."""
    switches: list[str]
    """Their names."""
    tor_of: list[Index] = []
    """Of each host its first switch; if it is not told, hosts are drawn in even blocks."""
    jobs: list[Job]
    uses: list[Use] = []
    window: Window | None = None
    """Uses are told of this part alone; None: of the whole, or none at all."""

    @property
    def end_ns(self) -> int:
        """The last time that is told: what is still so then ends there."""
        times = [0]
        for job in self.jobs:
            times += [job.queued_ns, job.start_ns or 0, job.end_ns or 0]
            times += [max(tree.from_ns, tree.to_ns or 0) for tree in job.trees]
        return max(times + [use.to_ns for use in self.uses])

    @model_validator(mode="after")
    def _consistent(self) -> Record:
        names: set[int | str] = set()
        for at, job in enumerate(self.jobs):
            where = f"jobs[{at}]"
            if job.job in names:
                raise ValueError(f"{where}.job: {job.job!r} is another's name, too")
            names.add(job.job)
            _below(f"{where}.hosts", job.hosts, self.hosts, "hosts")
            _in_order(where, job.start_ns, job.end_ns)
            for number, tree in enumerate(job.trees):
                place = f"{where}.trees[{number}]"
                _in_order(place, tree.from_ns, tree.to_ns)
                switches = tree.switches if tree.root is None else [tree.root, *tree.switches]
                _below(f"{place}.switches", switches, len(self.switches), "switches")
        for at, use in enumerate(self.uses):
            if use.job not in names:
                raise ValueError(f"uses[{at}].job: {use.job!r} is no job of the record")
            _in_order(f"uses[{at}]", use.from_ns, use.to_ns)
        if self.window:
            _in_order("window", self.window.from_ns, self.window.to_ns)
        if self.tor_of and len(self.tor_of) != self.hosts:
            raise ValueError(f"tor_of: {len(self.tor_of)} switches for {self.hosts} hosts")
        _below("tor_of", self.tor_of, len(self.switches), "switches")
        return self


def check(told: Mapping[str, Any]) -> Record:
    """A record, if it is one. Raises ConfigurationError that names what is wrong and where."""
    try:
        return Record.model_validate(told)
    except ValidationError as error:
        raise ConfigurationError(f"timeline: {_said(error)}") from None


def read(file: Path) -> Record:
    """The record of a JSON file. Raises ConfigurationError, which names the file."""
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise ConfigurationError(f"{file}:{error.lineno}: no JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise ConfigurationError(f"{file}: no JSON that can be read: {error}") from None
    if not isinstance(told, dict):
        raise ConfigurationError(f"{file}: no timeline: an object with hosts, switches and jobs")
    try:
        return Record.model_validate(told)
    except ValidationError as error:
        raise ConfigurationError(f"{file}: {_said(error)}") from None


def words(reason: Any) -> str:
    """A reason in words, as in ``conflict, candidates 5``: ``{"kind": .., "candidates": 5}``."""
    match reason:
        case None | "":
            return ""
        case str():
            return reason.replace("_", " ")
        case dict():
            parts = [
                ("" if key == "kind" else f"{words(key)} ") + words(reason[key]) for key in reason
            ]
            return ", ".join(part.strip() for part in parts)
        case list():
            return ", ".join(words(each) for each in reason)
        case _:
            return str(reason)


def _below(where: str, indices: list[int], count: int, of: str) -> None:
    wrong = next((index for index in indices if index >= count), None)
    if wrong is not None:
        raise ValueError(f"{where}: {wrong}, there are {count} {of}, from 0")


def _in_order(where: str, from_ns: int | None, to_ns: int | None) -> None:
    if to_ns is not None and (from_ns is None or to_ns < from_ns):
        raise ValueError(f"{where}: ends at {to_ns} ns, before its begin")


def _said(error: ValidationError) -> str:
    told = []
    for each in error.errors(include_url=False)[:MOST_SAID]:
        place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in each["loc"]).strip(".")
        text = each["msg"].removeprefix("Value error, ")
        told.append(f"{place}: {text}" if place else text)
    more = error.error_count() - len(told)
    return "; ".join(told) + (f"; and {more} more" if more else "")
