"""A flood of joins that echo nothing, as a process of its own: `python sum_flooding.py HOST:PORT
PROTOCOL`.

Each line in, `flood SECONDS` or `burn SECONDS`, makes it send joins for that time, from many
addresses and ports, to its target or to a socket that nobody reads: the same work for the machine
without a datagram for the switch. The answer is a line: how many joins went to the target.
"""

from __future__ import annotations

import socket
import sys
import time

from sum_formats import FORMATS, Format, Name
from sum_parties import Stranger

PER_SECOND = 4_000
TURN_S = 0.005
SENDERS = 400


def senders(target: tuple[str, int], count: int) -> list[Stranger]:
    """Strangers at as many addresses of the loopback network."""
    hosts = (f"127.{7 + n // 60_000}.{n // 250 % 250}.{1 + n % 250}" for n in range(count))
    return [Stranger(target, host) for host in hosts]


def join(form: Format, number: int) -> Name:
    """Another worker each time: of the honest job, and of many others."""
    return Name(job=1 + number % 200, session=100_000 + number, workers=2)


def send(all_of: list[Stranger], form: Format, seconds: float, number: int) -> int:
    """Send the joins after that one; the number of the last."""
    due = time.monotonic()
    end = due + seconds
    while (now := time.monotonic()) < end:
        due = max(due, now - 4 * TURN_S)  # nothing makes up for a long stall
        while due < now:
            number += 1
            all_of[number % len(all_of)].say(form.join(join(form, number)))
            due += 1 / PER_SECOND
        time.sleep(TURN_S)
    return number


def main() -> None:
    """Answer until the input ends."""
    host, _, port = sys.argv[1].rpartition(":")
    form = FORMATS[sys.argv[2]]
    place = (host, int(port))
    all_of = senders(place, SENDERS)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sink:
        sink.bind(("127.0.0.1", 0))
        number = 0
        print("ready", flush=True)
        for line in sys.stdin:
            what, seconds = line.split()
            for one in all_of:
                one.target = place if what == "flood" else sink.getsockname()
            before, number = number, send(all_of, form, float(seconds), number)
            print(number - before if what == "flood" else 0, flush=True)


if __name__ == "__main__":
    main()
