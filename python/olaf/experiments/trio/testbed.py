"""What Trio-ML's figures share: the links, the switches, and a run in virtual time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.errors.outcome import RunError
from olaf.scenarios.sums import Outcome, plain
from olaf.scenarios.sums import run as simulate

FLOAT_BYTES = 4
JUMBO_BYTES = 8972
"""The longest datagram: a packet of 1,024 gradients does not fit into 1,472 bytes."""
NEVER_MS = 3_600_000


class Links(experiments.Parameters):
    """Each link is alike, that between two switches, too."""

    rate_gbit: float = Field(gt=0)
    """Rate of each link."""
    delay_us: float = Field(ge=0)
    """Delay of each link."""

    def network(self, racks: Sequence[int], scale: float = 1) -> dict[str, Any]:
        """Workers behind lower switches, with the rate divided by ``scale``."""
        rate_bps = round(self.rate_gbit * 1e9 / scale)
        return {
            "racks": list(racks),
            "rate_bps": rate_bps,
            "trunk_rate_bps": rate_bps,
            "delay_ns": round(self.delay_us * 1e3),
            "datagram_bytes": JUMBO_BYTES,
        }


def run(
    network: Mapping[str, Any], job: Mapping[str, Any], seed: int, *, timer_ms: int, what: str
) -> Outcome:
    """Run a job. Raises RunError, which begins with ``what``, if it fails."""
    switch = {
        "trio": {
            "timer_ms": timer_ms,
            # One job has all of a switch's memory: an eighth of our usual 640 MiB.
            "jobs": 1,
            "memory_bytes": 80 << 20,
            # The advanced mitigation of §5, which the paper does not evaluate, is off.
            "permanent_after_ms": NEVER_MS,
        }
    }
    outcome = simulate(plain({"network": network, "switch": switch, "jobs": [job]}), seed)
    if (failed := outcome.jobs[0].failed) is not None:
        raise RunError(f"{what}: {failed}")
    return outcome
