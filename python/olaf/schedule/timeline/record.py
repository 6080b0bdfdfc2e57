"""The record from which a timeline is drawn, checked once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from olaf.errors.usage import ConfigurationError

LATEST_NS = 2**53 - 1
"""104 days. Later times are not whole nanoseconds in a browser."""
MOST_HOSTS = 1 << 20
MOST_SAID = 5
"""Number of errors that are shown."""

Time = Annotated[int, Field(ge=0, le=LATEST_NS)]
Index = Annotated[int, Field(ge=0)]


class _Data(BaseModel):
    # Producers may add keys that are not drawn.
    model_config = ConfigDict(
        frozen=True, extra="ignore", strict=True, use_attribute_docstrings=True
    )


class Tree(_Data):
    """A job's tree for some time, or the absence of one, with the reason."""

    from_ns: Time
    to_ns: Time | None = None
    """None: it still lasts at the record's end."""
    root: Index | None = None
    """Number of a switch; None without a tree."""
    switches: list[Index] = []
    """The switches that sum, including the root."""
    reason: Any = ""
    """Reason of the decision: text, or the core's JSON."""


class Job(_Data):
    """One job on its hosts."""

    job: int | str
    """Name of the job."""
    pattern: str = ""
    hosts: list[Index]
    """Hosts on which it ran; empty while it waits."""
    queued_ns: Time = 0
    start_ns: Time | None = None
    """None: it had not started at the record's end."""
    end_ns: Time | None = None
    """None: it had not ended at the record's end."""
    steps: int | None = None
    placement: Any = None
    """Reason for these hosts: text, or the core's JSON."""
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
    """A cluster over time. Hosts and switches are numbers from 0."""

    hosts: Annotated[int, Field(ge=1, le=MOST_HOSTS)]
    """Number of hosts."""
    switches: list[str]
    """Names of the switches."""
    tor_of: list[Index] = []
    """First switch of each host; if it is empty, hosts are drawn in even blocks."""
    jobs: list[Job]
    uses: list[Use] = []
    window: Window | None = None
    """The part whose uses are recorded; None: the whole record, or no uses at all."""

    @property
    def end_ns(self) -> int:
        """The last time in the record; spans without an end last until then."""
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
                raise ValueError(f"{where}.job: two jobs are named {job.job!r}")
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
                raise ValueError(f"uses[{at}].job: the record has no job {use.job!r}")
            _in_order(f"uses[{at}]", use.from_ns, use.to_ns)
        if self.window:
            _in_order("window", self.window.from_ns, self.window.to_ns)
        if self.tor_of and len(self.tor_of) != self.hosts:
            raise ValueError(f"tor_of: {len(self.tor_of)} switches for {self.hosts} hosts")
        _below("tor_of", self.tor_of, len(self.switches), "switches")
        return self


def check(told: Mapping[str, Any]) -> Record:
    """Check a record. Raises ConfigurationError with the error and its place."""
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
        raise ConfigurationError(f"{file}:{error.lineno}: not JSON: {error.msg}") from None
    except (RecursionError, ValueError) as error:
        raise ConfigurationError(f"{file}: unreadable JSON: {error}") from None
    if not isinstance(told, dict):
        raise ConfigurationError(
            f"{file}: not a timeline: it needs an object with hosts, switches and jobs"
        )
    try:
        return Record.model_validate(told)
    except ValidationError as error:
        raise ConfigurationError(f"{file}: {_said(error)}") from None


def words(reason: Any) -> str:
    """A reason as text: ``{"kind": "conflict", "candidates": 5}`` is ``conflict, candidates 5``."""
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
