"""What the training figures make of pushes, and what becomes of a recorded run."""

import csv
from pathlib import Path
from typing import Any

import pytest

from olaf.cli.main import run as olaf
from olaf.errors.outcome import RunError
from olaf.experiments.catalog import Task, find, plan
from olaf.experiments.olaf import fig2, fig3, fig7, fig8, gate
from olaf.experiments.training import Trained, band, mean_over
from olaf.jobs.progress import Push


def trained(rewards: list[list[float]], parameters: int = 100) -> Trained:
    """One list of rewards a worker, an update a second."""
    pushes = [
        Push(float(at), worker, at + 1, reward)
        for worker, own in enumerate(rewards)
        for at, reward in enumerate(own)
    ]
    result = {
        "workers": len(rewards),
        "updates_per_s": float(len(rewards)),
        "model": {"parameters": parameters},
    }
    return Trained(result, pushes)


def test_a_curve_is_the_smoothed_mean_over_workers_while_most_of_them_are_there() -> None:
    one = trained([[0.0, 2.0, 4.0, 8.0], [2.0, 4.0, 6.0], [4.0, 6.0]])
    assert one.curve(1) == [(1.0, 2.0), (2.0, 4.0), (3.0, 5.0)]
    # (2 + 4 + 6 + 4 + 6) / 5: every push counts once.
    assert one.curve(2)[-1] == (3.0, 4.4)
    assert one.reward_at_end(1) == 8.0
    assert mean_over(one.pushes) == pytest.approx(4.0)


def test_a_band_has_the_iterations_that_all_seeds_have() -> None:
    series = band("x", [[(1.0, 2.0), (2.0, 4.0)], [(2.0, 6.0), (3.0, 8.0)]])
    assert (series.points, series.low, series.high) == ([(2.0, 5.0)], [4.0], [6.0])


def test_iterations_to_the_mark_are_the_run_s_length_where_it_is_not_reached() -> None:
    given = plan(find("olaf/fig3"), overrides=["smoothing=1", "mark=5", "iterations=40"]).parameters
    assert isinstance(given, fig3.Parameters)
    assert fig3.reached(trained([[1.0, 5.0, 2.0]]), given) == 2.0
    assert fig3.reached(trained([[1.0, 2.0]]), given) == 40.0


def test_a_reward_counts_for_as_long_as_it_is_the_last() -> None:
    # Worker 0 pushes 0, 4, 8 at 0, 1, 2 s; worker 1 pushes 10 at 0 s.
    one = trained([[0.0, 4.0, 8.0], [10.0]])
    assert one.reward_until(2.0) == pytest.approx((0 + 4 + 10 + 10) / 4)
    assert one.reward_until(4.0) == pytest.approx((0 + 4 + 2 * 8 + 4 * 10) / 8)
    with pytest.raises(ValueError, match="no worker pushed"):
        one.reward_until(0.0)


def test_a_curve_by_time_has_the_last_pushes_of_each_worker() -> None:
    one = trained([[0.0, 4.0, 8.0], [10.0]])
    assert one.curve_by_time(2, 1) == [(1.0, 7.0), (2.0, 9.0)]
    ((at_s, mean),) = one.curve_by_time(1, 2)
    assert at_s == 2.0
    assert mean == pytest.approx((4 + 8 + 10) / 3)


