"""The columns of ns-3: what is compared, and what is said where it is missing or fails."""

import sys
from pathlib import Path

import pytest

from olaf.errors.outcome import RunError
from olaf.experiments import ns3
from olaf.experiments.catalog import find, plan
from olaf.experiments.multihop import FIFO, OLAF, Network, View, scenario_of

SEEDS = (0, 1)

# Answers as ns-3's program does, by running olaf-sim; `{change}` is what it does otherwise.
PRETENDER = """#!{python}
import json, sys
from olaf._olaf import simulate
outcome = json.loads(simulate(sys.stdin.read()))
{change}
print(json.dumps({{"simulator": "ns-3", **outcome}}))
"""


def network() -> Network:
    parameters = plan(find("olaf/table2"), quick=True).parameters
    assert isinstance(parameters, Network)
    return parameters


def cases(view: View = "ns-3") -> list[ns3.Case]:
    return [("FIFO", network(), FIFO, view), ("OLAF", network(), OLAF, view)]


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path, change: str = "") -> Path:
    program = folder / "olaf-multihop"
    program.write_text(PRETENDER.format(python=sys.executable, change=change))
    program.chmod(0o755)
    monkeypatch.setenv("OLAF_NS3", str(program))
    return program


def test_two_simulators_that_agree_are_no_percent_apart(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, tmp_path)
    said: list[str] = []
    rows, (table,), notes = ns3.beside(cases(), SEEDS, said.append)
    assert notes == []
    assert said == ["ns-3: FIFO, ns-3 view", "ns-3: OLAF, ns-3 view"]
    assert [row.where for row in rows] == ["OLAF, ns-3 view"] * 2, "FIFO is chaotic: no goal"
    assert all(row.goal_verdict == "met" and row.ours.values == [0.0, 0.0] for row in rows)
    names = [column.name for column in table.columns]
    first = dict(zip(names, table.rows[1], strict=True))
    assert first["received, ns-3"] == first["received, olaf-sim"] != 0
    assert first["merged, ns-3"] == first["merged, olaf-sim"] != 0
    assert first["AoM S1, ns-3, ms"] == first["S1, olaf-sim, ms"]


def test_two_simulators_that_do_not_agree_are_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, tmp_path, "outcome['packets_merged'] *= 2")
    rows, _, _ = ns3.beside(cases(), SEEDS, lambda _: None)
    apart = {row.quantity: row for row in rows}
    assert apart["packets received, ns-3 off olaf-sim"].goal_verdict in ("met", "met on average")
    merged = apart["packets merged, ns-3 off olaf-sim"]
    assert merged.ours.values == pytest.approx([100.0, 100.0])
    assert merged.goal_verdict in ("missed", "missed on average")


def test_what_the_program_says_when_it_fails_is_passed_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pretend(monkeypatch, tmp_path, "sys.exit('no such queue')")
    with pytest.raises(RunError, match=r"olaf-multihop: exit 1: no such queue"):
        ns3.beside(cases(), SEEDS, lambda _: None)


def test_without_a_program_there_is_a_note_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OLAF_NS3", raising=False)
    monkeypatch.setenv("CARGO_TARGET_DIR", str(tmp_path))
    assert ns3.beside(cases(), SEEDS, lambda _: None) == ([], [], [ns3.NOT_BUILT])
    monkeypatch.setenv("OLAF_NS3", str(tmp_path / "nowhere"))
    with pytest.raises(RunError, match="no such file; name the olaf-multihop"):
        ns3.program()


@pytest.mark.parametrize("view", ["ns-3", "hardware"])
def test_the_real_ns3_agrees_with_olaf_sim(view: View) -> None:
    built = ns3.program()
    if built is None:
        pytest.skip("ns-3 is not built: make ns3")
    rows, _, _ = ns3.beside(cases(view), SEEDS, lambda _: None)
    assert [row.goal_verdict for row in rows] == ["met", "met"]
    scenario = {**scenario_of(network(), OLAF, view), "switches": []}
    with pytest.raises(RunError, match="switch"):
        ns3.run(built, scenario, 0)
