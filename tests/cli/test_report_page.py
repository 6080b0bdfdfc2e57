import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from cli_doubles import Watcher, fake_command
from rich.console import Console, RenderableType

from olaf.drawing.braille import bar, curve
from olaf.drawing.inline import thinned
from olaf.errors.outcome import Exit
from olaf.jobs.progress import Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.result import conclude, write_run
from olaf.jobs.summary import ratios, summarize
from olaf.jobs.supervisor import Ended, Printed, Said
from olaf.jobs.training import Outcome, Training
from olaf.processes.lines import Control
from olaf.report import tables
from olaf.report.comparing import comparison_page, comparison_table
from olaf.report.page import events, printed, run_page
from olaf.report.plots import running_mean

Record = dict[str, Any]

SMALL = 10
"""Small plots of what the stand-ins report: losses, episode length, success and one more."""


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    """The record of a short run with stand-ins for the roles."""
    folder = tmp_path_factory.mktemp("run")
    settings = read_settings(
        overrides=[
            f"train.out='{folder}'",
            "train.workers=2",
            "train.every_s=0.05",
            "train.updates=150",
            "train.until_reward=off",
        ]
    )
    outcome = Training(settings, Watcher(), Control(), fake_command).run()
    return write_run(folder, outcome, conclude(outcome))


def text_of(table: RenderableType, width: int = 140) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(table)
    return console.export_text()


def fetched(page: str) -> list[str]:
    """Everything in a page that a browser would ask a network for."""
    outside = re.findall(r"(?:https?:)?//[a-z][^\s\"'<>)]*", page)
    loaded = re.findall(r"<(?:script|link|img|iframe|object|embed|source|video|audio)\b", page)
    urls = [u for u in re.findall(r"url\(([^)]*)\)", page) if not u.strip("'\"").startswith("#")]
    links = [h for h in re.findall(r"(?:href|src)=\"([^\"]*)\"", page) if not h.startswith("#")]
    return outside + loaded + urls + links + re.findall(r"@import[^;]*", page)


def test_the_page_asks_no_network_for_anything(record: Record) -> None:
    page = run_page(record)
    assert fetched(page) == []
    assert page.count("<svg") == 6 + SMALL


def test_every_plot_is_whole_and_takes_its_colours_from_the_page(record: Record) -> None:
    for svg in re.findall(r"<svg.*?</svg>", run_page(record), re.DOTALL):
        ET.fromstring(svg)
        assert "#fe00" not in svg
        assert "currentColor" in svg


def test_the_page_says_that_the_sums_match_and_when_they_do_not(record: Record) -> None:
    assert "The sums match." in run_page(record)
    fates = {**record["result"]["fates"], "matches": False, "discrepancies": ["switch #1: <odd>"]}
    page = run_page({**record, "result": {**record["result"], "fates": fates}})
    assert "The sums do not match: switch #1: &lt;odd&gt;" in page


def test_text_from_outside_is_escaped(record: Record) -> None:
    result = {**record["result"], "environment": "<script>alert(1)</script>"}
    page = run_page({**record, "result": result})
    assert "<script" not in page


def test_a_plot_that_would_be_empty_is_a_sentence(record: Record) -> None:
    empty = {**record, "episodes": [], "history": [], "events": []}
    page = run_page(empty)
    assert "<svg" not in page
    assert '<div class="plots' not in page
    for sentence in (
        "No episode has ended, so there is no reward to draw.",
        "No update reached the server, so the model has no age to draw.",
        "No update reached the switch.",
        "The queue was empty at every report.",
        "The run was too short to draw its speed.",
    ):
        assert page.count(sentence) == 1
    short = run_page({**record, "history": record["history"][:3]})
    assert "The run was too short to draw its speed." in short
    assert "Age-of-Model when reported" not in run_page({**record, "history": ages_once(record)})
    idle = [{**sample, "queue_used": 0} for sample in record["history"]]
    page = run_page({**record, "history": idle})
    assert page.count("<svg") == 5 + SMALL
    assert "The queue was empty at every report." in page
    assert "Queue, of 8 slots" not in page


def ages_once(record: Record) -> list[Record]:
    """The history with the ages of one sample alone."""
    *others, last = record["history"]
    return [*({**sample, "ages_s": {}} for sample in others), last]


def failed(record: Record, **changes: Any) -> Record:
    result = {
        **record["result"],
        "outcome": "failed",
        "reason": "no worker is left: KeyError: 701",
        "restarts": {"worker 1": 5},
        "fault": {"process": "worker 1", "how": "exited with 1 (failed)", "lines": []},
        **changes,
    }
    return {**record, "result": result}


