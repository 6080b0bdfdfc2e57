"""The dashboard, the alerts and the page about operating name metrics that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from olaf import _olaf

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/operate.md").read_text(encoding="utf-8")
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/olaf.json").read_text())
CATALOGUE = _olaf.metrics_catalogue()
NAMES = {name for name, _, _ in CATALOGUE}
ALERTS: list[dict[str, Any]] = next(
    read["groups"][0]["rules"]
    for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    if "groups" in (read := yaml.safe_load(block))
)


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"\bolaf_\w+", expression))


def expressions() -> list[str]:
    panels = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
    assert len(panels) > 10
    return [target["expr"] for panel in panels for target in panel["targets"]]


@pytest.mark.parametrize("expression", expressions())
def test_each_metric_of_the_dashboard_exists(expression: str) -> None:
    assert metrics_in(expression), "a panel without a metric"
    assert metrics_in(expression) <= NAMES


def test_what_keys_keep_out_is_watched_as_what_engines_refuse() -> None:
    told = [*expressions(), *(alert["expr"] for alert in ALERTS)]
    watched = ("olaf_refused_datagrams_total", "olaf_keys_refused_datagrams_total")
    engines, keys = ([text.replace(name, "") for text in told if name in text] for name in watched)
    assert sorted(engines) == sorted(keys)
    assert len(keys) == 3, "a number, a plot and an alert"


def test_a_rate_is_of_a_counter_and_a_plain_value_is_not() -> None:
    told = [*expressions(), *(alert["expr"] for alert in ALERTS)]
    for expression in told:
        changing = set(re.findall(r"(?:rate|increase)\((olaf_\w+)", expression))
        assert {name for name in metrics_in(expression) if name.endswith("_total")} == changing


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        xs, ys = range(at["x"], at["x"] + at["w"]), range(at["y"], at["y"] + at["h"])
        cells = {(x, y) for x in xs for y in ys}
        assert not taken & cells, panel["title"]
        taken |= cells
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


SILENT_AFTER_S, FORGOTTEN_S = 2, 60


def seconds_of(text: str) -> int:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]


@pytest.mark.parametrize("alert", ["OlafWorkersSilent", "OlafClusterStarves"])
def test_an_alert_about_dead_workers_comes_before_they_are_forgotten(alert: str) -> None:
    (rule,) = (one for one in ALERTS if one["alert"] == alert)
    # Half of the time is for the limit of an age, and for the intervals of scrapes.
    assert SILENT_AFTER_S + seconds_of(rule["for"]) <= FORGOTTEN_S / 2
    assert seconds_of(rule["keep_firing_for"]) > FORGOTTEN_S
    # The mean over time grows with the silence; the mean peak stands still.
    assert "olaf_age_of_model_mean_seconds" not in rule["expr"]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])
def test_each_metric_of_an_alert_exists(alert: dict[str, Any]) -> None:
    assert metrics_in(alert["expr"]) <= NAMES
    assert metrics_in(alert["expr"]) or alert["expr"].startswith("up{")


def test_the_page_lists_every_metric_and_no_other() -> None:
    listed = dict(re.findall(r"^\| `(olaf_\w+)` \| (\w+) \|", PAGE, re.MULTILINE))
    assert listed == {name: kind for name, kind, _ in CATALOGUE}
