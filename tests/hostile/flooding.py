"""A worker that floods, as a process of its own: `python flooding.py HOST:PORT`.

It joins, and prints a line. Each line in, `flood SECONDS` or `burn SECONDS`, makes it send small
updates for that time, to its target or to a socket that nobody reads: the same work for the machine
without a packet for the job. The answer is a line: how many updates it sent to its target.
"""

from __future__ import annotations

import socket
import sys
import time

from forging import Attacker, lanes
from parties import SIZE

PER_SECOND = 4_000
TURN_S = 0.005
"""It sends a few updates at once: those that are due."""
SMALL = [lanes(0.011, SIZE), lanes(-0.011, SIZE)]
"""Just above a hundredth of the usual length; two of them move nothing."""


def send(attacker: Attacker, seconds: float, sequence: int) -> int:
    """Send the updates after that one; the sequence number of the last update."""
    due = time.monotonic()
    end = due + seconds
    while (now := time.monotonic()) < end:
        due = max(due, now - 4 * TURN_S)  # nothing makes up for a long stall
        while due < now:
            sequence += 1
            attacker.send(attacker.update(SMALL[sequence % 2], sequence=sequence))
            due += 1 / PER_SECOND
        time.sleep(TURN_S)
    return sequence


def main() -> None:
    """Answer until the input ends."""
    host, _, port = sys.argv[1].rpartition(":")
    attacker = Attacker((host, int(port)))
    place = attacker.target
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        sequence = 0
        attacker.enters(SIZE)
        print("joined", flush=True)
        for line in sys.stdin:
            what, seconds = line.split()
            is_flood = what == "flood"
            if is_flood:
                attacker.enters(SIZE)  # it may have been silent for long
            attacker.target = place if is_flood else sink.getsockname()
            sent = send(attacker, float(seconds), sequence) - sequence
            attacker.target = place
            if is_flood:
                sequence += sent
            print(sent if is_flood else 0, flush=True)


if __name__ == "__main__":
    main()
