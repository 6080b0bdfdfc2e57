"""The relay's process, as `olaf train --transport tcp` starts it: ``python -m olaf.tcp``."""

from __future__ import annotations

import sys

from olaf.processes.serving import run_attached
from olaf.tcp.roles import run_relay

if __name__ == "__main__":
    sys.exit(run_attached(run_relay))
