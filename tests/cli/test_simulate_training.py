"""`olaf simulate training`: what it asks, what it finds, what it leaves."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from olaf._olaf import update_bytes
from olaf.cli.main import run as olaf
from olaf.errors.usage import ConfigurationError
from olaf.jobs.reading import read_settings
from olaf.rl.recorded import Recorded
from olaf.virtual.plan import ALONE, Plan, Uplink, mark_of, simulable
from olaf.virtual.running import Run, run_one
from olaf.virtual.summary import speed_up, summarize, where_it_stops

TURNS = Recorded(((1e-4, 2e-5), (2e-4, 4e-5)), epochs=4, source={"cpu": "-", "recorded_at": "-"})
"""Of 64 steps: 11.52 and 23.04 ms."""
PARAMETERS = 4 * 40 + 40 + 40 * 40 + 40 + 40 * 3 + 3


def plan(*overrides: str, **more: Any) -> Plan:
    cartpole = ("learner.environment=CartPole-v1", "learner.steps_per_update=64")
    settings = read_settings(None, {}, (*cartpole, *overrides))
    return Plan(settings, TURNS, until_reward=40.0, step_limit=20_000, **more)


Captured = pytest.CaptureFixture[str]


def simulate(capsys: Captured, *arguments: str) -> tuple[int, str, str]:
    code = olaf(["simulate", "training", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_an_uplink_is_free_a_rate_or_a_share_of_what_is_pushed() -> None:
    def bps(uplink: Uplink, *overrides: str) -> Any:
        return plan(*overrides, uplink=uplink).job(4, 0).switch["uplink_bps"]

    # Four passes a turn, an update each; or a turn an update.
    pushed = 4 * 8 * update_bytes(PARAMETERS) / ((0.01152 + 0.02304) / 2)
    assert bps(Uplink("share", 0.25)) == pytest.approx(0.25 * 4 * pushed, abs=1)
    assert bps(Uplink("share", 0.25), "worker.push_every=turn") == pytest.approx(
        0.25 * pushed, abs=1
    )
    assert bps(Uplink("share", 0.25), "worker.turns_per_push=2") == pytest.approx(
        0.125 * pushed, abs=1
    )
    assert bps(Uplink("rate", 1e6), "switch.uplink=3mbit") == 1_000_000
    assert bps(Uplink("free"), "switch.uplink=3mbit") is None
    assert bps(Uplink(), "switch.uplink=3mbit") == 3_000_000


def test_settings_reach_learner_loop_switch_and_server() -> None:
    job = plan(
        "server.aggregate=round",
        "server.learning_rate=0.5",
        "switch.queue=fifo",
        "worker.weight=2",
        "train.clusters=4",
        speeds=2.5,
        loss=0.1,
    ).job(2, 3)
    assert (job.learner.seed, job.learner.gamma, job.learner.steps_per_update) == (3, 0.5, 64)
    assert job.loop.weight == 2
    assert job.loop.wait_for_model_s == 6.0  # three times server.aggregate_within, as in a run
    assert (job.server["aggregate"], job.switch["queue"]) == ("round", "fifo")
    assert (job.workers, job.clusters, job.speeds, job.edge.loss) == (2, 2, 2.5, 0.1)


def test_what_virtual_time_does_not_have_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"train\.leaves"):
        simulable(read_settings(None, {}, ["train.leaves=2"]))
    with pytest.raises(ConfigurationError, match="--until-reward"):
        mark_of(read_settings(None, {}, ["learner.environment=Pendulum-v1"]))
    assert mark_of(read_settings(None, {}, [])) == 200.0
    assert mark_of(read_settings(None, {}, ["train.until_reward=-300"])) == -300.0


def test_one_run_has_its_fates_and_the_same_seed_the_same_run() -> None:
    asked = plan("worker.patience_s=0", uplink=Uplink("share", 0.5), loss=0.02)
    run = run_one(asked, 3, 0)
    assert run.reached
    assert run.reward >= 40
    assert run.fates is not None
    assert run.fates["matches"], run.fates
    assert run.merged is not None
    assert run.replaced is not None
    assert run.merged + run.replaced > 0
    assert run.lost is not None
    assert run.lost > 0
    assert run.curve[-1][1] == pytest.approx(run.time_s)
    assert run_one(asked, 3, 0) == run


def test_one_machine_alone_needs_no_network() -> None:
    run = run_one(plan(loss=0.5), ALONE, 0)
    assert run.reached
    assert run.fates is None
    assert run.steps == 64 * run.updates
    assert 0.01152 <= run.time_s / run.updates <= 0.02304


def test_a_run_that_does_not_get_there_is_given_up() -> None:
    impossible = Plan(plan().settings, TURNS, until_reward=1e9, step_limit=1000)
    for machines in (ALONE, 2):
        run = run_one(impossible, machines, 0)
        assert not run.reached
        assert 1000 <= run.steps < 1200


def made_up(machines: int, seed: int, time_s: float, reached: bool = True) -> Run:
    steps = round(100 * time_s)
    return Run(
        machines=machines, seed=seed, reached=reached, time_s=time_s, steps=steps, updates=1,
        reward=0.0, curve=[],
    )  # fmt: skip


def test_an_arm_is_compared_with_one_machine_alone() -> None:
    alone = [made_up(ALONE, seed, time_s) for seed, time_s in enumerate([10, 12, 14, 16, 18])]
    four = [made_up(4, seed, time_s) for seed, time_s in enumerate([5, 6, 7, 8, 9])]
    first, second = summarize([*alone, *four])
    assert (first.machines, first.speed_up) == (ALONE, None)
    assert second.speed_up == 2.0
    assert second.time_s.model_dump() == {"median": 7, "low": 5, "high": 9}
    assert second.steps_per_machine.median == 175
    assert second.speed_up_low is not None
    assert second.speed_up_high is not None
    assert 10 / 9 <= second.speed_up_low < 2 < second.speed_up_high <= 18 / 5


def test_a_mark_that_was_not_reached_is_no_number() -> None:
    alone = [10.0] * 5
    assert speed_up(alone, [5, 5, 5, 5, math.inf])[0] == 2.0
    assert speed_up(alone, [5, 5, math.inf, math.inf, math.inf])[0] == 0.0
    assert speed_up([math.inf] * 5, [5.0] * 5) == (None, None, None)
    assert speed_up([10.0] * 2, [5.0] * 2) == (2.0, None, None)
    arm = summarize([made_up(2, seed, 5.0, reached=seed < 1) for seed in range(3)])[0]
    assert (arm.reached, arm.time_s.median, arm.time_s.low) == (1, None, 5.0)


def arm(machines: int, *times: float | None) -> list[Run]:
    """Runs of so many machines, one for each seed; None did not reach the mark."""
    return [
        made_up(machines, seed, time_s or 99.0, reached=time_s is not None)
        for seed, time_s in enumerate(times)
    ]


def test_a_sentence_says_where_more_machines_stop_helping() -> None:
    alone = arm(ALONE, 38.0, 38.0)
    helping = [*alone, *arm(1, 40.0, 40.0), *arm(4, 20.0, 20.0), *arm(8, 10.0, 10.0)]
    assert where_it_stops(summarize(helping)) is None
    said = where_it_stops(summarize([*helping, *arm(16, 12.5, 12.8), *arm(32, None, None)]))
    assert said is not None
    assert said.startswith("More machines stop helping beyond 8 (3.8x): slower with 16 (3.0x), 32 ")
    assert "32 (not reached)." in said
    # A slower row between faster ones is chance.
    assert where_it_stops(summarize([*helping, *arm(6, 25.0, 25.0)])) is None
    worse = where_it_stops(summarize([*alone, *arm(2, 50.0, 50.0)]))
    assert worse is not None
    assert worse.startswith("No number of machines here is faster than one machine without")
    assert where_it_stops(summarize([*alone, *arm(2, None, None)])) is None


@pytest.mark.slow
def test_the_command_prints_writes_and_repeats_itself(tmp_path: Path, capsys: Captured) -> None:
    arguments = [
        "--env=CartPole-v1", "--workers=2", "--seeds=0,1", "--until-reward=30",
        "--uplink=0.5", "--speeds=2", "--jobs=1", "--set=learner.steps_per_update=100", "--json",
    ]  # fmt: skip
    code, out, err = simulate(capsys, *arguments, f"--out={tmp_path}")
    assert code == 0, err
    record = json.loads(out)
    assert [(run["machines"], run["seed"]) for run in record["runs"]] == [
        (0, 0), (0, 1), (2, 0), (2, 1),
    ]  # fmt: skip
    assert all(run["reached"] for run in record["runs"])
    assert "4 of 4 runs" in err
    assert json.loads((tmp_path / "results.json").read_text()) == record
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"results.json", "turns.json", "table.md", "reward.svg", "reward.png"}
    # The turns that it left give the same runs, whatever the package ships by then.
    code, out, err = simulate(capsys, *arguments, f"--turns={tmp_path / 'turns.json'}")
    assert code == 0, err
    assert json.loads(out)["runs"] == record["runs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers=0,1"], "at least 1"),
        (["--workers=2,2"], "given once"),
        (["--seeds=a"], "whole numbers"),
        (["--uplink=2mbyte"], "fraction"),
        (["--uplink=0"], "above 0"),
        (["--loss=1"], "loss"),
        (["--env=NoSuch-v1"], "NoSuch"),
        (["--set=server.rul=delta"], "rul"),
        (["--env=Pendulum-v1"], "--until-reward"),
        (["--until-reward=off"], "--until-reward"),
    ],
)
def test_what_cannot_be_ends_with_2_and_says_what_to_do(
    arguments: list[str], message: str, capsys: Captured
) -> None:
    code, _, err = simulate(capsys, *arguments)
    assert code == 2, err
    assert message in err


def test_the_help_teaches(capsys: Captured) -> None:
    code, out, _ = simulate(capsys, "--help")
    assert code == 0
    assert "olaf simulate training --speeds 2.5 --aggregate round" in out
    assert "--step-limit" in out
