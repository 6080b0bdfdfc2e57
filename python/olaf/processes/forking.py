"""What belongs to the process that made it. In a child that `os.fork` makes, its copy is inert.

The child has no threads but one, and its sockets are those of its parent: what it sends, the parent
says. A data loader's workers are such children.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import NoReturn, Protocol


class Owned(Protocol):
    """A thing that belongs to one process."""

    def __forked__(self) -> None:
        """In the child, before anything else runs: become inert."""


class Inert:
    """Stands in the child where the parent has a connection. It says nothing to anybody."""

    def __init__(self) -> None:
        self._owner = os.getppid()

    def leave(self) -> None:
        """The parent stays where it is."""

    leave_at_once = end_pipeline = leave

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse()

    def refuse(self) -> NoReturn:
        """Raise RuntimeError."""
        raise RuntimeError(
            f"this connection belongs to process {self._owner}, and this is process {os.getpid()}, "
            "a fork of it: connect in this process, or fork before the connection is made"
        )


def register(owned: Owned) -> None:
    """Call its `__forked__` in each child that begins while it lives."""
    _all.add(owned)


def abandon(thing: object) -> None:
    """Never free it: its end would do in this process what belongs to another one."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


_all: weakref.WeakSet[Owned] = weakref.WeakSet()


def _in_child() -> None:
    for owned in list(_all):
        owned.__forked__()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
