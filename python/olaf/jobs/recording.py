"""The pushes of a run as a trace, the input of `olaf replay`; OLAF §8.2 replays such traces."""

from __future__ import annotations

import csv
from pathlib import Path

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.progress import Progress

COLUMNS = ("t_ns", "cluster", "worker", "seq", "reward", "bytes")

HEADER_BYTES = 96
"""Header bytes of each segment of an update, see ``crates/olaf-wire/src/offsets.rs``."""


def session_trace(file: Path, session: int) -> Path:
    """A separate file for each later session: ``trace-2.csv``.

    Workers number their updates anew in each session, so one file would not be one trace.
    """
    if not file.exists():
        return file
    for number in range(session, session + 1000):
        own = file.with_name(f"{file.stem}-{number}{file.suffix}")
        if not own.exists():
            return own
    raise RunError(f"--record {file}: a thousand such files exist; use another name", Exit.USAGE)


def check_trace(file: Path) -> None:
    """Raise RunError if the trace could not be written at the end of the run."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        new = not file.exists()
        file.open("a", encoding="utf-8").close()
        if new:
            file.unlink()
    except OSError as error:
        raise RunError(
            f"--record {file}: cannot be written ({error.strerror}); name a file in a folder of "
            "yours",
            Exit.USAGE,
        ) from None


def write_trace(file: Path, progress: Progress) -> int:
    """Write a line for each update that a worker pushed, in order of time; return their number.

    Times count from the first push. ``bytes`` are those of all datagrams of the update: a model of
    several segments needs one datagram for each. Raises RunError if the file cannot be written.
    """
    served = progress.served or {}
    size = served.get("segments", 1) * HEADER_BYTES + 4 * served.get("parameters", 0)
    clusters = {
        int(told["worker"]): int(told.get("cluster", 0)) for told in progress.ready.values()
    }
    pushes = sorted(progress.pushes, key=lambda push: (push.at_s, push.worker))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", newline="", encoding="utf-8") as stream:
            lines = csv.writer(stream, lineterminator="\n")
            lines.writerow(COLUMNS)
            for push in pushes:
                at_ns = round((push.at_s - pushes[0].at_s) * 1e9)
                cluster = clusters.get(push.worker, 0)
                reward = f"{push.reward:.3f}"
                lines.writerow([at_ns, cluster, push.worker, push.iteration - 1, reward, size])
    except OSError as error:
        raise RunError(f"--record {file}: cannot be written ({error.strerror})") from None
    return len(pushes)
