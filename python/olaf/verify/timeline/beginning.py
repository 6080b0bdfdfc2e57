"""The state of the queue and the senders at tick 0.

From an empty queue, a proof reaches as far as the run is unrolled. From *any* possible state,
reachable or not, it reaches every moment of every run, since each moment begins in some state.
"""

from __future__ import annotations

from itertools import permutations

from olaf.verify.gates import Bit, Gates, negation
from olaf.verify.instance import Instance


class Beginning:
    """An empty queue, and senders that have sent nothing yet."""

    is_first = True
    """Nothing was due before tick 0."""

    def __init__(self, gates: Gates, instance: Instance) -> None:
        clusters, senders = range(len(instance.clusters)), range(len(instance.senders))
        self.open: list[Bit] = [False for _ in clusters]
        self.ahead: dict[tuple[int, int], Bit] = dict.fromkeys(permutations(clusters, 2), False)
        self.beginner: list[Bit] = [False for _ in senders]
        """The senders whose arrival began the present busy period."""
        self.part: list[Bit] = [False for _ in senders]
        """The senders with a part in their cluster's open update."""
        self.waiting: list[Bit] = [False for _ in senders]
        """The senders with an update that is due and late."""

    def started(self, cluster: int, ago: int) -> Bit:
        """Whether an update of the cluster began service this many ticks before tick 0."""
        return False

    def heard(self, sender: int, tick: int) -> Bit:
        """Whether the sender heard, at the tick, an answer to a service begun before tick 0."""
        return False

    def earlier_updates(self, sender: int, count: int) -> list[tuple[Bit, Bit]]:
        """For its last updates before tick 0: whether there was one, and whether it was sent."""
        return [(False, False)] * count


class Anything(Beginning):
    """Any state that the rules of queue and senders allow. Some are unreachable."""

    is_first = False

    def __init__(self, gates: Gates, instance: Instance) -> None:
        super().__init__(gates, instance)
        self._gates = gates
        clusters, senders = range(len(instance.clusters)), range(len(instance.senders))
        self.open = [gates.free(f"was_open_{c}") for c in clusters]
        self._started = {
            (c, ago): gates.free(f"was_started_{c}_{ago}")
            for c in clusters
            for ago in range(1, instance.service + 1)
        }
        self._heard: dict[tuple[int, int], Bit] = {}
        wire: list[Bit] = list(self._started.values())
        # One service at a time; its slot and the open ones' fit the queue; the link never rests.
        gates.require(gates.at_most(wire, 1))
        gates.require(gates.at_most([*self.open, *wire], instance.slots))
        for c in clusters:
            gates.require(gates.any_of([negation(self.open[c]), *wire]))
        for c, d in permutations(clusters, 2):
            if c < d:
                first = gates.free(f"was_ahead_{c}_{d}")
                self.ahead[c, d], self.ahead[d, c] = first, negation(first)
        for a, b, c in permutations(clusters, 3):
            circle = [self.ahead[a, b], self.ahead[b, c], self.ahead[c, a]]
            gates.require(negation(gates.all_of(circle)))
        self.beginner = [gates.free(f"was_beginner_{s}") for s in senders]
        gates.require(gates.at_most(self.beginner, 1))
        gates.require(gates.any_of(self.beginner))
        self.part = [gates.free(f"had_part_{s}") for s in senders]
        self.waiting = [
            gates.free(f"was_waiting_{s}") if instance.senders[s].jitter else False for s in senders
        ]

    def started(self, cluster: int, ago: int) -> Bit:
        """Whether an update of the cluster began service this many ticks before tick 0."""
        return self._started.get((cluster, ago), False)

    def heard(self, sender: int, tick: int) -> Bit:
        """Whether the sender heard, at the tick, an answer to a service begun before tick 0."""
        if (sender, tick) not in self._heard:
            self._heard[sender, tick] = self._gates.free(f"had_heard_{sender}_{tick}")
        return self._heard[sender, tick]

    def earlier_updates(self, sender: int, count: int) -> list[tuple[Bit, Bit]]:
        """For its last updates before tick 0: whether there was one, and whether it was sent."""
        free = self._gates.free
        return [(free(f"had_{sender}_{n}"), free(f"had_sent_{sender}_{n}")) for n in range(count)]