def test_the_report_of_a_failed_run_says_so_in_red_with_its_cause_and_last_lines(
    record: Record,
) -> None:
    fault = {
        "process": "worker 1",
        "how": "exited with 1 (failed)",
        "error": "KeyError: 701",
        "frames": '  File "lake.py", line 27, in <measure>',
        "lines": ["the probe is <under> water"],
    }
    page = run_page(failed(record, fault=fault))
    assert "<h1 class=bad>LunarLander-v3: the run failed</h1>" in page
    alert = page[page.index('<div class="alert">') : page.index('<div class="tiles">')]
    assert "<b>no worker is left: KeyError: 701</b>" in alert
    assert "worker 1 exited with 1 (failed). It was started again 5 times." in alert
    assert "<pre>KeyError: 701\n  File &quot;lake.py&quot;, line 27, in &lt;measure&gt;" in alert
    assert "The last lines that worker 1 printed:</p><pre>the probe is &lt;under&gt;" in alert
    assert "worker 1 printed nothing." in run_page(failed(record))
    assert 'class="alert"' not in run_page(failed(record, fault=None, outcome="reached"))
    assert "<b>no worker is left" in run_page(
        failed(record, fault=None)
    )  # nobody at fault is known


def test_a_run_that_failed_before_it_began_has_no_empty_plot_and_no_empty_tile(
    tmp_path: Path,
) -> None:
    settings = read_settings(overrides=[f"train.out='{tmp_path}'", "train.workers=1"])
    progress = Progress(settings)
    progress.take(Printed("worker 0", 1, "KeyError: 'lake'"), 0.5)
    error = {"event": "fault", "error": "KeyError: 1", "where": "a.py:3", "frames": "in <reset>"}
    progress.take(Said("worker 0", 1, error), 0.6)
    progress.take(Ended("worker 0", 1, 1, False, None), 1.0)
    progress.sample(1.0)
    model = tmp_path / "model.npz"
    reason = "no worker is left: KeyError: 'lake'"
    outcome = Outcome("failed", reason, Exit.FAILED, 1.0, None, progress, {}, model)
    page = run_page(write_run(tmp_path, outcome, conclude(outcome)))
    assert "<svg" not in page
    assert "The last lines that worker 0 printed:</p><pre>KeyError: &#x27;lake&#x27;</pre>" in page
    assert "in worker 0:</p><pre>KeyError: 1\nin &lt;reset&gt;</pre>" in page
    assert page.count('class="tile"') == 1  # the wall time
    assert "No update was pushed." in page


def test_the_process_that_was_given_up_is_at_fault_whatever_happened_before(
    tmp_path: Path,
) -> None:
    progress = Progress(read_settings(overrides=[f"train.out='{tmp_path}'"]))
    error = {"event": "fault", "error": "KeyError: 1", "where": "a.py:3", "frames": "in reset"}

    def fault(kind: str = "failed") -> Record | None:
        model = tmp_path / "model.npz"
        outcome = Outcome(kind, "it failed", Exit.FAILED, 9.0, None, progress, {}, model)
        found: Record | None = conclude(outcome)["fault"]
        return found

    assert fault() is None  # nobody is known
    progress.take(Ended("worker 3", 1, -9, False, 0.2), 1.0)
    progress.take(Said("worker 0", 1, error), 2.0)
    progress.take(Ended("worker 0", 1, 1, False, 0.2), 2.0)
    assert (fault() or {})["process"] == "worker 0"
    assert (fault() or {})["frames"] == "in reset"
    progress.take(Printed("switch", 6, "no memory"), 3.0)
    progress.take(Ended("switch", 6, -9, False, None), 3.0)
    progress.take(Ended("worker 1", 1, -9, False, 0.2), 4.0)
    found = fault() or {}
    assert (found["process"], found["how"]) == ("switch", "killed by SIGKILL")
    assert (found["error"], found["frames"], found["lines"]) == ("", "", ["no memory"])
    assert fault("updates") is None


def test_the_goal_is_a_line_in_the_plots_of_the_reward(record: Record) -> None:
    assert record["result"]["reward"]["goal"] is None
    assert "goal" not in run_page(record)
    reward = {**record["result"]["reward"], "goal": 195.0}
    page = run_page({**record, "result": {**record["result"], "reward": reward}})
    assert page.count(">goal 195<") == 2


