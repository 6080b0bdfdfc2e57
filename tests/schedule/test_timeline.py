"""Records checked, and drawn as a page and as a trace."""

import json
import re
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olaf.cli.main import run as olaf
from olaf.errors.usage import ConfigurationError
from olaf.schedule import timeline
from olaf.schedule.timeline.layout import lanes, merged, runs, thinned
from olaf.schedule.timeline.page import drawn, page
from olaf.schedule.timeline.record import words
from olaf.schedule.timeline.trace import trace


def tree(
    from_ns: int, to_ns: int | None, root: int | None = None, *switches: int
) -> dict[str, Any]:
    reason = {"kind": "alone"} if root is not None else {"kind": "conflict", "candidates": 3}
    return {
        "from_ns": from_ns, "to_ns": to_ns, "root": root, "switches": list(switches),
        "reason": reason,
    }  # fmt: skip


def job(name: int | str, hosts: list[int], start: int | None, end: int | None, *trees: Any) -> Any:
    return {
        "job": name, "pattern": "opt", "hosts": hosts, "queued_ns": start or 0, "start_ns": start,
        "end_ns": end, "steps": 7, "trees": list(trees),
    }  # fmt: skip


RECORD: dict[str, Any] = {
    "hosts": 6,
    "switches": ["tor0", "tor1", "core0"],
    "tor_of": [0, 0, 0, 1, 1, 1],
    "jobs": [
        job(0, [0, 1, 3], 0, 5_000, tree(0, 5_000, 2, 0, 1, 2)),
        job("b", [4, 5], 1_000, 9_000, tree(1_000, 4_000, None), tree(4_000, 9_000, 1, 1)),
        job("waits", [], None, None),
        job("runs on", [2], 6_000, None, tree(6_000, None, None)),
    ],
    "uses": [
        {"job": 0, "from_ns": 100, "to_ns": 200},
        {"job": 0, "from_ns": 150, "to_ns": 300},
        {"job": "b", "from_ns": 4_500, "to_ns": 5_000},
    ],
}


def changed(**parts: Any) -> dict[str, Any]:
    return {**json.loads(json.dumps(RECORD)), **parts}


def one(**parts: Any) -> dict[str, Any]:
    return changed(jobs=[{**job(0, [0], 0, 10, tree(0, 10, 0, 0)), **parts}], uses=[])


# ---- the record


def test_what_has_not_ended_is_drawn_to_the_last_time_told() -> None:
    assert timeline.check(RECORD).end_ns == 9_000


@pytest.mark.parametrize(
    ("told", "words_of_it"),
    [
        ({}, "hosts: Field required"),
        (changed(hosts=0), "hosts: Input should be greater than or equal to 1"),
        (changed(hosts=True), "hosts"),
        (changed(hosts=1 << 21), "hosts: Input should be less than"),
        (changed(tor_of=[0]), "tor_of: 1 switches for 6 hosts"),
        (changed(tor_of=[3] * 6), "tor_of: 3, there are 3 switches, from 0"),
        (
            changed(uses=[{"job": 9, "from_ns": 0, "to_ns": 1}]),
            "uses[0].job: the record has no job 9",
        ),
        (changed(window={"from_ns": 5, "to_ns": 4}), "window: ends at 4 ns"),
        (changed(jobs=[job(1, [0], 0, 1)] * 2), "jobs[1].job: two jobs are named 1"),
        (one(hosts=[6]), "jobs[0].hosts: 6, there are 6 hosts, from 0"),
        (one(hosts=[-1]), "jobs[0].hosts[0]: Input should be greater"),
        (one(start_ns=-1), "jobs[0].start_ns: Input should be greater"),
        (one(start_ns=1.5), "jobs[0].start_ns: Input should be a valid integer"),
        (one(start_ns=11), "jobs[0]: ends at 10 ns, before its begin"),
        (one(start_ns=None), "jobs[0]: ends at 10 ns, before its begin"),
        (one(end_ns=1 << 60), "jobs[0].end_ns: Input should be less than"),
        (one(trees=[tree(5, 4, 0, 0)]), "jobs[0].trees[0]: ends at 4 ns, before its begin"),
        (one(trees=[tree(5, 6, 3)]), "jobs[0].trees[0].switches: 3, there are 3 switches"),
    ],
)
def test_what_is_no_record_is_refused_with_its_place(told: Any, words_of_it: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(words_of_it)):
        timeline.check(told)


@pytest.mark.parametrize("text", ["[1]", "{", "", '{"hosts": NaN}', "[" * 100_000, "\xff"])
def test_a_file_that_is_no_record_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(ConfigurationError, match=r"r\.json"):
        timeline.read(file)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("one_host", "one host"),
        (None, ""),
        ({"kind": "conflict", "candidates": 5}, "conflict, candidates 5"),
        ({"kind": "shares", "with": [1, 2]}, "shares, with 1, 2"),
    ],
)
def test_reasons_are_told_in_words(reason: Any, said: str) -> None:
    assert words(reason) == said


# ---- layout

