"""The run of a job with stand-ins for its roles: real processes, real deaths, honest counters."""

import json
import os
import signal
from pathlib import Path

import pytest
from cli_doubles import Watcher, fake_command
from ports import taken_port

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.progress import Happening, Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.result import conclude, write_run
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Supervisor
from olaf.jobs.training import Outcome, Training
from olaf.processes.lines import Control


def settings_for(tmp_path: Path, *overrides: str) -> Settings:
    return read_settings(
        overrides=[
            f"train.out='{tmp_path}'",
            "train.workers=3",
            "train.clusters=2",
            "train.every_s=0.05",
            "train.restart_delay_s=0.05",
            *overrides,
        ]
    )


def run(
    settings: Settings, watcher: Watcher | None = None, control: Control | None = None
) -> tuple[Outcome, Watcher]:
    watcher = watcher or Watcher()
    training = Training(settings, watcher, control or Control(), fake_command)
    return training.run(), watcher


def test_a_run_goes_through_its_phases_and_its_sums_match(tmp_path: Path) -> None:
    outcome, watcher = run(settings_for(tmp_path, "train.updates=200", "train.until_reward=off"))
    assert (outcome.kind, outcome.code) == ("updates", Exit.OK)
    expected = ["starting", "workers starting", "training", "workers stopping", "queue draining"]
    assert outcome.progress.finished == {"worker 0", "worker 1", "worker 2"}
    assert [p for p in watcher.phases if p in expected] == expected
    result = conclude(outcome)
    assert result["fates"]["matches"], result["fates"]
    assert result["fates"]["pushed"] == result["updates"] >= 200
    assert result["loss"] == pytest.approx(0.1, abs=0.05)  # the stand-in drops each tenth
    assert len(result["age_of_model"]["clusters"]) == 2
    assert result["restarts"] == {}


def test_the_reward_that_was_asked_for_ends_the_run(tmp_path: Path) -> None:
    outcome, _ = run(settings_for(tmp_path, "train.until_reward=-150", "train.reward_window=10"))
    assert (outcome.kind, outcome.code) == ("reached", Exit.OK)
    assert (outcome.progress.reward or -999) >= -150


def test_solved_takes_the_environments_own_threshold(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, "train.reward_window=5")
    training = Training(settings, Watcher(), Control(), fake_command)
    outcome = training.run()
    assert training.goal == 200.0
    assert outcome.kind == "reached"


def test_a_reward_asked_for_and_not_reached_is_a_failed_run(tmp_path: Path) -> None:
    outcome, _ = run(settings_for(tmp_path, "train.until_reward=1e9", "train.updates=50"))
    assert (outcome.kind, outcome.code) == ("updates", Exit.FAILED)
    assert "without reaching mean reward 1e+09" in outcome.reason


def test_a_run_ends_with_its_budget_of_environment_steps(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, "train.steps=9000", "train.until_reward=off")
    outcome, _ = run(settings)
    assert (outcome.kind, outcome.code) == ("steps", Exit.OK)
    assert outcome.reason.endswith("environment steps taken")
    # The stand-ins say a step of theirs after every 100 steps, and end with the one at hand.
    assert 9000 <= outcome.progress.steps <= 9000 + 100 * 3 * 3


@pytest.mark.parametrize("name", ["worker 1", "switch", "server"])
def test_a_killed_process_is_named_comes_back_and_the_run_goes_on(
    tmp_path: Path, name: str
) -> None:
    killed_at: list[int] = []

    def kill_once(progress: Progress, phase: str) -> None:
        if progress.updates >= 60 and not killed_at:
            killed_at.append(progress.updates)
            training.kill(name)

    watcher = Watcher(kill_once)
    settings = settings_for(tmp_path, "train.updates=300", "train.until_reward=off")
    training = Training(settings, watcher, Control(), fake_command)
    outcome = training.run()
    assert outcome.code == Exit.OK
    assert outcome.restarts == {name: 1}
    assert any(line.startswith(f"{name} died: killed by SIGKILL") for line in watcher.lines)
    assert any(line.startswith(f"{name} is started again (#2") for line in watcher.lines)
    result = conclude(outcome)
    fates = result["fates"]
    assert fates["matches"], fates
    named = [row["fate"] for row in fates["rows"]] + [fates["note"]]
    assert any(f"{name} #1" in text for text in named)


class Machines(Supervisor):
    """Two machines: a killed worker comes back on the other machine."""

    def host(self, name: str) -> str:
        return "127.0.0.2" if self.restarts().get(name) else "127.0.0.1"


