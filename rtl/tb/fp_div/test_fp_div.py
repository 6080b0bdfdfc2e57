"""`fp_div` in small formats: every pair of operands against exact fractions."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from bench import simulate
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer
from ieee import Format


@pytest.mark.parametrize(
    ("exponent", "fraction", "steps"), [(2, 2, 1), (3, 2, 3), (2, 3, 5), (4, 2, 2), (3, 3, 2)]
)
def test_every_pair(exponent: int, fraction: int, steps: int) -> None:
    parameters = {"EXPONENT": exponent, "FRACTION": fraction, "STEPS": steps}
    simulate("fp_div", "test_fp_div", parameters)


def kind() -> Format:
    return Format(int(os.environ["BENCH_EXPONENT"]), int(os.environ["BENCH_FRACTION"]))


async def started(dut) -> None:
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.rst.value, dut.s_valid.value, dut.m_ready.value = 1, 0, 1
    dut.abandon.value = 0
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.rst.value = 0


async def quotient(dut, a: int, b: int) -> tuple[int, int]:
    """Divide; return the bits, and the cycles until the quotient could be taken."""
    dut.s_valid.value, dut.a.value, dut.b.value = 1, a, b
    await ReadOnly()
    assert dut.s_ready.value == 1
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    # What was taken does not have to stay.
    dut.s_valid.value, dut.a.value, dut.b.value = 0, ~a & b, ~b & a
    cycles = 1
    soon = False
    while dut.m_valid.value == 0:
        assert not soon, "the quotient was announced"
        soon = dut.m_soon.value == 1
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        cycles += 1
        assert cycles < 200, "no quotient comes"
    assert soon == (cycles > 1)
    bits = dut.quotient.value.to_unsigned()
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    return bits, cycles


@cocotb.test()
async def every_pair_has_the_quotient_of_exact_fractions(dut) -> None:
    numbers = kind()
    steps = int(os.environ["BENCH_STEPS"])
    usual = -(-(numbers.fraction + 3) // steps) + 2
    moves = numbers.fraction + 1
    await started(dut)
    for a in range(1 << numbers.bits):
        for b in range(1 << numbers.bits):
            bits, cycles = await quotient(dut, a, b)
            expected = numbers.divide(a, b)
            assert bits == expected, f"{a:#x} / {b:#x}: {expected:#x}, not {bits:#x}"
            sizes = [numbers.magnitude(x) for x in (a, b)]
            least_normal = 1 << numbers.fraction
            if 0 in sizes or max(sizes) >= numbers.infinity:
                assert cycles == 1
            elif min(sizes) < least_normal:
                assert usual < cycles <= usual + 2 * moves
            elif abs(numbers.value(a) / numbers.value(b)) >= numbers.value(least_normal):
                assert cycles == usual
            else:
                assert usual <= cycles <= usual + moves


@cocotb.test()
async def a_quotient_waits_unchanged(dut) -> None:
    numbers = kind()
    chance = random.Random(1)
    await started(dut)
    dut.m_ready.value = 0
    expected: list[int] = []
    taken = 0
    for _ in range(4000):
        a, b = (chance.randrange(1 << numbers.bits) for _ in range(2))
        dut.a.value, dut.b.value = a, b
        dut.s_valid.value, dut.m_ready.value = chance.random() < 0.7, chance.random() < 0.2
        await ReadOnly()
        assert not (dut.s_ready.value == 1 and dut.m_valid.value == 1), "one division at a time"
        if dut.s_ready.value == 1 and dut.s_valid.value == 1:
            expected.append(numbers.divide(a, b))
        if dut.m_valid.value == 1:
            assert dut.quotient.value.to_unsigned() == expected[taken]
            taken += dut.m_ready.value == 1
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
    assert taken > 100
    assert len(expected) - taken <= 1


@cocotb.test()
async def a_reset_ends_a_division(dut) -> None:
    numbers = kind()
    one = numbers.bias << numbers.fraction
    await started(dut)
    dut.s_valid.value, dut.a.value, dut.b.value = 1, one, one
    for _ in range(3):
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
    assert dut.s_ready.value == 0
    dut.s_valid.value, dut.rst.value = 0, 1
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.rst.value = 0
    await ReadOnly()
    assert dut.s_ready.value == 1
    assert dut.m_valid.value == 0
    await Timer(1, unit="ns")
    assert (await quotient(dut, one + 1, one))[0] == one + 1


@cocotb.test()
async def an_abandoned_division_leaves_no_trace(dut) -> None:
    numbers = kind()
    chance = random.Random(2)
    one = numbers.bias << numbers.fraction
    await started(dut)
    for waits in range(30):
        # A division that is `waits` cycles old, or its quotient, is abandoned for another.
        dut.s_valid.value, dut.a.value, dut.b.value = 1, one + 1, one
        dut.m_ready.value, dut.abandon.value = 0, 1
        for _ in range(1 + waits):
            await RisingEdge(dut.clk)
            await Timer(1, unit="ps")
            dut.s_valid.value, dut.abandon.value = 0, 0
        a, b = (chance.randrange(1 << numbers.bits) for _ in range(2))
        dut.abandon.value = 1
        dut.s_valid.value, dut.a.value, dut.b.value = 1, a, b
        await ReadOnly()
        assert dut.s_ready.value == 1
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        dut.s_valid.value, dut.abandon.value = 0, 0
        while dut.m_valid.value == 0:
            await RisingEdge(dut.clk)
            await Timer(1, unit="ps")
        assert dut.quotient.value.to_unsigned() == numbers.divide(a, b)
    # Abandoned, and nothing new: the unit is free.
    dut.abandon.value = 1
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    dut.abandon.value = 0
    await ReadOnly()
    assert (dut.s_ready.value, dut.m_valid.value) == (1, 0)
