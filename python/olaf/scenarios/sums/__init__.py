"""Jobs that sum their gradients, in virtual time: ``docs/simulate-sums.md``.

`reading` reads a scenario from a TOML file, `running` runs it, `outcome` is the result, `tables`
and `drawing` show it. ``crates/olaf-sim/src/sums`` defines and simulates scenarios.
"""

from olaf.scenarios.sums.outcome import Job, Link, Outcome
from olaf.scenarios.sums.reading import Scenario, plain, read
from olaf.scenarios.sums.running import run

__all__ = ["Job", "Link", "Outcome", "Scenario", "plain", "read", "run"]
