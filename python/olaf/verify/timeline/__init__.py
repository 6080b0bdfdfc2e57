"""The prover over ticks: Booleans, sums of them, and z3."""

from olaf.verify.timeline.solving import Timeline

__all__ = ["Timeline"]
