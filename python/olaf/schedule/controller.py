"""The allocation controller as one thread: core and store together, one step after the other.

Requests go into a bounded queue. The thread takes those that wait, applies them, and writes all of
them with one fsync. Only then does it answer the clients and publish the events. Reads go through
the same queue, so no client sees a state that could still be lost.
"""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

from olaf._olaf import Allocator
from olaf.schedule.store import Accepted, Store, StoreError

MOST_WAITING = 4096
"""Most requests in the queue; further ones are told to try again."""

CLOSE_S = 30.0
"""Time limit in seconds for a stopping service to write the queue's requests."""

MOST_TOGETHER = 256
"""Most requests that share an fsync."""

SNAPSHOT_EVERY = 10_000
"""Number of commands after which a snapshot replaces them."""

MOST_EVENTS = 10_000
"""Number of events that are kept for listeners."""


class RefusedError(Exception):
    """The core refuses: ``kind`` and the other fields of ``Refusal``, and a sentence."""

    def __init__(self, why: Mapping[str, Any], text: str) -> None:
        super().__init__(text)
        self.why = why


class BusyError(Exception):
    """The queue is full, or the controller is closing."""


class KeyTakenError(Exception):
    """The key was used for another submission."""

    def __init__(self, job: int) -> None:
        super().__init__(f"it was used for job {job}, which was submitted with other words")
        self.job = job


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    outcome: dict[str, Any]
    job: dict[str, Any] | None
    """The present state of the command's job."""
    repeated: bool = False
    """True if the same submission was accepted before: nothing was done."""


@dataclass
class _Work:
    call: Callable[[], Any]
    answer: Future[Any] = field(default_factory=Future)


def _nowhere(events: list[dict[str, Any]], last: int) -> None:
    """Discard the events."""


def no_fault(step: str) -> None:
    """Do nothing."""


