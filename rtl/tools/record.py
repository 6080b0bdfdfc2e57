"""What passed before on the very same inputs, and need not run again on every change.

A table has a row for each job: its name, the digest of everything that it reads, and the seconds of
the processor that it took. A job runs unless its digest is in the table. Cheap jobs run always, and
so does a sample of the others that each commit draws anew: a wrong table would soon be found.
"""

from __future__ import annotations

import csv
import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

COLUMNS = ["job", "digest", "seconds"]


def digest(parts: Iterable[str | bytes]) -> str:
    """A digest of parts, and of where one ends and the next begins."""
    found = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        found.update(b"%d:" % len(data))
        found.update(data)
    return found.hexdigest()


def versions(*packages: str) -> list[str]:
    """Of installed packages, as parts of a digest. `rtl/constraints.txt` pins them."""
    return [f"{package}=={version(package)}" for package in packages]


@dataclass(frozen=True)
class Row:
    """A job that passed."""

    digest: str
    seconds: float


class Record:
    """A table of jobs that passed."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.rows: dict[str, Row] = {}
        if table.exists():
            with table.open(newline="") as file:
                for job, made, seconds in list(csv.reader(file))[1:]:
                    self.rows[job] = Row(made, float(seconds))

    def has(self, job: str, made: str) -> bool:
        """Whether the job passed on these inputs."""
        return job in self.rows and self.rows[job].digest == made

    def seconds(self, job: str) -> float:
        """How long the job took when it last passed; for ever if nobody knows."""
        return self.rows[job].seconds if job in self.rows else float("inf")

    def passed(self, job: str, made: str, seconds: float) -> None:
        """Take the job in. What is known already stays, so that a table changes with its inputs."""
        if not self.has(job, made):
            self.rows[job] = Row(made, seconds)

    def failed(self, job: str) -> None:
        """Forget the job, whatever it did before."""
        self.rows.pop(job, None)

    def write(self, known: Iterable[str]) -> None:
        """Write the rows of jobs that there are, by name."""
        with self.table.open("w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(COLUMNS)
            for job in sorted(set(known) & self.rows.keys()):
                writer.writerow([job, self.rows[job].digest, f"{self.rows[job].seconds:.1f}"])


@dataclass(frozen=True)
class Choice:
    """What runs, and what is left because it passed before on the same inputs."""

    run: frozenset[str]
    drawn: tuple[str, ...]
    """Of those that run, the sample."""
    left: tuple[str, ...]
    seconds_left: float

    def tell(self, kind: str, table: Path, how: str) -> str:
        """What a run says about jobs that it leaves. kind: their name. how: to run all of them."""
        text = f"{len(self.left)} {kind} are left out, {self.seconds_left:.0f} s of CPU: they"
        text += f" passed with the same inputs ({table.parent.name}/{table.name}). {how}\n"
        text += f"  left: {', '.join(self.left)}\n"
        return text + f"  drawn, and done again: {', '.join(self.drawn)}"


def choose(
    digests: Mapping[str, str], record: Record, *, cheap: float, budget: float, seed: str
) -> Choice:
    """Choose from jobs, by the digests of their inputs.

    cheap: a job of fewer seconds always runs. budget: seconds of the sample. seed: draws it. A job
    that is drawn first runs even if it takes more than the budget, so that none is out of reach.
    """
    same = [job for job, made in digests.items() if record.has(job, made)]
    dear = {job: record.rows[job].seconds for job in same if record.rows[job].seconds >= cheap}
    drawn: list[str] = []
    spent = 0.0
    for job in sorted(dear, key=lambda job: digest([seed, job])):
        spent += dear[job]
        if drawn and spent > budget:
            break
        drawn.append(job)
    left = tuple(job for job in dear if job not in drawn)
    run = frozenset(digests.keys() - set(left))
    return Choice(run, tuple(sorted(drawn)), left, sum(dear[job] for job in left))


def say(told: str) -> None:
    """Print what is left out. `make check` repeats the first line at its end (scripts/check)."""
    print(told, flush=True)
    if file := os.environ.get("OLAF_LEFT_OUT"):
        with Path(file).open("a") as out:
            out.write(told.partition("\n")[0] + "\n")


def commit(folder: Path) -> str:
    """The commit that is checked out. Without git, as in an archive, a fixed word."""
    command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        said = subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return said.stdout.strip()
