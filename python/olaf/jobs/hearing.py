"""Takes in what a run's processes do and print, and passes on what deserves a line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from olaf.jobs.faults import Faults
from olaf.jobs.liveness import Liveness
from olaf.jobs.printing import Prints
from olaf.jobs.progress import Happening, Progress
from olaf.jobs.supervisor import Occurrence, Printed, Said
from olaf.jobs.train_settings import TrainSettings


class Hears(Protocol):
    """The part of an `olaf.jobs.training.Observer` that takes lines."""

    def happened(self, happening: Happening) -> None:
        """Take an event that deserves a line."""


class Hearing:
    """The progress, the printed lines, the heartbeats and the faults of a run."""

    def __init__(
        self,
        progress: Progress,
        observer: Hears,
        now: Callable[[], float],
        train: TrainSettings,
        join_s: float = 0.0,
    ) -> None:
        """``now``: seconds of the run. join_s: time limit of a worker's join."""
        self._progress, self._observer, self._now = progress, observer, now
        self._prints = Prints(train.folder)
        self._faults = Faults()
        self._liveness = Liveness(
            start_s=train.start_timeout_s + join_s,
            stall_s=train.stall_timeout_s,
            now_s=progress.earlier.at_s,
        )
        self.fault: str | None = None
        """Why the user's code ends the run, once it has failed often enough."""

    @property
    def faulty(self) -> bool:
        """True if the user's code has failed at least once."""
        return bool(self._faults.times)

    def take(self, occurrence: Occurrence) -> None:
        """Take in an occurrence."""
        at_s = self._now()
        if isinstance(occurrence, Printed):
            self._progress.take(occurrence, at_s)
            for text in self._prints.take(occurrence, at_s):
                # A worker runs the user's code, which may print what it likes.
                ours = not occurrence.name.startswith("worker")
                self.say(occurrence.name, text, trouble=ours, printed=True)
            return
        if isinstance(occurrence, Said):
            self.fault = self.fault or self._faults.take(occurrence.message)
        if happening := self._progress.take(occurrence, at_s):
            self._observer.happened(happening)
        if slow := self._liveness.take(occurrence, at_s):
            self.say("run", slow)

    def say(self, who: str, text: str, *, trouble: bool = False, printed: bool = False) -> None:
        """Add a line of this run's own, or a printed one."""
        at_s = self._now()
        shown = text if who == "run" else f"{who}: {text}"
        echo = self._progress.is_echo(who, text, at_s)
        happening = Happening(at_s, who, shown, trouble, echo, printed=printed)
        self._progress.happenings.append(happening)
        self._observer.happened(happening)

    def silent(self, names: list[str]) -> list[str]:
        """See `Liveness.silent`; each gets a line."""
        found = self._liveness.silent(self._now(), names)
        for name, seconds in found.items():
            text = (
                f"{name} has said nothing for {seconds:.0f} s, and the others wait for its last "
                "updates: it is started again"
            )
            self.say("run", text, trouble=True)
        return list(found)

    def too_quiet(self, alive: list[str]) -> str | None:
        """See `Liveness.too_quiet`."""
        return self._liveness.too_quiet(self._now(), alive)

    def end(self) -> None:
        """Say how many printed lines were left out."""
        for who, text in self._prints.end():
            self.say(who, text, printed=True)
