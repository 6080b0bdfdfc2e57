"""`olaf reproduce iswitch/hardware`: what is shown of a simulation, without one."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from olaf.errors.outcome import RunError
from olaf.experiments import hardware
from olaf.experiments.catalog import find, plan
from olaf.experiments.hardware import XC7V690T
from olaf.experiments.iswitch import rtl_vectors
from olaf.experiments.iswitch.rtl_vectors import Vectors, program, through
from olaf.experiments.result import Record
from olaf.experiments.running import run

COUNTS = """build,lut,ff,carry,mux,bram36,dsp
iswitch_accelerator PORTS=4 SLOTS=32,4332,8664,100,9,147,1
iswitch_table PORTS=4,9,9,9,9,9,9
fp32_lanes LANES=8,9,9,9,9,9,9
"""
PATHS = """build,ps,cells
iswitch_accelerator PORTS=4 SLOTS=32,13911,45
"""


@pytest.fixture(name="checkout")
def _checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rtl" / "syn").mkdir(parents=True)
    (tmp_path / "rtl" / "syn" / "counts.csv").write_text(COUNTS)
    (tmp_path / "rtl" / "syn" / "paths.csv").write_text(PATHS)
    monkeypatch.setattr(hardware, "CHECKOUT", tmp_path)
    return tmp_path


def pretend(_: Path, **asked: Any) -> Vectors:
    """Hardware that takes a beat a cycle, or waits for the ports."""
    packets = asked["workers"] * -(-asked["floats"] // asked["packet_floats"])
    beats = 46 * packets
    cycles_in = max(beats, round(packets * asked["gap_cycles"]))
    return Vectors(packets, beats, cycles_in, cycles_in + 54, 0, 9, 9 + asked["seed"], 0)


@pytest.fixture(name="made")
def _made(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    assert checkout.is_dir()
    monkeypatch.setattr("olaf.experiments.iswitch.hardware.program", Path)
    monkeypatch.setattr("olaf.experiments.iswitch.hardware.through", pretend)
    return run(plan(find("iswitch/hardware"), seeds=[3, 4], quick=True), lambda *_: None)


def test_speed_and_exactness_are_rows_with_goals(made: Record) -> None:
    rows = {(row.quantity, row.where): row for row in made.rows}
    speed = rows["beats a cycle", "PPO, packets back to back"]
    assert speed.ours.values == [1.0, 1.0]
    assert speed.goal_verdict == "met"
    wrong = rows["sums with other bits than the processor's", "all models"]
    assert wrong.ours.values == [0, 0]
    latency = rows["last beat of a sum in to first beat out, most", "all models"]
    assert latency.ours.values == [12, 13]
    least = rows["last beat of a sum in to first beat out, least", "all models"]
    assert least.ours.values == [9, 9]
    assert latency.verdict == "paper prints no number"


def test_the_ports_rate_makes_an_iteration_longer(made: Record) -> None:
    (line,) = made.tables[0].rows
    assert line[:4] == ["PPO", 112, 5152, 5206]
    assert line[4] == pytest.approx(5206 * 5e-6)
    # 1,538 bytes at 10 Gbit/s from each of four ports: a packet every 61.5 cycles.
    assert line[5] == pytest.approx(112 * 61.52 + 54, abs=1)
    assert line[7] == 54


def test_cells_stand_beside_the_papers_shares_without_a_verdict(made: Record) -> None:
    path, *rows = [row for row in made.rows if row.where.startswith("iswitch_accelerator")]
    assert (path.ours.mean, path.unit, path.goal_verdict) == (13.911, "ns", "missed")
    assert [(row.quantity, row.paper) for row in rows] == [
        ("LUT", 18.6),
        ("FF", 17.3),
        ("BRAM36", 44.5),
        ("DSP", 17),
    ]
    assert [row.ours.mean for row in rows] == pytest.approx([1, 1, 10, 1])
    assert {row.verdict for row in rows} == {"not comparable"}
    table = made.tables[1]
    assert [line[0] for line in table.rows] == ["iswitch_accelerator PORTS=4 SLOTS=32"]
    assert table.rows[0][2] == pytest.approx(100 * 4332 / XC7V690T.lut)


def test_without_a_checkout_the_figure_says_so(checkout: Path) -> None:
    with pytest.raises(RunError, match="clone the repository"):
        program(checkout)


def test_a_missing_tool_is_named_with_its_remedy(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = checkout / "rtl" / "tb" / "iswitch_vectors" / "vectors.cpp"
    bench.parent.mkdir(parents=True)
    bench.touch()
    monkeypatch.setattr(rtl_vectors, "missing", lambda: ["verilator"])
    with pytest.raises(RunError, match=r"verilator: not installed.*rtl/env"):
        program(checkout)


def test_only_tools_that_are_not_here_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "g++" else f"/bin/{name}")
    assert rtl_vectors.missing() == ["g++"]


def test_a_wrong_sum_ends_the_figure(tmp_path: Path) -> None:
    failing = tmp_path / "Viswitch_accelerator"
    failing.write_text('#!/bin/sh\necho "{\\"wrong\\": 1}"\nexit 1\n')
    failing.chmod(0o755)
    with pytest.raises(RunError, match=r"exit 1.*wrong"):
        through(failing, workers=4, floats=9, packet_floats=3, gap_cycles=0, seed=1)
