"""When a dead process is started again, and when it is given up. Pure: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_DELAY_S = 5.0
"""The longest pause before a restart, in seconds."""

STEADY_S = 30.0
"""A process that ran this many seconds behaved well: its earlier deaths no longer count."""


@dataclass
class Backoff:
    """The pauses of one process: they double with each death in a row, and shrink after a good run.

    Only deaths in a row count towards ``restarts``. A process that dies once an hour always comes
    back; a process that dies at each start does not.
    """

    restarts: int
    """Restarts in a row before the process is given up."""
    delay_s: float
    """The first pause."""
    longest_s: float = LONGEST_DELAY_S
    steady_s: float = STEADY_S
    failures: int = 0
    """Deaths in a row so far."""

    def died(self, ran_s: float) -> float | None:
        """Seconds before the next start of a process that ran ``ran_s``; None to give it up."""
        if ran_s >= self.steady_s:
            self.failures = 0
        self.failures += 1
        if self.failures > self.restarts:
            return None
        # The exponent is bounded, so that no number of restarts overflows.
        doubled = self.delay_s * 2.0 ** min(self.failures - 1, 60)
        return min(doubled, self.longest_s)