@pytest.mark.parametrize("leaves", [0, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["switch", "server"])
def test_who_comes_back_on_another_machine_is_followed_there(
    tmp_path: Path, name: str, leaves: int
) -> None:
    moved_at: list[int] = []

    def kill_once(progress: Progress, phase: str) -> None:
        if progress.updates >= 60 and not moved_at:
            moved_at.append(progress.updates)
            training.kill(name)

    settings = settings_for(
        tmp_path,
        f"train.leaves={leaves}",
        "train.updates=300",
        "train.until_reward=off",
        "train.drain_timeout_s=2",
    )
    watcher, place = Watcher(kill_once), Machines(restart_delay_s=0.05)
    training = Training(settings, watcher, Control(), fake_command, place=place)
    outcome = training.run()
    assert outcome.code == Exit.OK
    assert outcome.progress.addresses[name].startswith("127.0.0.2:")
    workers = {f"worker {n}" for n in range(3)}
    leaf_names = {f"leaf {n}" for n in range(leaves)}
    below = {"switch"} if name == "server" else (leaf_names or workers)
    followed = {*below, name}
    assert followed <= set(outcome.restarts)
    port = outcome.progress.addresses[name].rpartition(":")[2]
    said = (
        f"{name} is now at 127.0.0.2:{port}, no longer at 127.0.0.1:{port}; those below it follow"
    )
    assert said in watcher.lines
    served = outcome.progress.served
    assert served is not None
    assert served["received"] > 0


@pytest.mark.parametrize("name", [None, "leaf 1", "switch"])
def test_a_run_through_leaves_deals_the_clusters_to_them_and_keeps_its_accounts(
    tmp_path: Path, name: str | None
) -> None:
    killed_at: list[int] = []

    def kill_once(progress: Progress, phase: str) -> None:
        if name and progress.updates >= 60 and not killed_at:
            killed_at.append(progress.updates)
            training.kill(name)

    settings = settings_for(
        tmp_path,
        "train.workers=6",
        "train.clusters=3",
        "train.leaves=2",
        "train.updates=300",
        "train.until_reward=off",
        "train.drain_timeout_s=2",
    )
    training = Training(settings, Watcher(kill_once), Control(), fake_command)
    outcome = training.run()
    assert outcome.code == Exit.OK
    assert outcome.restarts == ({name: 1} if name else {})
    result = conclude(outcome)
    assert result["fates"]["matches"], result["fates"]
    switches = {switch["name"]: switch for switch in result["switches"]}
    assert list(switches) == ["leaf 0", "leaf 1", "switch"]
    # Cluster 1 alone is at leaf 1; 0 and 2 are at leaf 0.
    if name is None:
        assert 1.5 < switches["leaf 0"]["received"] / switches["leaf 1"]["received"] < 2.5
        assert switches["switch"]["received"] == sum(
            switches[leaf]["sent_alone"] for leaf in ("leaf 0", "leaf 1")
        )
        # The stand-ins drop each tenth, once at a leaf and once at the switch.
        assert result["loss"] == pytest.approx(0.19, abs=0.05)


def test_more_leaves_than_clusters_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="a leaf needs a cluster"):
        settings_for(tmp_path, "train.leaves=3")


def test_a_port_in_use_ends_the_run_with_its_own_code(tmp_path: Path) -> None:

    with taken_port() as port:
        settings = settings_for(tmp_path, f"switch.listen='127.0.0.1:{port}'")
        with pytest.raises(RunError, match=f"switch could not start: .*{port}") as error:
            run(settings)
    assert error.value.code == Exit.PORT_IN_USE


def test_an_unknown_environment_ends_the_run_at_once(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="unknown environment 'Nowhere-v0'") as error:
        run(settings_for(tmp_path, "learner.environment='Nowhere-v0'"))
    assert error.value.code == Exit.USAGE


@pytest.mark.slow
def test_silent_workers_are_named_at_the_deadline(tmp_path: Path) -> None:
    def command(role: str) -> list[str]:
        quiet = "import sys; [0 for _ in sys.stdin]"
        return [*fake_command(role)[:1], "-c", quiet] if role == "worker" else fake_command(role)

    settings = settings_for(
        tmp_path,
        "train.start_timeout_s=1",
        "train.stop_timeout_s=0.1",
        "worker.join_timeout_s=0.5",
        "worker.flush_timeout_s=0",
    )
    outcome = Training(settings, Watcher(), Control(), command).run()
    assert (outcome.kind, outcome.code) == ("failed", Exit.UNREACHABLE)
    assert "for the first step of worker 0, worker 1, worker 2" in outcome.reason


