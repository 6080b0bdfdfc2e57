"""A parameter that a module cannot have stops the elaboration."""

from __future__ import annotations

import subprocess

import pytest
from bench import RTL


@pytest.mark.parametrize(
    ("module", "parameter"),
    [
        ("fp_add", "FRACTION=1"),
        ("fp_mul", "EXPONENT=1"),
        ("fp_div", "STEPS=0"),
        ("fp32_lanes", "LANES=0"),
        ("olaf_queue_control", "SLOTS=1"),
        ("olaf_queue_control", "SLOT=2"),
        ("axil_counters", "COUNTERS=600"),
        ("ram", "DEPTH=1"),
        ("frame_fifo", "DEPTH=3"),
        ("olaf_store", "BEATS=1"),
        ("olaf_ingress", "FRAME=100"),
        ("axis_widen", "NARROW=96"),
        ("axis_narrow", "NARROW=512"),
        ("olaf_queue", "DATA=96"),
        ("olaf_queue", "DATA=32"),
        ("olaf_queue", "DATA=2048"),
        ("iswitch_membership", "PORTS=1"),
        ("iswitch_table", "SLOTS=3"),
        ("iswitch_frames", "DEPTH=32"),
        ("iswitch_sum", "LANES=6"),
        ("iswitch_output", "DEPTH=3"),
        ("iswitch_choice", "QUEUES=1"),
        ("iswitch_input_arbiter", "LANES=4"),
        ("iswitch_datapath", "USER=19"),
        ("frame_store", "DEPTH=3"),
        ("udp_strip", "DATA=128"),
        ("udp_strip", "DATA=384"),
        ("udp_wrap", "DATA=128"),
        ("udp_wrap", "DEPTH=32"),
        ("udp_wrap", "PORTS=1"),
        ("udp_headers", "BEAT=12"),
        ("udp_receivers", "ADDRESS=6"),
        ("axil_split", "ADDRESS=13"),
    ],
)
def test_illegal_parameter(module: str, parameter: str) -> None:
    def elaborate(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["iverilog", "-g2005", "-t", "null", "-y", str(RTL / "rtl"), "-s", module]
        source = str(RTL / "rtl" / f"{module}.v")
        return subprocess.run(
            [*command, *options, source], capture_output=True, text=True, check=False
        )

    assert elaborate().returncode == 0
    broken = elaborate(f"-P{module}.{parameter}")
    assert broken.returncode != 0
    assert "Unknown module type" in broken.stderr, broken.stderr
