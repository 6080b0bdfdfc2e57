"""Which of two events of one tick comes first (docs/design/010, Ties)."""

from __future__ import annotations

from itertools import combinations, permutations

from olaf.verify.gates import Bit, Gates, negation
from olaf.verify.instance import Instance, Ties


class Order:
    """The order of arrivals in a tick, and of arrivals and the departure.

    Workers without lateness keep their rank in all ticks. With lateness, and for all workers on the
    grid, each tick has its own order.
    """

    def __init__(self, gates: Gates, instance: Instance) -> None:
        self._gates = gates
        self._late = [sender.jitter > 0 for sender in instance.senders]
        self._grid = instance.ties is Ties.GRID
        self._senders = range(len(instance.senders))
        self._ranks: dict[tuple[int, int], Bit] = {}
        self._of_tick: dict[int, dict[tuple[int, int], Bit]] = {}
        ranked = [] if self._grid else [s for s in self._senders if not self._late[s]]
        self._total(self._ranks, ranked, "rank")

    def _total(self, order: dict[tuple[int, int], Bit], senders: list[int], name: str) -> None:
        """Complete the total order of the senders; known pairs stay."""
        for a, b in combinations(senders, 2):
            if (a, b) not in order:
                first = self._gates.free(f"{name}_{a}_{b}")
                order[a, b], order[b, a] = first, negation(first)
        for a, b, c in permutations(senders, 3):
            # Each cycle of three once; those of ranked workers are excluded already.
            known = order is not self._ranks and self.ranked(a, b) and self.ranked(b, c)
            if a > min(b, c) or known:
                continue
            not_ab, not_bc = negation(order[a, b]), negation(order[b, c])
            self._gates.require(self._gates.any_of([not_ab, not_bc, order[a, c]]))

    def ranked(self, a: int, b: int) -> bool:
        """Whether the order of two senders is the same in all ticks."""
        return (a, b) in self._ranks

    def earlier(self, tick: int, a: int, b: int) -> Bit:
        """Whether an arrival of ``a`` at the tick comes before one of ``b``."""
        if (a, b) in self._ranks:
            return self._ranks[a, b]
        if tick not in self._of_tick:
            order = dict(self._ranks)
            self._total(order, list(self._senders), f"order{tick}")
            self._of_tick[tick] = order
        return self._of_tick[tick][a, b]

    def before(self, tick: int, sender: int, departs: Bit, beginners: list[Bit]) -> Bit:
        """Whether an arrival of ``sender`` at the tick comes before the departure of the tick.

        beginners: for each sender, whether its arrival began the busy period of the departure.
        """
        if self._grid or departs is False:
            return False
        if self._late[sender]:
            # Its own lateness puts it before or after.
            return self._gates.all_of([departs, self._gates.free(f"before{tick}_{sender}")])
        ways: list[Bit] = []
        for other in self._senders:
            if other == sender:
                continue
            if self._late[other]:
                sooner: Bit = self._gates.free(f"before{tick}_{sender}_{other}")
            else:
                sooner = self._ranks[sender, other]
            ways.append(self._gates.all_of([departs, beginners[other], sooner]))
        return self._gates.any_of(ways)