spans = st.lists(
    st.tuples(st.integers(0, 50), st.integers(1, 20)).map(lambda s: (s[0], s[0] + s[1])),
    max_size=30,
)


@given(spans)
def test_lanes_keep_apart_what_overlaps_and_are_as_few_as_can_be(each: list[Any]) -> None:
    chosen = lanes(each)
    by_lane = defaultdict(list)
    for span, lane in zip(each, chosen, strict=True):
        by_lane[lane].append(span)
    for kept in by_lane.values():
        kept.sort()
        assert all(a[1] <= b[0] for a, b in pairwise(kept))
    at_once = max((sum(a <= t < b for a, b in each) for t in range(71)), default=0)
    assert len(by_lane) == at_once


@given(spans, st.integers(0, 10))
def test_merging_covers_what_was_covered_and_no_gap_above_the_given(
    each: list[Any], gap: int
) -> None:
    joined = merged(each, gap)
    covered = {t for a, b in each for t in range(a, b)}
    drawn_ = {t for a, b in joined for t in range(a, b)}
    assert covered <= drawn_
    if gap == 0:
        assert covered == drawn_
    assert all(b[0] - a[1] > gap for a, b in pairwise(joined))


def test_uses_are_thinned_until_they_are_few_and_it_is_said() -> None:
    many = [[(n * 10_000, n * 10_000 + 1_000) for n in range(100)], [(0, 5)]]
    assert thinned(many, 1_000) == (many, 0)
    few, gap_ns = thinned(many, 50)
    assert (few, gap_ns) == ([[(0, 991_000)], [(0, 5)]], 16_000)


def test_numbers_in_a_row_are_told_as_such() -> None:
    assert runs([5, 3, 4, 9, 3]) == [(3, 3), (9, 1)]


# ---- the trace, by the rules of the trace event format