def test_a_role_that_never_listens_is_named_at_the_deadline(tmp_path: Path) -> None:
    def command(role: str) -> list[str]:
        return [*fake_command(role)[:1], "-c", "import sys; [0 for _ in sys.stdin]"]

    settings = settings_for(tmp_path, "train.start_timeout_s=0.3")
    with pytest.raises(RunError, match=r"the server did not listen within 0\.3 s") as error:
        Training(settings, Watcher(), Control(), command).run()
    assert error.value.code == Exit.UNREACHABLE


def test_an_interrupt_still_drains_and_reports(tmp_path: Path) -> None:
    control = Control()

    def interrupt(progress: Progress, phase: str) -> None:
        if progress.updates >= 30:
            control.stop("SIGINT")

    outcome, _ = run(settings_for(tmp_path), Watcher(interrupt), control)
    assert (outcome.kind, outcome.code) == ("interrupted", Exit.INTERRUPTED)
    assert conclude(outcome)["fates"]["matches"]


def test_workers_that_are_done_end_the_run(tmp_path: Path) -> None:
    outcome, _ = run(settings_for(tmp_path, "worker.updates=20", "train.until_reward=off"))
    assert (outcome.kind, outcome.code) == ("done", Exit.OK)
    assert outcome.progress.updates == 60
    assert conclude(outcome)["fates"]["matches"]


def test_workers_that_somebody_stops_have_not_done_their_updates(tmp_path: Path) -> None:
    """As a cluster does that takes its nodes back."""
    place = Supervisor(restart_delay_s=0.05)

    def stop_them(progress: Progress, phase: str) -> None:
        if progress.updates >= 30:
            for name, child in place._children.items():
                if name.startswith("worker") and child.process:
                    os.kill(child.process.pid, signal.SIGTERM)

    settings = settings_for(tmp_path, "train.until_reward=off")
    outcome = Training(settings, Watcher(stop_them), Control(), fake_command, place=place).run()
    assert (outcome.kind, outcome.code) == ("interrupted", Exit.INTERRUPTED)
    assert outcome.reason == "the workers were stopped by SIGTERM"
    assert conclude(outcome)["fates"]["matches"]


def test_a_server_that_somebody_stops_ends_the_run(tmp_path: Path) -> None:
    place = Supervisor(restart_delay_s=0.05)
    told: list[bool] = []

    def stop_it(progress: Progress, phase: str) -> None:
        process = place._children["server"].process
        if progress.updates >= 30 and process and not told:
            told.append(True)
            os.kill(process.pid, signal.SIGTERM)

    settings = settings_for(tmp_path, "train.until_reward=off")
    outcome = Training(settings, Watcher(stop_it), Control(), fake_command, place=place).run()
    assert (outcome.kind, outcome.code) == ("interrupted", Exit.INTERRUPTED)
    assert outcome.reason == "the server was stopped by SIGTERM"


def test_nothing_is_left_running(tmp_path: Path) -> None:
    pids: list[int] = []

    def note(progress: Progress, phase: str) -> None:
        if phase == "training" and not pids:
            pids.extend(child.process.pid for child in place._children.values() if child.process)

    place = Supervisor()
    settings = settings_for(tmp_path, "train.updates=50")
    Training(settings, Watcher(note), Control(), fake_command, place=place).run()
    assert len(pids) == 5
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def test_the_record_holds_settings_result_curves_and_reports(tmp_path: Path) -> None:
    outcome, _ = run(settings_for(tmp_path, "train.updates=100", "train.until_reward=off"))
    write_run(tmp_path, outcome, conclude(outcome))
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["settings"]["train"]["workers"] == 3
    assert record["result"]["fates"]["matches"]
    assert record["history"][-1]["updates"] == record["result"]["updates"]
    assert len(record["episodes"]) == record["result"]["reward"]["episodes"]
    assert {r["process"] for r in record["reports"]} >= {"switch", "server", "worker 0"}


def test_what_all_workers_say_is_shown_once_and_kept_for_each(tmp_path: Path) -> None:
    lines: list[tuple[str, bool]] = []

    class Listener(Watcher):
        def happened(self, happening: Happening) -> None:
            lines.append((happening.who, happening.echo))

    def command(role: str) -> list[str]:
        if role != "worker":
            return fake_command(role)
        moan = "import sys; sys.stderr.write('olaf: no such thing\\n'); sys.exit(3)"
        return [*fake_command(role)[:1], "-c", moan]

    settings = settings_for(tmp_path, "train.restarts=0")
    outcome = Training(settings, Listener(), Control(), command).run()
    assert outcome.kind == "failed"
    assert "no worker is left: olaf: no such thing" in outcome.reason
    said = [echo for who, echo in lines if who.startswith("worker")]
    assert said.count(False) == 4  # one moan, and three deaths
    assert said.count(True) == 2
