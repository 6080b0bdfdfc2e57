"""The figure olaf/latency: the engine's times come from a benchmark of the crate."""

from pathlib import Path

import pytest

from olaf.errors.outcome import RunError
from olaf.experiments import benches
from olaf.experiments.benches import measured, program
from olaf.experiments.catalog import find, plan
from olaf.experiments.olaf.latency import NO_ENGINE
from olaf.experiments.running import run

TINY = ["packet_bytes=[600]", "merged=[1]", "batches=2", "round_trips=3", "warm_up=0"]

# The first of these tests builds the benchmark in release mode.
builds = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(name="bench")
def _bench() -> Path:
    built = program("olaf-engine", "departures")
    assert built is not None, "the tests run in a checkout with cargo"
    return built


class TestTheBenchmark:
    pytestmark = builds

    @pytest.mark.parametrize("merged", [1, 3])
    def test_every_update_that_is_timed_takes_its_time(self, bench: Path, merged: int) -> None:
        times = measured(bench, {"lanes": 16, "merged": merged, "batches": 3})["ns_per_update"]
        assert len(times) == 3
        assert all(took > 0 for took in times)

    @pytest.mark.parametrize(("lanes", "merged", "batches"), [(0, 1, 1), (16349, 1, 1), (1, 0, 1)])
    def test_impossible_settings_are_refused(
        self, bench: Path, lanes: int, merged: int, batches: int
    ) -> None:
        with pytest.raises(RunError, match=r"exit 2: (lanes|merged)"):
            measured(bench, {"lanes": lanes, "merged": merged, "batches": batches})

    def test_its_times_are_rows_of_the_figure(self) -> None:
        made = run(plan(find("olaf/latency"), seeds=[4, 9], overrides=TINY), lambda *_: None)
        assert made.rows[0].quantity == "time per update, engine alone"
        assert made.rows[0].verdict == "paper prints no number"
        assert {one.where.partition(",")[0] for one in made.rows} == {"600 bytes"}
        assert all(len(one.ours.values) == 2 for one in made.rows)
        assert len(made.charts) == 1


@pytest.mark.parametrize("missing", ["cargo", "checkout"])
def test_without_the_benchmark_the_processes_are_timed_alone(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "cargo":
        monkeypatch.setenv("PATH", str(tmp_path))
    else:
        monkeypatch.setattr(benches, "CHECKOUT", tmp_path)
    made = run(plan(find("olaf/latency"), seeds=[4], overrides=TINY), lambda *_: None)
    assert [one.unit for one in made.rows] == ["ns", "µs", "µs"]
    assert [one.title for one in made.charts] == ["Round trip of an update"]
    assert NO_ENGINE in made.notes
