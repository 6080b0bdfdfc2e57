"""`fp_add` in small formats, every pair of operands; and f64 after synthesis: exact fractions."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from bench import simulate
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge, Timer
from ieee import Format
from netlist import netlist

LATENCY = int(os.environ.get("BENCH_REGISTERS", "0")).bit_count()


@pytest.mark.parametrize(
    ("exponent", "fraction", "registers"),
    [(2, 2, 63), (3, 2, 63), (2, 3, 36), (4, 2, 36), (3, 3, 1)],
)
def test_every_pair(exponent: int, fraction: int, registers: int) -> None:
    parameters = {"EXPONENT": exponent, "FRACTION": fraction, "REGISTERS": registers}
    simulate("fp_add", "test_fp_add", parameters)


def test_after_synthesis() -> None:
    """The netlist of Xilinx cells, with columns of DSP slices, adds as the source does."""
    parameters = {"EXPONENT": 11, "FRACTION": 52, "REGISTERS": 36}
    names = ["pipe", "scaled_sum", "multiply_add", "fp_add"]
    sources = netlist("fp_add", names, parameters, "xcup")
    simulate("fp_add", "two_operands", parameters, sources=sources)


@cocotb.test()
async def every_pair_has_the_sum_of_exact_fractions(dut) -> None:
    kind = Format(int(os.environ["BENCH_EXPONENT"]), int(os.environ["BENCH_FRACTION"]))
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.enable.value = 1
    dut.keep.value = 0
    numbers = range(1 << kind.bits)
    pairs = [(a, b) for a in numbers for b in numbers]
    for cycle in range(len(pairs) + LATENCY):
        a, b = pairs[min(cycle, len(pairs) - 1)]
        dut.a.value, dut.b.value = a, b
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        done = cycle + 1 - LATENCY
        if 0 <= done < len(pairs):
            a, b = pairs[done]
            expected = kind.add(a, b)
            assert dut.sum.value.to_unsigned() == expected, f"{a:#x} + {b:#x}: {expected:#x}"


@cocotb.test()
async def a_pause_changes_nothing(dut) -> None:
    kind = Format(int(os.environ["BENCH_EXPONENT"]), int(os.environ["BENCH_FRACTION"]))
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    chance = random.Random(1)
    dut.keep.value = 0
    sums: list[int] = []
    taken = 0
    for _ in range(2000):
        a, b = (chance.randrange(1 << kind.bits) for _ in range(2))
        enable = chance.random() < 0.5
        dut.a.value, dut.b.value, dut.enable.value = a, b, enable
        await ReadOnly()
        before = dut.sum.value
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        if not enable:
            assert str(dut.sum.value) == str(before), "a pipeline that waits moved"
            continue
        sums.append(kind.add(a, b))
        taken += 1
        if taken >= LATENCY:
            assert dut.sum.value.to_unsigned() == sums[taken - LATENCY]


@cocotb.test()
async def what_is_kept_keeps_its_bits(dut) -> None:
    kind = Format(int(os.environ["BENCH_EXPONENT"]), int(os.environ["BENCH_FRACTION"]))
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.enable.value = 1
    chance = random.Random(2)
    rows: list[int] = []
    for _ in range(4000):
        a, b = (chance.randrange(1 << kind.bits) for _ in range(2))
        keep = chance.random() < 0.5
        dut.a.value, dut.b.value, dut.keep.value = a, b, keep
        rows.append(a if keep else kind.add(a, b))
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        if len(rows) >= LATENCY:
            done = LATENCY if LATENCY else 1
            assert dut.sum.value.to_unsigned() == rows[-done]
