"""Millions of random f64 through the verilated units, against the processor's arithmetic."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from bench import RTL
from verilated import verilated

# `make rtl-long` sets RTL_SUMS. A quotient takes some forty times as long as a product.
COUNT = int(os.environ.get("RTL_SUMS", "20_000_000")) // 10


def run(top: str, parameters: dict[str, str], program: str, *defines: str, count: int) -> str:
    """Verilate a module, build a program of this folder on it; return what the program prints."""
    flags = " ".join(f"-D{define}" for define in defines)
    built = verilated(top, RTL / "tb" / "f64" / program, parameters, flags=flags)
    command = [built, str(count), "1"]
    return subprocess.run(command, check=False, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("top", "result", "operation", "registers"),
    [("fp_add", "sum", "+", 0b100100), ("fp_mul", "product", "*", 0b111111)],
)
def test_pipelined(top: str, result: str, operation: str, registers: int) -> None:
    parameters = {"EXPONENT": "11", "FRACTION": "52", "REGISTERS": f"6'd{registers}"}
    defines = f"RESULT={result}", f"OPERATION=\\'{operation}\\'", f"LATENCY={registers.bit_count()}"
    assert run(top, parameters, "pipelined.cpp", *defines, count=COUNT) == (
        f"{COUNT} results agree\n"
    )


@pytest.mark.parametrize(("steps", "most"), [(1, 163), (5, 119)])
def test_iterated(steps: int, most: int) -> None:
    parameters = {"EXPONENT": "11", "FRACTION": "52", "STEPS": str(steps)}
    said = run("fp_div", parameters, "iterated.cpp", count=COUNT // 10)
    agreed = re.fullmatch(r"(\d+) results agree, at most (\d+) cycles\n", said)
    assert agreed, said
    assert int(agreed[1]) == COUNT // 10
    # An operand and a quotient that both move as far as they can are rare; a few places less
    # are not.
    assert most - 20 <= int(agreed[2]) <= most
