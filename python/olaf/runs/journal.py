"""The record of a run, written while it runs: ``history.jsonl``, one JSON object per line.

A line is written several times a second and never changed, so a killed run has its curve up to the
kill. The last line of such a file may be incomplete.

There are two kinds of lines. ``session`` opens the file, and each resumption; it has the settings.
``sample`` has the state of the run (`olaf.jobs.progress.Sample`), and the episodes, evaluations and
events since the previous line.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.evaluation import Evaluation
from olaf.jobs.progress import Earlier, Episode, Happening, Progress, Sample
from olaf.values.parsed import json_of

FILE = "history.jsonl"


class Journal:
    """Writes the journal of one session: an `olaf.jobs.training.Observer`."""

    def __init__(self, folder: Path, session: Mapping[str, Any]) -> None:
        """Open the file and write the ``session`` line, with ``session`` in it."""
        self.written_to = folder / FILE
        self._file: IO[bytes] = self.written_to.open("ab", buffering=0)
        if self._file.tell():
            _end_half_line(self.written_to, self._file)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._write({"kind": "session", "began_at": now, **session})
        self._samples = self._episodes = self._happenings = self._evaluations = -1

    def happened(self, happening: Happening) -> None:
        """Do nothing: the next sample brings the event."""

    def stands(self, progress: Progress, phase: str) -> None:
        """Write the newest sample, if there is a new one.

        Raises OSError where it cannot be written. The next call then writes it.
        """
        if self._samples < 0:
            earlier = progress.earlier
            self._samples = len(earlier.samples)
            self._episodes = len(earlier.episodes)
            self._happenings = len(earlier.happenings)
            self._evaluations = len(earlier.evaluations)
        if len(progress.samples) == self._samples:
            return
        *before, last = progress.samples[self._samples :]
        lines: list[Mapping[str, Any]] = [
            {"kind": "sample", **_written(sample)} for sample in before
        ]
        lines.append(
            {
                "kind": "sample",
                **_written(last),
                "phase": phase,
                "trained_s": round(progress.trained_s, 3),
                "best_reward": progress.best_reward,
                "episodes": [list(e) for e in progress.episodes[self._episodes :]],
                "events": [dataclasses.asdict(h) for h in progress.happenings[self._happenings :]],
                "evaluations": [
                    dataclasses.asdict(one) for one in progress.evaluations[self._evaluations :]
                ],
            }
        )
        self._write(*lines)  # if it fails, the next call writes all of them again
        self._samples = len(progress.samples)
        self._episodes = len(progress.episodes)
        self._happenings = len(progress.happenings)
        self._evaluations = len(progress.evaluations)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _write(self, *lines: Mapping[str, Any]) -> None:
        """Write lines, all or none. Raises OSError, for a disk that is full."""
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        before = self._file.seek(0, os.SEEK_END)
        try:
            # One write, so that a kill leaves at most the last line incomplete.
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(before)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_journal(folder: Path) -> Earlier:
    """The whole journal of a run.

    Raises RunError if there is none, or a line in its middle cannot be read.
    """
    earlier = Earlier()
    trained_s, best = 0.0, None
    try:
        for line in _lines(folder / FILE):
            if line["kind"] == "session":
                earlier.sessions.append(line)
            elif line["kind"] == "sample":
                earlier.samples.append(_sample(line))
                earlier.episodes.extend(Episode(*episode) for episode in line.get("episodes", ()))
                earlier.happenings.extend(Happening(**event) for event in line.get("events", ()))
                earlier.evaluations.extend(map(Evaluation.told, line.get("evaluations", ())))
                trained_s = line.get("trained_s", trained_s)
                best = line.get("best_reward", best)
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{folder / FILE}: not the journal of a run: {error}", Exit.USAGE) from None
    return dataclasses.replace(earlier, trained_s=trained_s, best_reward=best)


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise RunError(f"{file}: {error.strerror}: no run to continue", Exit.USAGE) from None
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = json_of(line)
        except ValueError:
            # A kill may leave half a line: the last one, or, after a resumption, the last of a
            # session.
            if number == len(lines) or _opens_a_session(lines[number:]):
                continue
            raise ValueError(f"line {number} is not JSON") from None
        if not isinstance(found, dict):
            raise ValueError(f"line {number} is not an object")
        yield found


def _opens_a_session(following: list[str]) -> bool:
    return bool(following) and following[0].startswith('{"kind": "session"')


def _written(sample: Sample) -> dict[str, Any]:
    """The fields of a sample, without those that are empty and may be absent."""
    return {
        name: value
        for name, value in vars(sample).items()
        if value not in ({}, None) or name in _ALWAYS
    }


def _may_be_absent(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is not missing or field.default_factory is not missing


_ALWAYS = {field.name for field in dataclasses.fields(Sample) if not _may_be_absent(field)}
"""Fields that a sample has had from the first version on."""


def _sample(line: Mapping[str, Any]) -> Sample:
    names = [f.name for f in dataclasses.fields(Sample)]
    fields = {name: line[name] for name in names if name in line or name in _ALWAYS}
    fields["ages_s"] = {int(cluster): age for cluster, age in fields["ages_s"].items()}
    return Sample(**fields)


def _end_half_line(file: Path, stream: IO[bytes]) -> None:
    """Begin a new line if a kill left half of one."""
    with file.open("rb") as written:
        written.seek(-1, 2)
        if written.read(1) != b"\n":
            stream.write(b"\n")
