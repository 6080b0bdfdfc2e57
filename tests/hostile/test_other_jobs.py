"""A job that floods does not take another job's slots or its part of the link."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from forging import Attacker, lanes
from parties import SIZE, Honest, Party

WINDOW_S = 3.0


def pushes(honest: Honest) -> int:
    """Pushes whose answers came within the window, one after the other."""
    honest.push()
    end = time.monotonic() + WINDOW_S
    count = 0
    while time.monotonic() < end:
        count += honest.push()
    return count


@pytest.mark.parametrize("discipline", ["olaf", "fifo"])
def test_a_flood_of_another_job_leaves_a_job_its_share(
    party: Callable[..., Party], server: Party, discipline: str
) -> None:
    # An update of 136 bytes takes about 9 ms, far more than the machine.
    switch = party("switch", upstream=server.address, uplink="120kbit", queue=discipline)
    honest = Honest(switch.address, 1)
    alone = pushes(honest)

    attackers = [
        Attacker(switch.place, job=2, cluster=number, worker=700 + number) for number in range(24)
    ]
    for attacker in attackers:
        attacker.enters(SIZE)
    before = switch.stats()
    over = threading.Event()

    def flood() -> None:
        sequence = 0
        while not over.is_set():
            sequence += 1
            for attacker in attackers:
                attacker.send(attacker.update(lanes(0.1, SIZE), sequence=sequence))
                attacker.send(attacker.fetch())
            # 2,400 updates a second: 20 times what the link carries.
            time.sleep(0.01)

    thread = threading.Thread(target=flood)
    thread.start()
    try:
        beside = pushes(honest)
    finally:
        over.set()
        thread.join()
    for attacker in attackers:
        attacker.close()
    # Two jobs are active: one that always waits for its answer has at least half of the link.
    assert beside >= 0.9 * alone / 2, f"{beside} pushes, {alone} alone"
    after = switch.stats()
    dropped = after["fates"]["dropped"]["queue_full"] - before["fates"]["dropped"]["queue_full"]
    assert dropped > 1_000, "the flood was one, and it has what it dropped in its own account"
    own = [cluster for cluster in after["clusters"] if cluster["job"] == 1]
    assert [cluster["dropped"] for cluster in own] == [0]
