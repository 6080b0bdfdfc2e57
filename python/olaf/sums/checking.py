"""``OLAF_CHECK=1``: all workers call each operation from the same place, with the same shape.

Two sums of one size that two workers call in another order are the same operation to a switch. With
the check the place of the call and the shape of the array are a part of what the workers compare.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from pathlib import Path

VARIABLE = "OLAF_CHECK"
"""Turns the check on, at all workers: "1", "true" or "yes"."""

LARGEST = 8191
"""The core takes marks up to this one; 0 is none."""

Place = tuple[str, int]
"""File and line."""

_OWN = str(Path(__file__).resolve().parents[1]) + os.sep


def is_on() -> bool:
    """The environment asks for the check."""
    return os.environ.get(VARIABLE, "").lower() in ("1", "true", "yes")


def mark(array: object, place: Place) -> int:
    """A mark of the caller's place in the source and of the array's shape, from 1 to `LARGEST`.

    Of marks that should differ, 1 in 8191 is the same.
    """
    shape = tuple(getattr(array, "shape", ()))
    told = repr((*place, shape)).encode()
    return int.from_bytes(hashlib.sha256(told).digest()[:8], "big") % LARGEST + 1


def place_of_call() -> Place:
    """File and line of the call, outside of this package and of torch.

    The file is named without its folders, which may differ between machines. In a thread that
    torch's backend began for the call it is a line of Python's `threading`.
    """
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_inside(frame.f_code.co_filename):
        frame = frame.f_back
    return Path(frame.f_code.co_filename).name, frame.f_lineno


def is_known(place: Place) -> bool:
    """The place is one of the caller's program, and no thread's beginning."""
    return place[0] != Path(threading.__file__).name


def _is_inside(file: str) -> bool:
    return file.startswith(_OWN) or f"{os.sep}torch{os.sep}" in file
