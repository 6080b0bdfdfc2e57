"""Builds a module in Icarus and runs the cocotb tests of one file on it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from cocotb_tools.runner import get_runner

RTL = Path(__file__).resolve().parents[2]


def simulate(
    top: str,
    tests: str,
    parameters: Mapping[str, int] | None = None,
    sources: list[Path] | None = None,
    cycles: int | None = None,
) -> None:
    """Run the cocotb tests of modules `tests` on `top`; raise if one fails.

    tests: names of modules, with commas between them.
    parameters: of `top`, and for the tests as ``BENCH_NAME`` in the environment.
    sources: a netlist, whose parameters are fixed; without it, ``rtl/`` and ``boards/``.
    cycles: ``BENCH_CYCLES``, for tests whose length can be chosen.
    """
    parameters = dict(parameters or {})
    name = "-".join([top, tests, *(f"{key}{value}" for key, value in parameters.items())])
    if sources is not None:
        name += "-netlist"
    build = RTL / "build" / "tb" / name
    runner = get_runner("icarus")
    runner.build(
        sources=sources or sorted([*(RTL / "rtl").glob("*.v"), *(RTL / "boards").glob("*/*.v")]),
        hdl_toplevel=top,
        parameters={} if sources else parameters,
        build_dir=build,
        build_args=["-g2005-sv", "-Wall", "-Wno-timescale", "-Wno-sensitivity-entire-array"],
        # Icarus otherwise counts whole seconds.
        timescale=("1ns", "1ps"),
        always=True,
    )
    results = runner.test(
        hdl_toplevel=top,
        test_module=tests,
        build_dir=build,
        test_dir=build,
        extra_env={
            "PYTHONPATH": os.pathsep.join(
                [str(RTL / "tb" / "support"), *(str(path) for path in (RTL / "tb").iterdir())]
            ),
            "COCOTB_LOG_LEVEL": "WARNING",
            **{f"BENCH_{key}": str(value) for key, value in parameters.items()},
            **({"BENCH_CYCLES": str(cycles)} if cycles else {}),
        },
    )
    failures = [line for line in results.read_text().splitlines() if "<failure" in line]
    assert not failures, failures
    assert "<testcase" in results.read_text(), "no test ran"
