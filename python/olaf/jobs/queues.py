"""The queue disciplines, as the core lists them in `olaf_engine::queues`."""

from __future__ import annotations

from olaf._olaf import queues

ABOUT = dict(queues())
"""Discipline -> what it does."""
NAMES = tuple(ABOUT)
METAVAR = "|".join(NAMES)
EXPLAINED = "; ".join(f"{name} {about}" for name, about in ABOUT.items()) + "."


def known(name: str) -> str:
    """Return the name of an existing discipline. Raises ValueError."""
    if name not in ABOUT:
        raise ValueError(f"must be one of {', '.join(NAMES)}")
    return name
