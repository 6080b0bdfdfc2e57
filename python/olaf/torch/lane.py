"""A thread that does a group's operations one after the other, in the order of their calls."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future

from olaf.processes import callbacks, forking

Task = Callable[[], object]

IDLE_S = 1.0
"""The thread ends after this time without a task, and a later task starts it again. A group of
another backend does not say when it is destroyed."""


class Lane:
    """A serial executor. Its thread is a daemon: an operation that waits never holds up the exit.

    The thread of `concurrent.futures` would: Python joins it at the exit.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._begin()
        forking.register(self)

    def __forked__(self) -> None:
        """In a child that was forked: the thread and its tasks are those of the parent."""
        self._begin()

    def _begin(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Task, Future[None]] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._thread: threading.Thread | None = None

    @property
    def idle(self) -> bool:
        """No task waits or runs."""
        with self._lock:
            return self._waiting == 0

    def submit(self, task: Task) -> Future[None]:
        """Run the task after those before it."""
        done: Future[None] = Future()
        with self._lock:
            self._waiting += 1
            self._tasks.put((task, done))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
                self._thread.start()
        return done

    def stop(self) -> None:
        """Let the thread end after the tasks that wait."""
        self._tasks.put(None)

    def _work(self) -> None:
        while True:
            try:
                entry = self._tasks.get(timeout=IDLE_S)
            except queue.Empty:
                entry = None
            if entry is None:
                with self._lock:
                    if self._waiting == 0:
                        self._thread = None
                        return
                continue
            task, done = entry
            error: BaseException | None = None
            try:
                task()
            except BaseException as raised:
                error = raised
            with callbacks.running():
                self._count_down()
                if error is None:
                    done.set_result(None)
                else:
                    done.set_exception(error)
                # Otherwise the loop would keep the tensors alive until the next task.
                del entry, task, done, error

    def _count_down(self) -> None:
        with self._lock:
            self._waiting -= 1
