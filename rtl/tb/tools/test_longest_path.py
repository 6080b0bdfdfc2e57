"""`tools/longest_path.py` on netlists that can be added up by hand."""

from __future__ import annotations

from typing import Any

import pytest
from longest_path import Delays, Netlist

CELLS = {
    "LUT": Delays(through={(("A", 0), ("Y", 0)): 100, (("B", 0), ("Y", 0)): 70}),
    "REG": Delays(from_clock={("Q", 0): 300}, set_up={("D", 0): 50}),
}


def cell(kind: str, **wires: int | str) -> dict[str, Any]:
    directions = {port: "output" if port in "YQ" else "input" for port in wires}
    connections = {port: [wire] for port, wire in wires.items()}
    return {"type": kind, "connections": connections, "port_directions": directions}


def module(*cells: dict[str, Any], **named: int) -> dict[str, Any]:
    """Input `i` is wire 2, output `o` wire 3."""
    ports = {
        "i": {"direction": "input", "bits": [2]},
        "o": {"direction": "output", "bits": [3]},
    }
    wires = {**named, "i": 2, "o": 3}
    return {
        "ports": ports,
        "cells": {str(number): cell for number, cell in enumerate(cells)},
        "netnames": {name: {"hide_name": 0, "bits": [bit]} for name, bit in wires.items()},
    }


def test_from_register_to_register() -> None:
    cells = cell("REG", D=2, Q=4), cell("LUT", A=4, B=2, Y=5), cell("REG", D=5, Q=3)
    path = Netlist(module(*cells, held=4), CELLS).longest()
    assert (path.picoseconds, path.begins, path.ends) == (450, "held", "o.D")
    assert path.cells == ("LUT",)


def test_the_slow_pin_and_the_longer_way() -> None:
    cells = (
        *(cell("LUT", A=2, B="1", Y=4), cell("LUT", A=4, B=2, Y=5)),
        *(cell("LUT", A="0", B=5, Y=6), cell("LUT", A=2, B=6, Y=3)),
    )
    path = Netlist(module(*cells), CELLS).longest()
    assert path.picoseconds == 100 + 100 + 70 + 70
    assert path.row() == ["340", "4", "i", "o", "LUT*4", ""]


def test_a_cell_without_delays_cuts_and_is_named() -> None:
    cells = cell("LUT", A=2, B=2, Y=4), cell("DSP", A=4, Y=5), cell("LUT", A=5, B=5, Y=3)
    path = Netlist(module(*cells), CELLS).longest()
    assert (path.picoseconds, path.without_delays) == (100, ("DSP",))


def test_a_loop_is_refused() -> None:
    loop = cell("LUT", A=4, B=2, Y=5), cell("LUT", A=5, B=2, Y=4), cell("LUT", A=2, B=2, Y=3)
    with pytest.raises(AssertionError, match="loop"):
        Netlist(module(*loop), CELLS).longest()
