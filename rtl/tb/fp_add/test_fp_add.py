"""`fp_add` in small formats, every pair of operands; and f64 after synthesis: exact fractions."""

from __future__ import annotations

import random

import cocotb
import pytest
from bench import simulate
from netlist import netlist
from two_operands import LATENCY, Unit


@pytest.mark.parametrize(
    ("exponent", "fraction", "registers"),
    [(2, 2, 63), (3, 2, 63), (2, 3, 36), (4, 2, 36), (3, 3, 1)],
)
def test_every_pair(exponent: int, fraction: int, registers: int) -> None:
    parameters = {"EXPONENT": exponent, "FRACTION": fraction, "REGISTERS": registers}
    simulate("fp_add", "two_operands,test_fp_add", parameters)


@pytest.mark.long
def test_after_synthesis() -> None:
    """The netlist of Xilinx cells, with columns of DSP slices, adds as the source does."""
    parameters = {"EXPONENT": 11, "FRACTION": 52, "REGISTERS": 36}
    names = ["pipe", "scaled_sum", "multiply_add", "fp_add"]
    sources = netlist("fp_add", names, parameters, "xcup")
    simulate("fp_add", "two_operands", parameters, sources=sources)


@cocotb.test()
async def what_is_kept_keeps_its_bits(dut) -> None:
    unit = Unit(dut)
    chance = random.Random(2)
    rows: list[int] = []
    for _ in range(4000):
        a, b = (chance.randrange(1 << unit.format.bits) for _ in range(2))
        keep = chance.random() < 0.5
        dut.keep.value = keep
        unit.put(a, b, enable=True)
        rows.append(a if keep else unit.expected(a, b))
        await unit.edge()
        if len(rows) >= LATENCY:
            assert unit.result.value.to_unsigned() == rows[-LATENCY]
