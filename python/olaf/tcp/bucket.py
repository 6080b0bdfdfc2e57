"""A token bucket: when the next bytes may leave a link of a given rate. Time is an argument."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Bucket:
    """Lets at most ``rate_bytes_per_s * time + burst_bytes`` pass in any interval."""

    rate_bytes_per_s: float
    burst_bytes: float
    """Bytes that an idle link may send at once; they compensate a process that woke up late."""
    _free_at_s: float = float("-inf")
    """The time at which all bytes so far would have left a link of this rate."""

    def take(self, now_s: float, count: int) -> float:
        """Account for ``count`` bytes; return the seconds until they may be passed on."""
        rested_s = now_s - self.burst_bytes / self.rate_bytes_per_s
        self._free_at_s = max(self._free_at_s, rested_s) + count / self.rate_bytes_per_s
        return max(self._free_at_s - now_s, 0.0)
