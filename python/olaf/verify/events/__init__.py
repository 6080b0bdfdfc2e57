"""The prover over events: moments are numbers for z3. Its size grows with updates, not ticks."""

from olaf.verify.events.solving import Events

__all__ = ["Events"]
