"""Run folders: a new one for each run, nothing overwritten, ``runs/latest`` links to the newest.

A lock holds a folder while a process of its run lives, so that a run is not resumed twice.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from olaf.errors.outcome import Exit, RunError
from olaf.rl.packed import FILE as ENVIRONMENT
from olaf.rl.packed import shown

RUNS = Path("runs")
"""Parent of the folders if the user names none."""

LATEST = "latest"
LATEST_COMPARISON = "latest-compare"

LEAVINGS = (
    "settings.toml",
    "history.jsonl",
    "run.json",
    "checkpoint.npz",
    "model.npz",
    "best.npz",
    "report.html",
    "compare.json",
)
"""A folder with one of these holds a run."""

BATCH_LEAVINGS = ("job.sbatch", "job.toml")
"""A folder with one of these holds a batch job, which may still wait to start."""


def new_folder(name: str, *, runs: Path = RUNS, latest: str = LATEST) -> Path:
    """Make ``runs/<time>-<name>`` and point the link ``latest`` to it.

    Two runs that start in the same second get separate folders. Raises RunError if the folder
    cannot be written.
    """
    stem = f"{datetime.now():%Y-%m-%d_%H%M%S}-{plain(shown(name))}"
    try:
        runs.mkdir(parents=True, exist_ok=True)
        for number in range(1, 1000):
            folder = runs / (stem if number == 1 else f"{stem}-{number}")
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            show_latest(folder, latest)
            return folder
    except OSError as error:
        raise RunError(
            f"{runs.resolve()}: cannot make the folder of the run there ({error.strerror}); "
            "start in a folder that you can write to, or name one with --out DIR",
            Exit.USAGE,
        ) from None
    raise RunError(f"{runs / stem}: a thousand runs began in this second", Exit.FAILED)


def given_folder(out: Path, *, from_batch: bool = False) -> Path:
    """Make the folder of ``--out``. An existing run there is left unchanged.

    from_batch: the caller is the batch job whose script and configuration are in the folder.
    Raises RunError if the folder holds a run, or cannot be written.
    """
    held = [name for name in LEAVINGS if (out / name).exists()]
    if held:
        again = "" if "compare.json" in held else f"continue it with `--resume {out}`, or "
        raise RunError(
            f"--out {out}: the folder holds a run already ({', '.join(held)}), and nothing is "
            f"overwritten; {again}name another folder",
            Exit.USAGE,
        )
    jobs = [name for name in BATCH_LEAVINGS if (out / name).exists()]
    if jobs and not from_batch:
        raise RunError(
            f"--out {out}: the folder holds a batch job already ({', '.join(jobs)}), and nothing "
            "is overwritten; submit that job with sbatch, or name another folder",
            Exit.USAGE,
        )
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".olaf"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise RunError(
            f"--out {out}: cannot write there ({error.strerror}); "
            "name a folder that you can write to",
            Exit.USAGE,
        ) from None
    return out


def forget(folder: Path, *, made: bool) -> None:
    """Delete the files of a run that did not start; delete the folder too if it was ``made``."""
    if made and folder.is_dir():
        shutil.rmtree(folder, ignore_errors=True)
        return
    for name in (*LEAVINGS, ENVIRONMENT, ".lock", "wandb-id"):
        (folder / name).unlink(missing_ok=True)
    for events in folder.glob("events.out.tfevents.*"):
        events.unlink()


def latest(runs: Path = RUNS) -> str | None:
    """The name that ``runs/latest`` points to."""
    link = runs / LATEST
    return os.readlink(link) if link.is_symlink() else None


def show_again(name: str | None, runs: Path = RUNS) -> None:
    """Point ``runs/latest`` to its former target."""
    if name is not None and (runs / name).is_dir():
        show_latest(runs / name)
    elif (runs / LATEST).is_symlink():
        (runs / LATEST).unlink()


def plain(name: str) -> str:
    """A name as part of a folder's: ``mine:lab/Dot-v0`` becomes ``mine-lab-Dot-v0``."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "run"


def show_latest(folder: Path, latest: str = LATEST) -> None:
    """Point ``latest``, beside the folder, to it: as a link, or a file that names it."""
    place = folder.parent / latest
    if place.is_dir() and not place.is_symlink():
        _keep_old(place)
    half = folder.parent / f".{latest}-{os.getpid()}"
    with contextlib.suppress(FileNotFoundError):
        half.unlink()
    try:
        half.symlink_to(folder.name, target_is_directory=True)
    except (OSError, NotImplementedError):  # a file system, or a system, without links
        half.write_text(folder.name + "\n", encoding="utf-8")
    half.replace(place)


def _keep_old(place: Path) -> None:
    """Earlier versions wrote each run to ``runs/latest`` itself: rename such a run."""
    at = datetime.fromtimestamp(place.stat().st_mtime)
    for number in range(1, 1000):
        kept = place.with_name(f"{at:%Y-%m-%d_%H%M%S}-{place.name}-{number}")
        if not kept.exists():
            place.rename(kept)
            return


def find_folder(named: Path) -> Path:
    """The folder that a name means: itself, a link's target, or the name in the file `latest`.

    Raises RunError if there is none.
    """
    folder = named
    if named.name in (LATEST, LATEST_COMPARISON) and named.is_file():
        folder = named.with_name(named.read_text(encoding="utf-8").strip())
    if folder.is_dir():
        return folder.parent / os.readlink(folder) if folder.is_symlink() else folder
    beside = (p for p in named.parent.glob("*") if not p.is_symlink())
    known = sorted(p.name for p in beside if (p / "history.jsonl").exists())
    near = f"; runs there: {', '.join(known[-5:])}" if known else ""
    raise RunError(f"{named}: no such run{near}", Exit.USAGE)


class Hold:
    """The lock on a run folder. It ends when the last process that has it ends in any way.

    The processes of the run inherit the descriptor: after a kill of their parent they live on for a
    moment, and may still write.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: IO[str] | None = None
        self.trouble: str | None = None
        """Why there is no lock, if the folder's file system has none; observers are told."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that the processes of the run inherit."""
        return () if self._file is None else (self._file.fileno(),)

    def take(
        self,
        *,
        patience_s: float = 0.0,
        waiting: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Hold:
        """Take the lock; ``waiting`` is called once if another process has it.

        Raises RunError if the run still goes on after ``patience_s``, or the folder is not
        writable.
        """
        try:
            import fcntl
        except ImportError:  # a system without these locks: the user must not start two at once
            return self
        try:
            self._file = (self.folder / ".lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise RunError(
                f"{self.folder}: cannot write there ({error.strerror})", Exit.USAGE
            ) from None
        deadline = clock() + patience_s
        said = False
        while True:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if clock() >= deadline:
                    self._let_go()
                    raise RunError(
                        f"{self.folder}: this run is still going; stop it first (Ctrl-C where it "
                        "runs), then resume it",
                        Exit.USAGE,
                    ) from None
                if not said:
                    waiting()
                    said = True
                time.sleep(0.05)
            except OSError as error:  # a file system without locks
                self._let_go()
                self.trouble = (
                    f"{self.folder} cannot be locked ({error.strerror}): make sure that the run is "
                    "not resumed while it is still going"
                )
                return self
            else:
                return self

    def _let_go(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._let_go()
