"""The common start of a synchronous run: no worker learns before all have joined.

A round waits for the workers that are here (`server.aggregate = round`). A worker that starts
earlier than the others would learn alone for some rounds, how many depends on the machine, and the
same seed would give another model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from olaf.jobs.supervisor import Ended, Occurrence, Said

BEGIN = "begin"
"""The line that lets a worker begin its turns, see `olaf.processes.lines`."""


class Beginning:
    """Tells each worker to begin once all have joined or cannot; later ones, when they join."""

    def __init__(self, workers: Iterable[str], tell: Callable[[str, str], None]) -> None:
        """workers: the names of all. tell: writes a line to the process of a name."""
        self._missing = set(workers)
        self._joined: list[str] = []
        self._tell = tell

    def take(self, occurrence: Occurrence) -> None:
        """Take in an occurrence, in order."""
        name = occurrence.name
        if isinstance(occurrence, Said) and occurrence.message.get("event") == "joined":
            self._joined.append(name)
            self._missing.discard(name)
        elif isinstance(occurrence, Ended) and occurrence.back_in_s is None:
            self._missing.discard(name)
        if not self._missing:
            for joined in self._joined:
                self._tell(joined, BEGIN)
            self._joined = []
