"""`fp_mul` in small formats, every pair of operands; and f64 after synthesis: exact fractions."""

from __future__ import annotations

import pytest
from bench import simulate
from netlist import netlist


@pytest.mark.parametrize(
    ("exponent", "fraction", "registers"),
    [(2, 2, 63), (3, 2, 63), (2, 3, 36), (4, 2, 22), (3, 3, 1), (5, 10, 42)],
)
def test_every_pair_has_its_product(exponent: int, fraction: int, registers: int) -> None:
    parameters = {"EXPONENT": exponent, "FRACTION": fraction, "REGISTERS": registers}
    simulate("fp_mul", "two_operands", parameters)


@pytest.mark.long
def test_after_synthesis() -> None:
    """The netlist of Xilinx cells, DSP slices included, multiplies as the source does."""
    parameters = {"EXPONENT": 11, "FRACTION": 52, "REGISTERS": 63}
    # differs: the queue's card is an UltraScale+, whose DSP slice has no model to simulate.
    sources = netlist("fp_mul", ["pipe", "product_addends", "fp_mul"], parameters, "xc7")
    simulate("fp_mul", "two_operands", parameters, sources=sources)
