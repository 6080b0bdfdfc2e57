"""The last report of each process of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Stats = Mapping[str, Any]


@dataclass(frozen=True)
class Incarnation:
    """The last report of one process, and whether the process reported at its end."""

    name: str
    number: int
    stats: Stats
    final: bool
    """True for the report at a clean end, or of a running process: no counts came after it."""

    @property
    def label(self) -> str:
        """``switch #1``."""
        return f"{self.name} #{self.number}"
