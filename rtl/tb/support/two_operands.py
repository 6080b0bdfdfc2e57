"""cocotb tests of `fp_add` and `fp_mul`: a pair of operands a cycle, against exact fractions."""

from __future__ import annotations

import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer
from ieee import Format

LATENCY = int(os.environ.get("BENCH_REGISTERS", "0")).bit_count()
# Most bits of a format whose pairs are all tried.
SMALL = 8
# By module: the pin of the result, and what it has to be.
RESULTS = {"fp_add": ("sum", Format.add), "fp_mul": ("product", Format.multiply)}


class Unit:
    """The module under test, with its clock running."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.format = Format(int(os.environ["BENCH_EXPONENT"]), int(os.environ["BENCH_FRACTION"]))
        pin, self._operation = RESULTS[dut._name]
        self.result = getattr(dut, pin)
        if dut._name == "fp_add":
            dut.keep.value = 0
        cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))

    def expected(self, a: int, b: int) -> int:
        return self._operation(self.format, a, b)

    def put(self, a: int, b: int, enable: bool) -> None:
        self.dut.a.value, self.dut.b.value, self.dut.enable.value = a, b, enable

    async def edge(self) -> None:
        await RisingEdge(self.dut.clk)
        await Timer(1, unit="ps")


def pairs(kind: Format) -> list[tuple[int, int]]:
    """Every pair of a small format; of another one, some pairs of corners, then random ones."""
    if kind.bits <= SMALL:
        return [(a, b) for a in range(1 << kind.bits) for b in range(1 << kind.bits)]
    least, one = 1 << kind.fraction, kind.bias << kind.fraction
    magnitudes = [0, 1, least - 1, least, least + 1, one, one + 1, kind.infinity - 1, kind.infinity]
    corners = [sign << kind.bits - 1 | bits for bits in [*magnitudes, kind.nan] for sign in (0, 1)]
    chance = random.Random(7)
    made = chance.sample([(a, b) for a in corners for b in corners], 100)
    for _ in range(300):
        a = chance.getrandbits(kind.bits)
        # Exponents whose sum is near the middle, so that few products are 0 or infinite.
        b = (2 * one - a ^ chance.getrandbits(kind.fraction + 4)) % (1 << kind.bits)
        # Subnormal numbers of every size, which a product has to move by any distance.
        subnormal = chance.getrandbits(chance.randrange(1, kind.fraction + 1))
        # Exponents near each other, so that a sum cancels, and its parts overlap.
        near = a ^ chance.getrandbits(kind.fraction + 6) ^ chance.getrandbits(1) << kind.bits - 1
        large = kind.infinity - 1 - chance.getrandbits(kind.fraction + 3)
        anything = chance.getrandbits(kind.bits)
        kinds = [(a, b), (a, near), (a, anything), (subnormal, large), (large, subnormal)]
        made.append(chance.choice(kinds))
    return made


@cocotb.test()
async def every_pair_has_the_result_of_exact_fractions(dut) -> None:
    unit = Unit(dut)
    todo = pairs(unit.format)
    for cycle in range(len(todo) + LATENCY):
        unit.put(*todo[min(cycle, len(todo) - 1)], enable=True)
        await unit.edge()
        done = cycle + 1 - LATENCY
        if 0 <= done < len(todo):
            expected = unit.expected(*todo[done])
            found = unit.result.value.to_unsigned()
            assert found == expected, [f"{bits:#x}" for bits in (*todo[done], found, expected)]


@cocotb.test()
async def a_pause_changes_nothing(dut) -> None:
    unit = Unit(dut)
    chance = random.Random(1)
    results: list[int] = []
    # What a run before has left in the registers.
    for _ in range(LATENCY):
        unit.put(0, 0, enable=True)
        await unit.edge()
    # A netlist is simulated fifty times as slowly as the source.
    for _ in range(2000 if unit.format.bits <= SMALL else 100):
        a, b = (chance.randrange(1 << unit.format.bits) for _ in range(2))
        enable = chance.random() < 0.5
        unit.put(a, b, enable)
        await ReadOnly()
        before = unit.result.value
        await unit.edge()
        if not enable:
            assert str(unit.result.value) == str(before), "a pipeline that waits moved"
            continue
        results.append(unit.expected(a, b))
        if len(results) >= LATENCY:
            assert unit.result.value.to_unsigned() == results[len(results) - LATENCY]
