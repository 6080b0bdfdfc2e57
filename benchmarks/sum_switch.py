"""The switch of `benchmarks/sum.py`: prints its address, and its counts when its input ends.

`olaf switch` has no option for `receive_loss`, so this starts the same switch from its JSON.
"""

from __future__ import annotations

import sys

from olaf import _olaf


def main() -> None:
    """Run the switch of the configuration in the first argument."""
    switch = _olaf.Switch(sys.argv[1])
    switch.start()
    print(switch.address, flush=True)
    sys.stdin.read()
    print(switch.stats(), flush=True)
    switch.stop()


if __name__ == "__main__":
    main()
