"""Millions of random sums of the verilated adder against the processor's."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from bench import RTL

COUNT = int(os.environ.get("RTL_SUMS", "20_000_000"))


@pytest.mark.parametrize("registers", [0b111111, 0b100100])
def test_many_sums(registers: int) -> None:
    build = RTL / "build" / "verilated" / f"fp32_lanes-{registers}"
    build.mkdir(parents=True, exist_ok=True)
    command = [
        *("verilator", "--cc", "--exe", "--build", "-O3", "--x-assign", "fast"),
        *("-Wall", "--default-language", "1364-2005", f"-I{RTL / 'rtl'}"),
        *("--Mdir", str(build), "--top-module", "fp32_lanes"),
        *("-CFLAGS", f"-O2 -DLATENCY={registers.bit_count()}", f"-GREGISTERS=6'd{registers}"),
        *(str(RTL / "rtl" / "fp32_lanes.v"), str(RTL / "tb" / "fp32_lanes" / "compare.cpp")),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    run = [str(build / "Vfp32_lanes"), str(COUNT), "1"]
    said = subprocess.run(run, check=False, capture_output=True, text=True).stdout
    agreed = re.fullmatch(r"(\d+) sums agree\n", said)
    assert agreed, said
    assert int(agreed[1]) >= COUNT
