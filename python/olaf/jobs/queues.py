"""The queue disciplines as the core lists them, in `olaf_engine::queues`: no list of our own."""

from __future__ import annotations

from olaf._olaf import queues

ABOUT = dict(queues())
"""Of each discipline's name what it does."""
NAMES = tuple(ABOUT)
METAVAR = "|".join(NAMES)
EXPLAINED = "; ".join(f"{name} {about}" for name, about in ABOUT.items()) + "."


def known(name: str) -> str:
    """The name, if there is such a discipline. Raises ValueError."""
    if name not in ABOUT:
        raise ValueError(f"must be one of {', '.join(NAMES)}")
    return name
