"""The prover over events: moments as numbers, and z3. Its size is that of updates, not of ticks."""

from olaf.verify.events.solving import Events

__all__ = ["Events"]