def test_a_run_is_recorded_as_a_trace_that_replay_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "deep" / "trace.csv"
    tables: dict[str, dict[str, Any]] = {
        "learner": {"environment": "CartPole-v1", "environments": 2, "steps_per_update": 100},
        "train": {
            "workers": 2, "clusters": 2, "updates": "off", "until_reward": "off",
            "record": str(trace),
        },
        "worker": {"updates": 10},
    }  # fmt: skip
    arguments = [
        f"--set={table}.{key}={value}"
        for table, keys in tables.items()
        for key, value in keys.items()
    ]
    assert olaf(["train", *arguments, f"--out={tmp_path / 'run'}", "--json"]) == 0
    capsys.readouterr()
    rows = list(csv.DictReader(trace.read_text().splitlines()))
    assert len(rows) == 20
    times = [int(row["t_ns"]) for row in rows]
    assert times[0] == 0
    assert times == sorted(times)
    for worker in ("0", "1"):
        own = [row for row in rows if row["worker"] == worker]
        assert [int(row["seq"]) for row in own] == list(range(len(own)))
        assert {row["cluster"] for row in own} == {worker}
    assert len({row["bytes"] for row in rows}) == 1
    assert (
        olaf(["replay", str(trace), "--engine=olaf", "--slots=4", "--rate=10mbit", "--json"]) == 0
    )
    intervals, packet_bytes = fig7.read_trace(str(trace))
    assert len(intervals) == 2
    assert packet_bytes == int(rows[0]["bytes"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("t_ns,worker\n0,0\n", "not a trace: 'bytes'"),
        ("t_ns,cluster,worker,seq,reward,bytes\n0,0,0,0,soon,x\n", "not a trace"),
        ("t_ns,cluster,worker,seq,reward,bytes\n0,0,0,0,1,256\n", "no worker pushed twice"),
    ],
)
def test_a_trace_that_cannot_be_used_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(RunError, match=complaint) as error:
        fig7.read_trace(str(file))
    assert error.value.code == 2
    with pytest.raises(RunError, match="No such file"):
        fig7.read_trace(str(tmp_path / "nowhere.csv"))


def test_a_delivery_that_never_ends_says_who_is_missing() -> None:
    given = plan(
        find("olaf/fig7"), overrides=["clusters=3", "wanted=50", "limit=1.0001", "shares=[0.05]"]
    ).parameters
    assert isinstance(given, fig7.Parameters)
    recorded = [[1_000_000]], 1000
    with pytest.raises(RunError, match=r"fifo at .* only \d+ of 9 workers had 50 updates"):
        fig7.deliver(recorded, given, seed=1, queue="fifo", rate_bps=1e5)


def test_the_spread_of_rewards_is_that_of_the_second_half() -> None:
    one = trained([[0.0, 0.0, 4.0, 6.0], [90.0, 90.0, 8.0, 6.0]])
    assert gate.spread_of_rewards(one) == pytest.approx((2 + 0) / 2)


def test_every_way_of_figure_2_that_is_judged_pushes_once_a_turn() -> None:
    given = plan(find("olaf/fig2")).parameters
    assert isinstance(given, fig2.Parameters)
    pushes = {mode: fig2.tables(given, mode, 0)["worker"]["push_every"] for mode in fig2.MODES}
    assert pushes == {"each": "turn", "periodic": "turn", "round": "turn", "passes": "pass"}
    runs = {
        (1.0, mode): [trained([[1.0, 2.0], [1.0, at]]) for at in (2.0, 3.0)] for mode in fig2.MODES
    }
    one = plan(find("olaf/fig2"), overrides=["speeds=[1.0]"]).parameters
    assert isinstance(one, fig2.Parameters)
    verdicts = {row.quantity: row.verdict for row in fig2.lead_rows(runs, one)}
    assert verdicts["asynchronous, a push each pass: reward, against synchronous"] == (
        "not comparable"
    )
    assert verdicts["asynchronous: reward, against synchronous"] != "not comparable"


def test_olaf_can_lose_updates_in_figure_8() -> None:
    """With a slot for each cluster its loss would be 0 by construction."""
    for quick in (False, True):
        given = plan(find("olaf/fig8"), quick=quick).parameters
        assert isinstance(given, fig8.Parameters)
        assert given.clusters > given.slots


def test_a_share_of_a_reward_that_may_be_0_is_not_compared() -> None:
    planned = plan(find("olaf/fig8"), overrides=["shares=[0.26]", "last=1"])
    given = planned.parameters
    assert isinstance(given, fig8.Parameters)
    task = Task(given, planned.figure.paper, (0, 1), Path(), lambda text, share=None: None)
    olaf_runs = [trained([[150.0]]), trained([[152.0]])]
    for reward, verdict in ((100.0, "same direction"), (-3.0, "not comparable")):
        runs = {
            fig8.label("olaf", 0.26): olaf_runs,
            fig8.label("fifo", 0.26): [trained([[reward]]), trained([[reward + 2]])],
        }
        share, rewards = fig8.lead_rows(runs, task)
        assert (share.verdict, share.goal is None) == (verdict, reward < 0)
        assert rewards.verdict == "same direction", "the rewards themselves are judged"