def test_the_small_plots_show_what_the_learners_reported(record: Record) -> None:
    page = run_page(record)
    titles = ("Episode length, steps", "Success, %", "Value loss", "Explained variance", "energy")
    for title in titles:
        assert f">{title}<" in page
    assert ">Learning rate<" not in page  # it never changed
    # A record of an earlier version has none of it.
    older = {key: value for key, value in record["result"].items() if key != "learning"}
    history = [
        {key: sample[key] for key in sample if key != "losses" and "episode" not in key}
        for sample in record["history"]
    ]
    episodes = [row[:4] for row in record["episodes"]]
    page = run_page({**record, "result": older, "history": history, "episodes": episodes})
    assert page.count("<svg") == 6
    assert ">Entropy, nats<" not in page


def test_what_happened_counts_echoes_and_has_no_printed_lines() -> None:
    def event(who: str, words: str, **more: bool) -> Record:
        return {"at_s": 1.0, "who": who, "text": f"{who}: {words}", **more}

    told = [
        event("worker 0", "same"),
        event("worker 1", "other"),
        event("worker 2", "same", echo=True),
        event("worker 3", "same", echo=True),
        event("worker 3", "same", echo=True),  # started again
        event("worker 0", "same", echo=True),
        event("worker 3", "step 1", printed=True),
        event("worker 3", "<step 2>", printed=True, echo=True),
    ]
    page = events(told)
    assert page.count("<tr>") == 1 + 2
    assert "worker 0: same (2 others say so, too)<" in page
    assert "worker 1: other<" in page
    lines = printed(told)
    assert "worker 3: 2 lines<" in lines
    assert "1.0 s  step 1\n     1.0 s  &lt;step 2&gt;</pre>" in lines
    assert printed(told[:3]) == ""


def test_very_many_events_and_lines_are_cut_on_the_page() -> None:
    told = [{"at_s": float(n), "who": "run", "text": f"event {n}."} for n in range(5000)]
    page = events(told)
    assert "event 0." in page
    assert "event 4999." in page
    assert "4,800 more events in history.jsonl" in page
    lines = printed([{**event, "printed": True} for event in told])
    assert "run: the last 60 of 5,000 lines<" in lines
    assert len(lines) < 3000


def test_the_page_has_the_reward_against_time_and_against_steps(record: Record) -> None:
    page = run_page(record)
    assert "Reward against wall time" in page
    assert "Reward against environment steps" in page
    # An older record has no steps of its episodes, and no lengths.
    older = run_page({**record, "episodes": [row[:3] for row in record["episodes"]]})
    assert older.count("<svg") == 6 + SMALL - 2
    assert "Reward against environment steps" not in older
    assert "This record has no steps of its episodes" in older


def test_counts_are_of_updates_whatever_the_segments_of_one(record: Record) -> None:
    result = record["result"]
    pushed = result["fates"]["pushed"]
    assert f">{pushed:,}<" in run_page(record)
    assert "has 4 segments" not in run_page(record)
    # The same counters of a model of four segments: a contribution is a quarter of an update.
    quartered = {**result, "model": {**result["model"], "segments": 4}}
    page = run_page({**record, "result": quartered})
    assert f">{tables.in_updates(pushed, 4)}<" in page
    assert "has 4 segments" in page
    assert tables.in_updates(pushed, 4) in text_of(tables.fates_table(quartered))
    assert [tables.in_updates(n, 4) for n in (4, 5, 4000)] == ["1", "1.2", "1,000"]


