"""A module as a C++ program, built by Verilator."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bench import RTL

# Most of the time goes into compiling: what runs once, and Verilator's own files, need not be fast.
OPTIMIZED = "OPT_FAST=-O1 OPT_SLOW=-O0 OPT_GLOBAL=-O0"
RUNTIME = ["verilated.o", "verilated_threads.o"]


def version() -> str:
    """Verilator's version, as the name of a folder."""
    said = subprocess.run(["verilator", "--version"], check=True, capture_output=True, text=True)
    return said.stdout.strip().replace(" ", "-").replace("/", "-")


def verilated(
    top: str,
    program: Path,
    parameters: Mapping[str, str] | None = None,
    *,
    flags: str = "",
    undefined: str = "fast",
    name: str = "",
) -> str:
    """Build `program`, a C++ file with `main`, on module `top`; return the path of the executable.

    flags: for the compiler. undefined: what Verilator makes of an undefined bit (`--x-assign`).
    name: of the folder of the build; without it, module and parameters.
    """
    parameters = parameters or {}
    name = name or "-".join([top, *(f"{key}{value}" for key, value in parameters.items())])
    build = RTL / "build" / "verilated" / name.replace("'", "_")
    build.mkdir(parents=True, exist_ok=True)
    (build / "top.h").write_text(f'#pragma once\n#include "V{top}.h"\n#define TOP V{top}\n')
    command = [
        *("verilator", "--cc", "--exe", "--build", "-O3"),
        *("--x-assign", undefined, "-Wall", "--default-language", "1364-2005", f"-I{RTL / 'rtl'}"),
        *("--Mdir", str(build), "--top-module", top),
        *("-CFLAGS", f"-I{program.parent} {flags}", "-MAKEFLAGS", OPTIMIZED),
        *(f"-G{key}={value}" for key, value in parameters.items()),
        *(str(RTL / "rtl" / f"{top}.v"), str(program)),
    ]
    # Verilator's own files are the same for all modules: compiled once, copied for the others.
    # Tests run side by side, so a copy gets its name when it is whole.
    shared = RTL / "build" / "verilated" / "runtime" / version()
    shared.mkdir(parents=True, exist_ok=True)
    for name in RUNTIME:
        if (shared / name).exists() and not (build / name).exists():
            shutil.copy(shared / name, build / name)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for name in RUNTIME:
        if not (shared / name).exists():
            part = shared / f"{name}.{os.getpid()}"
            shutil.copy(build / name, part)
            part.replace(shared / name)
    return str(build / f"V{top}")