class Controller:
    """Core and store. The methods that return a Future may be called from any thread."""

    def __init__(
        self,
        store: Store,
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        tell: Callable[[list[dict[str, Any]], int], None] = _nowhere,
        at: Callable[[str], None] = no_fault,
    ) -> None:
        """Replay the store, then wait for requests.

        tell: is called with events that are on the disk, and the number of the last one.
        at: is called between any two steps; a test kills the process there.
        """
        self._store = store
        self._clock_ms = clock_ms
        self._tell = tell
        self._at = at
        self._line: queue.Queue[_Work | None] = queue.Queue(MOST_WAITING)
        self._closing = False
        self.broken: str | None = None
        """Why the controller is broken, or None."""
        self.when_broken: Callable[[], None] = lambda: None
        self.spec = store.spec
        """The allocator's configuration."""
        self._load()
        self._thread = threading.Thread(target=self._serve, name="controller", daemon=True)
        self._thread.start()

    def _load(self) -> None:
        kept, spec = self._store.load(), json.dumps(self._store.spec)
        other_version = (
            "go on with the version of Olaf that wrote it; stopped by SIGTERM, it leaves a file "
            "that newer ones read"
        )
        try:
            core = Allocator(spec) if kept.state is None else Allocator.restore(spec, kept.state)
            found = json.loads(core.replay(kept.commands, MOST_EVENTS))
        except ValueError as error:
            raise StoreError(f"--store {self._store.file}: {error}; {other_version}") from None
        if found["differs"] is not None:
            raise StoreError(
                f"--store {self._store.file}: command {found['differs'] + 1} since the last "
                f"snapshot is decided differently now; {other_version}"
            )
        self._core = core
        self._since_snapshot = self.replayed = len(kept.commands)
        self._snapshot_at = SNAPSHOT_EVERY
        self.events: int = kept.events + found["events"]
        """Number of all events; they are numbered from 1."""
        self.last_events: list[dict[str, Any]] = found["last"]
        """The newest events when the store was opened."""

    # Requests.

    def submit(
        self,
        request: dict[str, Any],
        gain: int,
        key: str | None,
        pattern: tuple[str, str] | None = None,
    ) -> Future[Done]:
        """Submit a job; the same key and the same request again return the same job.

        request: the fields of the core's ``Request``. gain: time that a tree saves it, in
        host-nanoseconds per second; two requests may differ in it and count as the same. pattern:
        name and contents from which the gain was computed, stored with the job.
        """
        return self._enqueue(lambda: self._submit(request, gain, key, pattern))

    def command(self, command: dict[str, Any]) -> Future[Done]:
        """Any other ``Command``."""
        return self._enqueue(lambda: self._command(command))

    def read(self, ask: Callable[[Allocator], Any]) -> Future[Any]:
        """Read from the core."""
        return self._enqueue(lambda: ask(self._core))

    def close(self) -> None:
        """Finish the queue, and release the store."""
        self._closing = True
        self._line.put(None)
        self._thread.join(CLOSE_S)
        if self._thread.is_alive():
            raise StoreError(
                f"--store {self._store.file}: not all requests were written within "
                f"{CLOSE_S:.0f} s; those that were answered are in it"
            )
        if self.broken is None and self._since_snapshot:
            self._compact()
        self._store.close()

    def waiting(self) -> int:
        """Number of requests in the queue."""
        return self._line.qsize()

    def _enqueue(self, call: Callable[[], Any]) -> Future[Any]:
        work = _Work(call)
        if self._closing:
            raise BusyError("the service is stopping")
        if self.broken is not None:
            raise StoreError(self.broken)
        try:
            self._line.put_nowait(work)
        except queue.Full:
            raise BusyError(f"{MOST_WAITING} requests wait already") from None
        if self.broken is not None:
            with contextlib.suppress(InvalidStateError):  # it was answered already
                work.answer.set_exception(StoreError(self.broken))
        return work.answer

    # The thread.

    def _serve(self) -> None:
        while (work := self._line.get()) is not None:
            batch = [work]
            while len(batch) < MOST_TOGETHER:
                try:
                    another = self._line.get_nowait()
                except queue.Empty:
                    break
                if another is None:
                    self._line.put(None)
                    break
                batch.append(another)
            try:
                self._do(batch)
            except BaseException as error:
                self._break(f"a bug of the controller: {error!r}")
                raise

    def _do(self, batch: list[_Work]) -> None:
        self._accepted: list[Accepted] = []
        self._happened: list[dict[str, Any]] = []
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            for work in batch:
                if not work.answer.set_running_or_notify_cancel():
                    continue  # the client left before it began
                try:
                    answers.append((work.answer, work.call(), None))
                except (RefusedError, KeyTakenError, ValueError) as refusal:
                    answers.append((work.answer, None, refusal))
            self._at("applied")
            if self._accepted:
                self._store.append(self._accepted)
                self._since_snapshot += len(self._accepted)
                self._at("written")
        except BaseException as error:
            # The core may be ahead of the file now: the file counts.
            self._recover(error)
            for work in batch:
                if not work.answer.cancelled():
                    work.answer.set_exception(StoreError(f"not done: {error}"))
            return
        if self._happened:
            self.events += len(self._happened)
            self._tell(self._happened, self.events)
            self._at("told")
        for future, value, refused in answers:
            if refused is None:
                future.set_result(value)
            else:
                future.set_exception(refused)
        self._at("answered")
        if self._since_snapshot >= self._snapshot_at:
            self._compact()

    def _compact(self) -> None:
        """Reload from a snapshot, as a restart would, so that both decide the same from here on."""
        state = self._core.snapshot()
        try:
            restored = Allocator.restore(json.dumps(self._store.spec), state)
        except ValueError:
            # This state cannot be a snapshot: keep its commands until a later state can.
            self._snapshot_at += SNAPSHOT_EVERY
            return
        self._at("restored")
        try:
            self._store.compact(self._clock_ms(), self.events, state)
        except StoreError as error:
            self._recover(error)
            return
        self._at("compacted")
        self._core, self._since_snapshot, self._snapshot_at = restored, 0, SNAPSHOT_EVERY

    def _recover(self, error: BaseException) -> None:
        before = self.events
        try:
            self._load()
        except Exception as second:
            self._break(f"{error}; and reading the store again: {second}")
            return
        if self.events > before:
            missed = self.events - before
            self._tell(self.last_events[-missed:], self.events)

    def _submit(
        self,
        request: dict[str, Any],
        gain: int,
        key: str | None,
        pattern: tuple[str, str] | None,
    ) -> Done:
        text = json.dumps(request, sort_keys=True)
        if key is not None and (known := self._known(key)) is not None:
            before, job = known
            if before != text:
                raise KeyTakenError(job)
            return Done({}, self._view(job), repeated=True)
        return self._command({"do": "submit", **request, "gain": gain}, key, text, pattern)

    def _break(self, why: str) -> None:
        """The controller is broken: end all waiting requests with an error."""
        self.broken = why
        self.when_broken()
        while True:
            try:
                work = self._line.get_nowait()
            except queue.Empty:
                return
            if work is not None:
                with contextlib.suppress(InvalidStateError):  # the client has left
                    work.answer.set_exception(StoreError(why))

    def _command(
        self,
        command: dict[str, Any],
        key: str | None = None,
        request: str | None = None,
        pattern: tuple[str, str] | None = None,
    ) -> Done:
        text = json.dumps(command, separators=(",", ":"))
        now_ms = self._clock_ms()
        said = json.loads(self._core.apply(now_ms, text))
        if said["refused"] is not None:
            raise RefusedError(said["refused"]["why"], said["refused"]["text"])
        outcome = said["done"]
        job = outcome["submitted"] or command.get("job")
        if outcome["changed"]:
            self._accepted.append(
                Accepted(now_ms, text, said["digest"], key, request, outcome["submitted"], pattern)
            )
            self._happened += outcome["events"]
        return Done(outcome, self._view(job) if job is not None else None)

    def _known(self, key: str) -> tuple[str, int] | None:
        for each in self._accepted:
            if each.key == key and each.request is not None and each.job is not None:
                return each.request, each.job
        return self._store.submitted(key)

    def _view(self, job: int) -> dict[str, Any] | None:
        view = self._core.job(job)
        return None if view is None else json.loads(view)
