"""When a process that died is started again, and when it is given up. Pure: time is an argument."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_DELAY_S = 5.0
"""No pause before a restart is longer."""

STEADY_S = 30.0
"""A process that ran so long behaved well: what went wrong before is forgiven."""


@dataclass
class Backoff:
    """The pauses of one process: they double from death to death, and shrink after a good run.

    Only deaths in a row count towards ``restarts``: a process that dies once an hour comes back
    each time, one that dies as soon as it starts does not.
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
        """The pause before the next start of a process that ran ``ran_s``; None to give it up."""
        if ran_s >= self.steady_s:
            self.failures = 0
        self.failures += 1
        if self.failures > self.restarts:
            return None
        # The exponent has a bound, so that no number of restarts overflows.
        doubled = self.delay_s * 2.0 ** min(self.failures - 1, 60)
        return min(doubled, self.longest_s)
