"""Figures of the hardware: what is shown of a simulation and of the cell counts, without either."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from olaf.errors.outcome import RunError
from olaf.experiments import Spread, hardware
from olaf.experiments.catalog import find, plan
from olaf.experiments.hardware import XCU55C, Cells, counts, path_rows, program, simulated
from olaf.experiments.olaf import rtl_bursts, rtl_time
from olaf.experiments.result import Record
from olaf.experiments.running import run

COUNTS = """build,lut,ff,carry,mux,bram36,dsp
olaf_queue_control SLOTS=8,1000,500,14,3,0,0
olaf_queue SLOTS=8 BLOCK=1,26000,500,14,3,7,12
other,1,2,3,4,5,6
"""
PATHS = """build,ps,cells
olaf_queue_control SLOTS=8,3887,7
olaf_queue SLOTS=8 BLOCK=1,12115,76
"""


@pytest.fixture(name="checkout")
def _checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rtl" / "syn").mkdir(parents=True)
    (tmp_path / "rtl" / "syn" / "counts.csv").write_text(COUNTS)
    (tmp_path / "rtl" / "syn" / "paths.csv").write_text(PATHS)
    monkeypatch.setattr(hardware, "CHECKOUT", tmp_path)
    return tmp_path


def pretend(built: Path, asked: Mapping[str, Any]) -> dict[str, Any]:
    """A queue that loses every fifth update and merges pairs of the others."""
    assert built == Path("figures")
    ((kind, told),) = asked.items()
    if kind == "updates":
        beats = -(-told["bytes"] // 64)
        return {
            "beats": beats,
            "last_in_to_first_out": 11,
            "stored_and_sent": 2 * beats + 10,
            "one_flow": beats * told["updates"],
            "one_flow_left": 3,
            "many_flows": 2 * beats * told["updates"],
            "merged_departure": 33,
        }
    sent = len(told["at_ns"])
    dropped = sent // 5
    received = (sent - dropped) // 2 if told["merging"] else sent - dropped
    return {
        "received": received,
        "aggregated": sent - dropped - received,
        "dropped": dropped,
        "contributors": [2 if told["merging"] else 1] * received,
        "age_ns": 500.0 if told["merging"] else 1000.0,
        "cycles": 1234,
    }


@pytest.fixture(name="made")
def _made(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    assert checkout.is_dir()
    monkeypatch.setattr("olaf.experiments.olaf.hardware.program", lambda name, quick: Path(name))
    monkeypatch.setattr(rtl_bursts, "simulated", pretend)
    monkeypatch.setattr(rtl_time, "simulated", pretend)
    return run(plan(find("olaf/hardware"), seeds=[3, 4], quick=True), lambda *_: None)


def test_the_rows_are_those_of_table_1_from_the_hardware(made: Record) -> None:
    rows = {(row.quantity, row.where): row for row in made.rows}
    assert rows["update loss", "OLAF, 40 Gbit/s"].ours.values == [20.0, 20.0]
    assert rows["update loss", "OLAF, 40 Gbit/s"].paper == 11.0
    assert rows["updates received", "FIFO, 20 Gbit/s"].ours.mean == 540 * 4 // 5
    assert rows["average AoM below FIFO's", "OLAF, 40 Gbit/s"].ours.values == [50.0, 50.0]
    assert rows["updates for each outgoing one, mean", "40 Gbit/s"].ours.values == [2.0, 2.0]


def test_paper_software_and_hardware_stand_side_by_side(made: Record) -> None:
    table = next(table for table in made.tables if table.title.startswith("Table 1"))
    assert [column.name for column in table.columns][2:] == [
        "paper",
        "software (`olaf replay`)",
        "hardware (RTL)",
    ]
    lines = {(line[0], line[1]): line[2:] for line in table.rows}
    paper, software, ours = lines["update loss, %", "FIFO, 40 Gbit/s"]
    assert paper == 55.8
    assert isinstance(software, Spread)
    assert isinstance(ours, Spread)
    assert ours.mean == 20.0
    assert 30 < software.mean < 60, "the software was run, on the same traffic"
    assert ("updates aggregated", "FIFO, 40 Gbit/s") not in lines
    assert [chart.title for chart in made.charts] == [
        "Updates in an outgoing one, hardware",
        "Updates in an outgoing one, software",
    ]


def test_cells_stand_beside_their_share_of_the_device(made: Record) -> None:
    table = next(table for table in made.tables if table.title.startswith("Cells"))
    assert [line[0] for line in table.rows] == [
        "olaf_queue_control SLOTS=8",
        "olaf_queue SLOTS=8 BLOCK=1",
    ]
    assert table.rows[0][1:4] == [1000, pytest.approx(100 * 1000 / XCU55C.lut), 500]
    rows = {row.quantity: row for row in made.rows if row.where == "olaf_queue SLOTS=8 BLOCK=1"}
    lut = rows["LUT, of an XCU55C"]
    assert lut.ours.mean == pytest.approx(100 * 26_000 / XCU55C.lut)
    assert (lut.paper, lut.goal_verdict) == (3.52, "missed")
    assert lut.verdict == "not comparable", "another tool's count, without place and route"
    assert rows["block RAM, of an XCU55C"].paper is None


def test_both_readings_of_the_papers_time_are_shown(made: Record) -> None:
    rows = {(row.quantity, row.where): row for row in made.rows}
    through = rows["cycles per update, one behind the other", "1,500 bytes"]
    assert (through.ours.mean, through.paper, through.verdict) == (24.0, 24.0, "matches")
    stored = rows["cycles of an update alone, stored and then sent", "1,500 bytes"]
    assert (stored.ours.mean, stored.paper, stored.verdict) == (58.0, 24.0, "differs")
    assert stored.note == "the paper: 96 ns at 250 MHz"
    added = rows["cycles from its last beat in to its first beat out", "1,500 bytes"]
    assert added.goal_verdict == "met"
    rate = rows["bits a cycle of updates of one flow, back to back", "128 bytes"]
    assert (rate.ours.mean, rate.paper, rate.goal_verdict) == (512.0, 200.0, "met")
    table = next(table for table in made.tables if table.title.startswith("Cycles"))
    assert [line[0] for line in table.rows] == ["128", "1,500"]
    at = [column.name for column in table.columns].index("cut through, computed")
    cut_through = table.rows[1][at]
    assert isinstance(cut_through, Spread)
    assert cut_through.mean == 24 + 11


def test_no_row_claims_a_clock_and_the_longest_path_stands_beside_the_papers(made: Record) -> None:
    assert not {row.unit for row in made.rows} & {"Gbit/s", "MHz"}
    (path,) = [row for row in made.rows if row.unit == "ns"]
    assert path.where == "olaf_queue SLOTS=8 BLOCK=1"
    assert (path.ours.mean, path.goal_verdict) == (12.115, "missed")


def test_updates_without_a_fate_are_an_error(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert checkout.is_dir()
    monkeypatch.setattr("olaf.experiments.olaf.hardware.program", lambda name, quick: Path(name))
    monkeypatch.setattr(rtl_time, "simulated", pretend)
    monkeypatch.setattr(
        rtl_bursts, "simulated", lambda built, told: pretend(built, told) | {"dropped": 1}
    )
    with pytest.raises(RunError, match="do not add up"):
        run(plan(find("olaf/hardware"), seeds=[3], quick=True), lambda *_: None)


def test_the_committed_counts_are_read() -> None:
    known = counts()
    assert known["fp32_lanes LANES=16 REGISTERS=36"].lut > 1000
    assert all(isinstance(cells, Cells) for cells in known.values())
    (path,) = path_rows(["olaf_queue SLOTS=8 FRAME=9036 BLOCK=1 GATE=0"], "olaf", 2)
    assert len(path.ours.values) == 2
    assert path.ours.mean > 4, "of one cycle at 250 MHz: if it fits, say so in README and page"


@pytest.mark.parametrize("figure", ["olaf/hardware", "iswitch/hardware"])
def test_the_committed_pages_have_the_cells_of_the_committed_counts(figure: str) -> None:
    stored = hardware.CHECKOUT / "experiments" / figure / "results.json"
    record = Record.model_validate_json(stored.read_text())
    table = next(table for table in record.tables if table.title.startswith("Cells"))
    at = [column.name for column in table.columns].index("FF")
    known = counts()
    assert {line[0]: (line[1], line[at]) for line in table.rows} == {
        name: (known[name].lut, known[name].ff) for name in (str(line[0]) for line in table.rows)
    }


@pytest.mark.parametrize("tool", ["cargo", "verilator"])
def test_a_missing_tool_is_named_with_its_remedy(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rtl" / "cosim").mkdir(parents=True)
    (tmp_path / "rtl" / "cosim" / "Cargo.toml").touch()
    monkeypatch.setattr(hardware, "CHECKOUT", tmp_path)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == tool else f"/usr/bin/{name}")
    with pytest.raises(RunError, match=rf"{tool}: not installed.*rtl/env"):
        program("figures")


def test_without_a_checkout_the_figure_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "CHECKOUT", tmp_path)
    with pytest.raises(RunError, match="clone the repository"):
        program("figures")
    with pytest.raises(RunError, match="clone the repository"):
        counts()


def test_a_program_that_fails_is_quoted(tmp_path: Path) -> None:
    failing = tmp_path / "bursts"
    failing.write_text("#!/bin/sh\necho no such rate >&2\nexit 2\n")
    failing.chmod(0o755)
    with pytest.raises(RunError, match="bursts: exit 2: no such rate"):
        simulated(failing, {})
