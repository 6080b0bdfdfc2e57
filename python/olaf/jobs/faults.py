"""An error in the user's own code: what is told of it, and when it ends a run.

An environment or a network of the user's may fail at any step. The worker tells its parent the
error with the frames of the user's code, without those of Olaf, and ends. The parent starts it
again, because many errors are rare. An error at the same place three times is not.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from olaf.errors.outcome import Exit
from olaf.jobs.words import cause
from olaf.processes.lines import Reporter

OFTEN = 3
"""An error at the same place this many times, of all workers together, ends the run."""

MOST_FRAMES = 12
MOST_CHARACTERS = 2000
"""Longest text of an error in a message."""

_PACKAGE = str(Path(__file__).resolve().parents[1])


def fault_of(error: BaseException) -> dict[str, str]:
    """The fields of the message ``fault``.

    ``error``: type and text. ``where``: file, line and function, which tells one fault from
    another; for an error of an environment's data, the text without its numbers. ``frames``: the
    lines of the traceback that are the user's.
    """
    from olaf.rl.learner import LearnerError
    from olaf.rl.own import RaisedElsewhereError

    if isinstance(error, LearnerError):  # its text says what, where, and what to do
        text = str(error)[:MOST_CHARACTERS]
        return {"error": text, "where": re.sub(r"\d+", "#", text), "frames": ""}
    if isinstance(error, RaisedElsewhereError):  # in a process of an environment's copy
        text, there = error.text, traceback.StackSummary.from_list(error.frames)
    else:
        text = "".join(traceback.format_exception_only(error)).strip()
        there = traceback.extract_tb(error.__traceback__)
    text, frames = text[:MOST_CHARACTERS], _users(there)
    last = frames[-1] if frames else None
    where = f"{last.filename}:{last.lineno}, in {last.name}" if last else type(error).__name__
    lines = "".join(traceback.format_list(frames[-MOST_FRAMES:])).rstrip()
    return {"error": text, "where": where, "frames": lines[-2 * MOST_CHARACTERS :]}


def _users(frames: traceback.StackSummary) -> list[traceback.FrameSummary]:
    """From the first frame of the user's to the last; all but Olaf's own if none is the user's."""
    foreign = [frame for frame in frames if not _is_ours(frame)]
    users = [index for index, frame in enumerate(foreign) if not _is_installed(frame)]
    if users:
        return foreign[users[0] : users[-1] + 1]
    return foreign or list(frames)


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith((_PACKAGE, "<frozen"))


def _is_installed(frame: traceback.FrameSummary) -> bool:
    """True for a file of an installed package or of Python itself."""
    path = Path(frame.filename)
    return "site-packages" in path.parts or frame.filename.startswith(sys.base_prefix)


def is_users(error: BaseException) -> bool:
    """True if the user's code, or a package that it calls, raised the error.

    An `OSError` may come from the network, and as well from a scene that an environment opens.
    """
    if isinstance(error, SystemExit):
        return True
    return any(
        not _is_ours(frame)
        and ("site-packages" in frame.filename or not frame.filename.startswith(sys.base_prefix))
        for frame in traceback.extract_tb(error.__traceback__)
    )


def end_with_fault(reporter: Reporter, error: BaseException, **fields: Any) -> NoReturn:
    """Tell the parent of an error in the user's code, and end this role."""
    reporter.say("fault", **fault_of(error), **fields)
    raise SystemExit(int(Exit.FAILED))


@dataclass
class Faults:
    """Counts the faults of a run by place."""

    times: dict[str, int] = field(default_factory=dict)

    def take(self, message: Mapping[str, Any]) -> str | None:
        """Take in a message of a worker; return the reason to end the run, if it is one."""
        if message["event"] != "fault":
            return None
        where = str(message["where"])
        self.times[where] = self.times.get(where, 0) + 1
        if self.times[where] < OFTEN:
            return None
        return f"the same error {OFTEN} times: {cause(message)}"
