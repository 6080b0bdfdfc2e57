"""A tree of real switches as a person would start it; its root is killed and returns."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from waiting import until

Message = dict[str, Any]


class Role:
    """A role in a process of its own. Everything it says is kept, so that no test misses it."""

    def __init__(self, *argv: str) -> None:
        self.name = " ".join(argv)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "olaf", *argv, "--json", "--every", "0.1"],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said: list[Message] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def address(self) -> str:
        return str(self.hears("listening")["address"])

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(json.loads(line))

    def hears(self, event: str, since: int = 0, *, address: str | None = None) -> Message:
        """The first message of that kind from the given one on."""

        def look() -> Message | None:
            for message in self.said[since:]:
                if message["event"] == event and address in (None, message.get("address")):
                    return message
            return None

        found = until(look, what=f"{event} of {self.name}")
        assert found is not None
        return found

    def newest(self) -> Message:
        """The statistics it last gave."""
        stats: Message = {}
        for message in self.said:
            stats = message.get("stats", stats)
        return stats

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> Message:
        """Ask it to stop; its last word."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(20) == 0
        self._reader.join(5)
        stats: Message = self.hears("stopped")["stats"]
        return stats

    def close(self) -> None:
        self.process.kill()
        self.process.wait(10)
        if self.process.stdout is not None:
            self._reader.join(5)
            self.process.stdout.close()


@pytest.fixture
def start() -> Iterator[Callable[..., Role]]:
    started: list[Role] = []

    def role(*argv: str) -> Role:
        started.append(Role(*argv))
        return started[-1]

    yield role
    for one in started:
        one.close()


def switch(start: Callable[..., Role], upstream: str, listen: str = "127.0.0.1:0") -> Role:
    return start(
        "switch",
        f"--listen={listen}",
        f"--upstream={upstream}",
        "--slots=64",
        "--set=switch.silent_after_ms=500",
    )


def worker(start: Callable[..., Role], number: int, leaf: Role) -> Role:
    return start(
        "worker",
        f"--switch={leaf.address}",
        f"--id={number}",
        f"--cluster={number % 2}",
        "--env=CartPole-v1",
        "--set=learner.environments=2",
        "--set=learner.steps_per_update=200",
        "--set=worker.keepalive_ms=100",
        "--set=worker.silent_after_ms=500",
    )


def accounts_are_in_order(stats: Message) -> None:
    fates = stats["fates"]
    settled = sum(fates[f] for f in ("sent_alone", "merged", "replaced", "filtered", "waiting"))
    settled += sum(fates["dropped"].values()) + sum(fates["rejected"].values())
    assert stats["received"] == settled


@pytest.mark.slow
def test_the_root_of_a_tree_is_killed_and_returns_and_training_goes_on(
    start: Callable[..., Role],
) -> None:
    server = start("server", "--listen=127.0.0.1:0")
    root = switch(start, server.address)
    leaves = [switch(start, root.address) for _ in range(2)]
    workers = [worker(start, number, leaves[number % 2]) for number in range(4)]

    def version(one: Role) -> int:
        return int(one.newest().get("model_version", 0))

    def updates(one: Role) -> int:
        return int(one.newest().get("updates", 0))

    for one in workers:
        until(lambda one=one: version(one) > 3, what="models at every worker")  # type: ignore[misc]

    # The root dies: each leaf names it, each worker learns that its switch lives, all push on.
    seen = {one: len(one.said) for one in (*leaves, *workers)}
    before = {one: updates(one) for one in workers}
    root.kill()
    for leaf in leaves:
        leaf.hears("switch_silent", seen[leaf], address=root.address)
    for number, one in enumerate(workers):
        gone = one.hears("server_silent", seen[one])
        assert gone["through"] == leaves[number % 2].address
        until(lambda one=one: updates(one) > before[one] + 2, what="pushes without a root")  # type: ignore[misc]
    assert not [m for one in workers for m in one.said if m["event"] == "switch_silent"]

    # It returns: each leaf says so, and models come through again, newer than all before.
    newest = max(version(one) for one in workers)
    seen = {one: len(one.said) for one in leaves}
    again = switch(start, server.address, root.address)
    for leaf in leaves:
        leaf.hears("switch_restarted", seen[leaf], address=root.address)
    for one in workers:
        until(lambda one=one: version(one) > newest + 3, what="models after the return")  # type: ignore[misc]

    # What was counted has one fate, hop by hop; what the death took is a difference.
    pushed = [one.stop() for one in workers]
    ended = [*(leaf.stop() for leaf in leaves), again.stop()]
    served = server.stop()["jobs"][0]
    for stats in ended:
        accounts_are_in_order(stats)
    assert sum(stats["sent"] for stats in pushed) == sum(leaf["received"] for leaf in ended[:2])
    handed = sum(leaf["fates"]["sent_alone"] + leaf["fates"]["merged"] for leaf in ended[:2])
    arrived = served["fates"]["delivered_alone"] + served["fates"]["delivered_merged"]
    assert arrived <= handed
    assert {below["address"] for below in ended[2]["switches"]} == {
        leaf["address"] for leaf in ended[:2]
    }
