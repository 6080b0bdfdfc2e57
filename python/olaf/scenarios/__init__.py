"""Scenarios, ``docs/reference/scenarios.md``: many workers, a tree of queues, virtual time.

`reading` reads one from a TOML file, `running` runs it, `summary` combines seeds, `tables` prints
them. ``crates/olaf-sim`` defines and simulates scenarios.
"""

from olaf.scenarios.outcome import Outcome
from olaf.scenarios.reading import Scenario, read, with_overrides
from olaf.scenarios.running import run
from olaf.scenarios.summary import Summary, summarize

__all__ = ["Outcome", "Scenario", "Summary", "read", "run", "summarize", "with_overrides"]
