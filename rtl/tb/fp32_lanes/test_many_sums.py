"""Millions of random sums of the verilated adder against the processor's."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from bench import RTL
from verilated import verilated

# Every lane is the same module; to compile sixteen takes four times as long.
LANES = 4
COUNT = int(os.environ.get("RTL_SUMS", "20_000_000"))


@pytest.mark.parametrize("registers", [0b111111, 0b100100])
def test_many_sums(registers: int) -> None:
    program = RTL / "tb" / "fp32_lanes" / "compare.cpp"
    flags = f"-DLATENCY={registers.bit_count()} -DLANES={LANES}"
    parameters = {"LANES": str(LANES), "REGISTERS": f"6'd{registers}"}
    built = verilated("fp32_lanes", program, parameters, flags=flags)
    run = [built, str(COUNT), "1"]
    said = subprocess.run(run, check=False, capture_output=True, text=True).stdout
    agreed = re.fullmatch(r"(\d+) sums agree\n", said)
    assert agreed, said
    assert int(agreed[1]) >= COUNT
