"""Tables 2 and 3 and Figure 10: the goal of the fair control, the bounds, and what is compared."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from olaf import scenarios
from olaf.errors.usage import ConfigurationError
from olaf.experiments import Record, Spread
from olaf.experiments.catalog import find, plan
from olaf.experiments.multihop import (
    FAIR,
    FIFO,
    FRESHEST,
    GROUPS,
    OLAF,
    PAPER,
    VIEWS,
    Network,
    View,
    age_ms,
    fairness,
    jain_of_groups,
    measure,
    measure_all,
    paper_variants,
    scenario_of,
    worst_change,
)
from olaf.experiments.olaf.control import Limit
from olaf.experiments.olaf.control import Parameters as Control
from olaf.scenarios import Outcome
from olaf.values.numbers import short

SEEDS = (0, 1)
CHECKOUT = Path(__file__).parents[2]


def control_parameters() -> Control:
    parameters = plan(find("olaf/control")).parameters
    assert isinstance(parameters, Control)
    return parameters


def settings() -> dict[str, Network]:
    parameters = control_parameters()
    return parameters.networks(parameters.settings)


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("setting", ["Table 2", "Table 3", "x1/x2 = 0.3", "x1/x2 = 0.5"])
def test_the_fair_control_is_fair_and_nobody_pays_for_it(setting: str, view: View) -> None:
    network = settings()[setting]
    plain, fair = (measure(SEEDS, network, variant, view) for variant in (OLAF, FAIR))
    assert fairness(fair).mean >= 0.99
    assert worst_change(fair, plain).mean <= 10.0


@pytest.mark.parametrize("view", VIEWS)
def test_the_papers_control_makes_table_3_less_fair_however_it_is_read(view: View) -> None:
    network = settings()["Table 3"]
    plain = fairness(measure(SEEDS, network, OLAF, view)).mean
    for variant in paper_variants():
        assert fairness(measure(SEEDS, network, variant, view)).mean < plain, variant.name


@pytest.mark.parametrize("view", VIEWS)
def test_olaf_loses_less_than_fifo_and_is_younger(view: View) -> None:
    found = dict(measure_all(SEEDS, settings()["Table 2"], [FIFO, OLAF, FRESHEST])[view])
    for group in GROUPS:
        fifo, olaf, freshest = (age_ms(found[v], group).mean for v in (FIFO, OLAF, FRESHEST))
        assert freshest < olaf < fifo / 2
    assert found[FIFO][0].loss_packets > 0.85
    assert found[OLAF][0].loss_packets < 0.15


@pytest.mark.parametrize(
    ("setting", "out_of_reach"),
    [("x1/x2 = 0.1", True), ("x1/x2 = 0.2", False), ("x1/x2 = 0.3", False)],
)
def test_the_bound_excludes_the_goal_at_a_tenth_alone_and_nothing_passes_it(
    setting: str, out_of_reach: bool
) -> None:
    network = settings()[setting]
    variants = [OLAF, FAIR, FRESHEST]
    measured = [(variant, measure(SEEDS, network, variant, "ns-3")) for variant in variants]
    limit = Limit("ns-3", setting, network, measured, SEEDS)
    assert limit.proves is out_of_reach
    assert limit.best_ms < limit.alone_ms
    assert limit.measured <= limit.proven
    for _, outcomes in measured:
        assert age_ms(outcomes, "S1").low > limit.best_ms


def test_the_bound_by_hand() -> None:
    network = settings()["x1/x2 = 0.1"]
    # 1030 bytes: 43.37 ms at 190 kbit/s and 8.24 ms at 1 Mbit/s; five clusters: 2.5 such waits.
    measured = [(v, measure([0], network, v, "ns-3")) for v in (OLAF, FAIR)]
    limit = Limit("ns-3", "a tenth", network, measured, [0])
    assert limit.best_ms == pytest.approx(3.5 * 43.368 + 8.24, abs=0.01)
    assert "160.0 ms" in limit.bound().why


def test_two_groups_are_fairest_when_their_clusters_are_alike() -> None:
    def jain(values: Sequence[float]) -> float:
        return sum(values) ** 2 / (len(values) * sum(v * v for v in values))

    most = jain_of_groups(1381.0, 5382.0)
    # What OLAF's Table 3 prints beside these means is 0.86.
    assert most == pytest.approx(0.7407, abs=1e-4)
    assert most == pytest.approx(jain([1381.0] * 5 + [5382.0] * 5))
    assert jain([1281.0, 1481.0, *[1381.0] * 3, *[5382.0] * 5]) < most
    assert jain_of_groups(7.0, 7.0) == 1.0


def outcome(ages_ms: Sequence[float]) -> Outcome:
    names = ("generated", "delivered", "replaced", "filtered", "dropped", "rejected", "discarded",
             "held", "on_the_way")  # fmt: skip
    clusters: list[dict[str, Any]] = [
        {"group": "S1" if at < 1 else "S2", "cluster": at, "age_mean_ns": age * 1e6,
         "age_peak_mean_ns": 1.0, "age_peak_max_ns": 1, "worker_age_mean_ns": 1.0,
         "workers_unheard": 0, "packets": 1, "contributions": 1}
        for at, age in enumerate(ages_ms)
    ]  # fmt: skip
    return Outcome.model_validate({
        "fates": dict.fromkeys(names, 0), "packets_sent": 0, "packets_dropped": 0,
        "packets_delivered": 0, "packets_merged": 0, "loss_packets": 0, "loss_contributions": 0,
        "fairness": 1, "clusters": clusters, "switches": [], "probability_mean": 1, "fan_in": [],
    })  # fmt: skip


def test_the_cluster_that_lost_most_is_found_seed_by_seed() -> None:
    plain = [outcome([100, 100, 100]), outcome([100, 200, 100])]
    changed = [outcome([90, 120, 100]), outcome([105, 150, 100])]
    assert worst_change(changed, plain).values == pytest.approx([20.0, 5.0])


def test_a_variant_becomes_a_scenario_of_its_queue_control_and_view() -> None:
    network = settings()["Table 3"]
    scenario = scenario_of(network, PAPER, "hardware")
    assert scenario["head_keeps_slot"] is True
    assert scenario["control"]["kind"] == "paper"
    assert [group["interval_ns"] for group in scenario["groups"]] == [100_000_000, 300_000_000]
    alone = scenario_of(network, FIFO, "ns-3", groups=["S1"])
    assert alone["head_keeps_slot"] is False
    assert [group["name"] for group in alone["groups"]] == ["S1"]
    assert {switch["queue"] for switch in alone["switches"]} == {"fifo"}
    assert scenarios.run({**alone, "duration_ns": 500_000_000}).fates.generated > 0


def test_the_example_is_table_3_itself() -> None:
    file = CHECKOUT / "examples" / "scenarios" / "table3.toml"
    network = plan(find("olaf/table3")).parameters
    assert isinstance(network, Network)
    assert scenarios.run(scenarios.read(file)) == measure([0], network, OLAF, "hardware")[0]


def test_a_setting_with_an_unknown_key_is_named() -> None:
    override = 'settings={"mine" = {sw4_bps = 3}}'
    with pytest.raises(ConfigurationError, match="mine: the network has no `sw4_bps`"):
        plan(find("olaf/control"), overrides=[override])


def test_the_design_note_quotes_what_was_measured() -> None:
    stored = (CHECKOUT / "experiments" / "olaf" / "control" / "results.json").read_text()
    (table,) = [t for t in Record.model_validate_json(stored).tables if "(ns-3)" in t.title][:1]
    names = [column.name for column in table.columns]
    measured: dict[str, list[str]] = {}
    for cells in table.rows:
        row = dict(zip(names, cells, strict=True))
        ages, index = (row["AoM S1, ms"], row["AoM S2, ms"]), row["fairness"]
        if row["queue"] == "olaf" and isinstance(index, Spread):
            means = [short(age.mean) for age in ages if isinstance(age, Spread)]
            text = ", ".join([*means, f"{index.mean:.4f}"])
            measured.setdefault(str(row["setting"]), []).append(text)
    note = (CHECKOUT / "docs" / "design" / "009-transmission-control.md").read_text()
    quoted = [line.replace("*", "").split(" | ") for line in note.splitlines() if "%" in line]
    rows = {cells[0].removeprefix("| "): cells[1:4] for cells in quoted if len(cells) == 5}
    assert len(rows) >= 7
    for setting, texts in rows.items():
        assert texts == measured[setting], setting