def test_a_resumed_run_marks_where_it_was_resumed(record: Record) -> None:
    at_s = record["history"][len(record["history"]) // 2]["at_s"]
    sessions = [{"session": 1, "at_s": 0.0}, {"session": 2, "at_s": at_s}]
    assert "resumed" not in run_page(record)
    page = run_page({**record, "sessions": sessions})
    assert page.count(">resumed<") == 2  # against time, against steps


def test_the_tables_show_every_fate_and_the_sum(record: Record) -> None:
    text = text_of(tables.fates_table(record["result"]))
    for row in record["result"]["fates"]["rows"]:
        assert row["fate"] in text
    assert "the sums match" in text
    assert "Age-of-Model" in text_of(tables.result_table(record["result"]))


@pytest.mark.parametrize("width", [60, 80, 140])
def test_a_table_uses_the_room_of_the_terminal_and_no_more(record: Record, width: int) -> None:
    headline = tables.headline(record["result"])
    lines = text_of(tables.result_table(record["result"]), width).splitlines()
    assert max(map(len, lines)) <= width
    said = [line.strip() for line in lines]
    assert (said[0] == headline) == (width == 140)
    assert " ".join(said).startswith(headline)  # folded between words
    learning = next(line for line in said if line.startswith("learning at the end"))
    room = width - len("learning at the end") - len("gradient norm 0.43") - 4
    assert len(learning.removeprefix("learning at the end").strip()) > room - 4


def test_the_table_has_the_learners_numbers(record: Record) -> None:
    text = text_of(tables.result_table(record["result"]))
    assert re.search(r"length 100 steps, success (4[89]|5[0-2])\b", text)
    assert "entropy 1.21, KL 0.0081, clipped 12 %, explained variance 0.85" in text
    older = {name: value for name, value in record["result"].items() if name != "learning"}
    assert "learning" not in text_of(tables.result_table(older))


def test_the_mean_of_the_peaks_is_called_that(record: Record) -> None:
    text = text_of(tables.result_table(record["result"]))
    assert "mean 30.0 ms, mean of the peaks 50.0 ms" in text
    assert not re.search(r"(?<!the )peak", text)


def test_one_of_a_thing_is_singular(record: Record) -> None:
    result = {**record["result"], "workers": 1, "clusters": 1}
    result["reward"] = {**result["reward"], "episodes": 1}
    text = text_of(tables.result_table(result))
    assert "1 worker in 1 cluster, " in text
    assert "mean of the one episode" in text
    assert re.search(r"\b1 episode\b(?!s)", text)


def test_the_table_says_how_a_server_that_collects_fared(record: Record) -> None:
    result = dict(record["result"])
    assert "aggregation" not in text_of(tables.result_table(result))
    result["aggregate"] = {"mode": "round", "collections": 1200, "rounds_short": 7}
    text = text_of(tables.result_table(result))
    assert "round: applied 1,200 times, 7 of them without some worker" in text


@pytest.mark.parametrize("seeds", [1, 5])
def test_a_comparison_sets_arms_side_by_side(record: Record, seeds: int) -> None:
    arms = ("fifo", "olaf", "push-less-often", "tcp")
    runs = [
        {**record, "result": {**record["result"], "arm": arm, "seed": seed}}
        for seed in range(seeds)
        for arm in arms
    ]
    results = [run["result"] for run in runs]
    comparison = {
        "olaf": "0",
        "written_at": record["written_at"],
        "summary": summarize(results),
        "ratios": ratios(results),
        "runs": [{"folder": "", "result": result} for result in results],
    }
    page = comparison_page(comparison, runs)
    assert fetched(page) == []
    assert "fifo against olaf against push-less-often against tcp" in page
    text = text_of(comparison_table(comparison))
    for head in (*arms, "over olaf", "time to the reward", "bytes on the uplink", "CPU seconds"):
        assert head in text
    assert ("[1.00, 1.00]" in text) == (seeds >= 5)  # each is compared with itself here


def test_a_comparison_means_only_over_what_was_reached() -> None:
    run = {
        "queue": "olaf",
        "reward": {"mean": 1.0},
        "wall_s": 2.0,
        "updates": 3,
        "loss": None,
        "age_of_model": {"mean_s": 0.5, "peak_mean_s": 1.0},
        "staleness": {"mean": 1.0},
        "fairness": 1.0,
        "env_steps_per_s": 10.0,
        "env_steps": 100,
        "switches": [{"departures": 2}],
    }
    summary = summarize([{**run, "reached_s": 4.0}, {**run, "reached_s": None}])
    assert summary["olaf"]["reached"] == 1
    assert summary["olaf"]["reached_s"] == 4.0
    assert summary["olaf"]["loss"] is None


def test_running_mean_starts_with_the_first_full_window() -> None:
    episodes = [(float(t), 0, float(t)) for t in range(5)]
    assert running_mean(episodes, 3) == [(2.0, 1.0), (3.0, 2.0), (4.0, 3.0)]


def test_thinning_keeps_both_ends() -> None:
    points = [(float(x), 0.0) for x in range(10_000)]
    few = thinned(points, 100)
    assert len(few) == 100
    assert (few[0], few[-1]) == (points[0], points[-1])


def test_a_curve_rises_from_the_lower_left_to_the_upper_right() -> None:
    lines = curve([(0.0, 0.0), (1.0, 10.0)], width=29, height=4)
    assert len(lines) == 4
    assert all(len(line) == 29 for line in lines)
    assert lines[0].startswith("    10.0 ")
    assert lines[3].startswith("     0.0 ")
    assert lines[3][9] != "⠀" != lines[0][-1]
    assert lines[0][9] == "⠀" == lines[3][-1]


@pytest.mark.parametrize("points", [[], [(0.0, 1.0)], [(0.0, 1.0), (0.0, 1.0)]])
def test_a_curve_of_almost_nothing_still_has_its_size(points: list[tuple[float, float]]) -> None:
    assert [len(line) for line in curve(points, 40, 5)] == [40] * 5


def test_a_bar_stays_within_its_width() -> None:
    assert bar(0.5, 4) == "██░░"
    assert bar(7.0, 4) == "████"