def checked_trace(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Every event has what its phase demands; events of a thread nest; flows go forward."""
    assert isinstance(told["traceEvents"], list)
    assert told["displayTimeUnit"] in ("ms", "ns")
    named: set[tuple[int, int]] = set()
    complete = defaultdict(list)
    flows: dict[int, list[Any]] = defaultdict(list)
    for event in told["traceEvents"]:
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        match event["ph"]:
            case "M":
                kinds = {"process_name": "name", "thread_name": "name"}
                key = kinds.get(event["name"], "sort_index")
                assert list(event["args"]) == [key]
                named.add((event["pid"], event["tid"]))
            case "X":
                assert event["ts"] >= 0
                assert event["dur"] >= 0
                # Viewers count in nanoseconds.
                in_ns = {key: round(event[key] * 1e3) for key in ("ts", "dur")}
                complete[event["pid"], event["tid"]].append({**event, **in_ns})
            case "C":
                assert all(isinstance(value, int) for value in event["args"].values())
            case "s" | "f":
                assert event["ph"] == "s" or event["bp"] == "e"
                flows[event["id"]].append(event)
            case other:
                pytest.fail(f"phase {other}")
    for thread, events in complete.items():
        assert thread in named
        open_: list[int] = []
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while open_ and open_[-1] <= event["ts"]:
                open_.pop()
            end = event["ts"] + event["dur"]
            assert not open_ or end <= open_[-1], f"{event} overlaps"
            open_.append(end)
    for start, finish in flows.values():
        assert (start["ph"], finish["ph"]) == ("s", "f")
        assert start["ts"] <= finish["ts"]
        for end in (start, finish):
            within = complete[end["pid"], end["tid"]]
            at_ns = round(end["ts"] * 1e3)
            assert any(e["ts"] <= at_ns <= e["ts"] + e["dur"] for e in within)
    return list(told["traceEvents"])


def test_the_trace_has_jobs_on_hosts_trees_on_switches_and_sums_below_the_root() -> None:
    events = checked_trace(trace(timeline.check(RECORD), "t"))
    threads = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"
    }
    seen = [
        (threads[e["pid"], e["tid"]], e["name"], e["ts"], e["dur"])
        for e in events
        if e["ph"] == "X"
    ]
    assert ("host 3 (tor1)", "job 0", 0, 5) in seen
    assert ("host 2 (tor0)", "job runs on", 6, 3) in seen
    assert ("core0", "job 0 root", 0, 5) in seen
    assert ("core0", "sums", 0.1, 0.2) in seen
    assert ("tor1 #1", "job 0", 0, 5) in seen
    assert ("tor1 #2", "job b root", 4, 5) in seen
    assert ("tor1 #2", "sums", 4.5, 0.5) in seen
    last = [e["args"] for e in events if e["ph"] == "C"][-1]
    assert last == {"with a tree": 0, "without": 0}


times = st.integers(0, 60)


@st.composite
def records(draw: st.DrawFn) -> dict[str, Any]:
    jobs_, uses = [], []
    for name in range(draw(st.integers(0, 5))):
        start = draw(times)
        end = start + draw(times)
        cuts = sorted({start, end, *draw(st.lists(st.integers(start, end), max_size=2))})
        trees = [
            tree(a, b, *draw(st.sampled_from([(), (0, 0), (1, 1), (2, 0, 1, 2)])))
            for a, b in pairwise(cuts)
        ]
        # Hosts are a job's own: two at once would be no cluster.
        jobs_.append(job(name, [name], start, end, *trees))
        for _ in range(draw(st.integers(0, 3))):
            a = draw(st.integers(start, end))
            uses.append({"job": name, "from_ns": a, "to_ns": draw(st.integers(a, end))})
    return changed(jobs=jobs_, uses=uses)


@given(records())
def test_any_record_makes_a_trace_and_a_page_by_the_rules(told: dict[str, Any]) -> None:
    record = timeline.check(told)
    checked_trace(json.loads(json.dumps(trace(record, "t"), allow_nan=False)))
    shown = drawn(record, "t")
    for switch in shown["held"]:
        assert len(switch) % 2 == 1
        assert all(lane < switch[0] for lane in switch[2::2])
    json.dumps(shown, allow_nan=False)


# ---- the page


def data_of(text: str) -> Any:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', text, re.S)
    assert found
    return json.loads(found[1])


def test_the_page_needs_nothing_but_itself() -> None:
    text = page(timeline.check(RECORD), "my run")
    assert "default-src 'none'" in text
    assert not re.search(r"https?://|<link|\bsrc=|@import|url\(|fetch\(|import\(", text)
    assert not re.search(r"@[A-Z]+@", text)
    shown = data_of(text)
    assert shown["blocks"] == [["tor0", 3], ["tor1", 3]]
    assert shown["jobs"][0][2] == [[0, 2], [3, 1]]
    assert shown["jobs"][0][-1] == [100, 300]
    assert shown["held"][1] == [2, 0, 0, 2, 1]


def test_names_cannot_leave_their_place_in_the_page() -> None:
    evil = "</script><script>alert(1)</script>@SCRIPT@"
    told = changed(jobs=[job(evil, [0], 0, 1)], uses=[], switches=[evil, "b", "c"])
    text = page(timeline.check(told), evil)
    assert text.count("</script>") == page(timeline.check(RECORD), "t").count("</script>")
    assert "<script>alert" not in text
    assert data_of(text)["jobs"][0][0] == evil


def test_hosts_stand_in_even_blocks_if_their_switches_are_not_told() -> None:
    shown = drawn(timeline.check(changed(tor_of=[], hosts=40)), "t")
    assert shown["blocks"] == [("from 0", 16), ("from 16", 16), ("from 32", 8)]


def test_uses_told_of_a_part_of_the_time_are_drawn_as_such() -> None:
    part = {"from_ns": 0, "to_ns": 600}
    assert drawn(timeline.check(changed(window=part)), "t")["told"] == [0, 600]
    assert drawn(timeline.check(RECORD), "t")["told"] == [0, 9_000]
    assert drawn(timeline.check(changed(uses=[])), "t")["told"] is None


# ---- the command


def test_the_command_draws_both_kinds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = tmp_path / "r.json"
    record.write_text(json.dumps(RECORD))
    draw = ["schedule", "timeline", str(record), "--out"]
    assert olaf([*draw, str(tmp_path / "deep" / "p.html"), "--title", "a < b"]) == 0
    assert "<title>a &lt; b</title>" in (tmp_path / "deep" / "p.html").read_text()
    assert olaf([*draw, str(tmp_path / "t.json")]) == 0
    checked_trace(json.loads((tmp_path / "t.json").read_text()))
    capsys.readouterr()
    for out, said in (("p.png", "name it .html"), ("r.json", "that is the record itself")):
        assert olaf([*draw, str(tmp_path / out)]) == 2
        assert said in capsys.readouterr().err
    assert json.loads(record.read_text()) == RECORD


def test_a_record_that_is_kept_is_drawn_the_same_later(tmp_path: Path) -> None:
    told = changed(window={"from_ns": 0, "to_ns": 600})
    kept = tmp_path / "run.record.json"
    timeline.write(told, kept)
    assert timeline.read(kept) == timeline.check(told)


def test_a_simulation_s_timeline_is_kept_and_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = tmp_path / "jobs.txt"
    jobs.write_text("mlp 3 2\ncnn 2 5\nresnet18 4 1\n")
    asked = ["simulate", "mina", "--jobs", str(jobs), "--topology", "fat-tree:4", "--timeline"]
    kept, drawn_page = tmp_path / "run.record.json", tmp_path / "page.html"
    assert olaf([*asked, str(kept)]) == 0
    assert olaf(["schedule", "timeline", str(kept), "--out", str(drawn_page)]) == 0
    capsys.readouterr()
    shown = data_of(drawn_page.read_text())
    assert [job[1] for job in shown["jobs"]] == ["mlp", "cnn", "resnet18"]
    assert len(shown["blocks"]) == 8, "the simulation tells which hosts stand below which switch"
    assert shown["told"] is not None
    checked_trace(trace(timeline.read(kept), "t"))
