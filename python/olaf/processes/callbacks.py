"""Callbacks that run in daemon threads. The interpreter ends after such a call, not within it.

A thread wakes the main thread in the middle of a callback: `torch.futures.Future.set_result` is an
example. The main thread may then reach the end of the program before the callback has returned. A
daemon thread that is inside C++ code at that moment aborts the process ("terminate called without
an active exception"), although everything was done.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

EXIT_WAIT_S = 2.0
"""The longest time that the end of the program waits for callbacks."""

_changed = threading.Condition()
_under_way: list[object] = []
"""A mark for each callback that runs."""


@contextmanager
def running() -> Iterator[None]:
    """Within it, a callback runs."""
    mark = _begin()
    try:
        yield
    finally:
        _end(mark)


def start(call: Callable[[], object]) -> None:
    """Call in a thread of its own: nothing waits for this callback, whatever it waits for."""
    mark = _begin()

    def run() -> None:
        nonlocal call
        try:
            call()
        finally:
            # It may hold the last reference to a tensor, whose end is C++ code, too.
            del call
            _end(mark)

    threading.Thread(target=run, name="olaf-callback", daemon=True).start()


def _begin() -> object:
    mark = object()
    with _changed:
        _under_way.append(mark)
    return mark


def _end(mark: object) -> None:
    with _changed:
        _under_way.remove(mark)
        _changed.notify_all()


def wait(timeout_s: float) -> bool:
    """Wait until no callback runs; false if one still runs after that time."""
    with _changed:
        return _changed.wait_for(lambda: not _under_way, timeout_s)


def _forked() -> None:
    """In a child that was forked: no callback of its parent runs here."""
    global _changed  # noqa: PLW0603
    _changed = threading.Condition()
    _under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

# Python calls this while daemon threads still run.
atexit.register(wait, EXIT_WAIT_S)
