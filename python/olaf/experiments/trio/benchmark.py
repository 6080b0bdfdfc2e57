"""The benchmarks of Trio-ML §6.3: four servers at one switch that send without a straggler."""

from __future__ import annotations

from pydantic import Field

from olaf.experiments.trio import testbed
from olaf.experiments.trio.testbed import FLOAT_BYTES
from olaf.scenarios.sums import Job

NEVER_MS = 10_000
"""The timers' period: without a time-out they find nothing."""


class Servers(testbed.Links):
    """Servers at one switch."""

    servers: int = Field(ge=2)
    """Servers."""

    def aggregate(self, gradients: int, window: int, packets: int, *, scale: float = 1) -> Job:
        """Sum that many packets, one operation. Raises RunError if it fails."""
        job = {
            "name": "job",
            "engine": "trio",
            "workers": self.servers,
            "model_bytes": packets * gradients * FLOAT_BYTES,
            "iterations": 1,
            "compute_ns": 0,
            "window": window,
            "protocol": {"gradients": gradients},
        }
        network = self.network([self.servers], scale)
        what = f"{gradients} values a packet, window of {window}"
        return testbed.run(network, job, 0, timer_ms=NEVER_MS, what=what).jobs[0]

    def frame_us(self, gradients: int) -> float:
        """Time of a packet on a link, without headers."""
        return gradients * FLOAT_BYTES * 8 / self.rate_gbit / 1e3
