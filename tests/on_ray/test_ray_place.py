"""Jobs as actors of a local Ray cluster: really learnt, really killed, honestly accounted."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from olaf.errors.outcome import Exit
from olaf.jobs.places import ray_place
from olaf.jobs.places.ray_place import RayPlace
from olaf.jobs.progress import Happening, Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.result import conclude
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Occurrence, Started
from olaf.jobs.training import Outcome, Training
from olaf.processes.lines import Control

pytestmark = [pytest.mark.ray, pytest.mark.timeout(600)]


def settings_for(folder: Path, *overrides: str) -> Settings:
    return read_settings(
        overrides=[
            f"train.out='{folder}'",
            "train.on=ray",
            "train.workers=2",
            "train.every_s=0.2",
            "train.restart_delay_s=0.05",
            "train.start_timeout_s=240",
            "learner.environment=CartPole-v1",
            *overrides,
        ]
    )


class Watched(RayPlace):
    """Remembers where each process started."""

    def __init__(self, settings: Settings) -> None:
        self.started: list[Started] = []
        super().__init__(settings)

    def poll(self, timeout_s: float) -> list[Occurrence]:
        occurrences = super().poll(timeout_s)
        self.started += [n for n in occurrences if isinstance(n, Started)]
        return occurrences

    def pid(self, name: str) -> int:
        return [n.pid for n in self.started if n.name == name][-1]


class Watcher:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.act: Callable[[Progress], None] = lambda progress: None

    def happened(self, happening: Happening) -> None:
        self.lines.append(happening.text)

    def stands(self, progress: Progress, phase: str) -> None:
        self.act(progress)


def trained(place: RayPlace, settings: Settings, watcher: Watcher) -> Outcome:
    outcome = Training(settings, watcher, Control(), place=place).run()
    print(*watcher.lines, sep="\n")
    return outcome


class Nodes:
    """Two nodes on this machine; the driver is on the first, which could take all actors."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        first = {"num_cpus": 8, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=first)
        self._second = self._cluster.add_node(num_cpus=8)
        ray.init(address=self._cluster.address, log_to_driver=False, logging_level="error")
        self._cluster.wait_for_nodes()

    def kill_second(self) -> None:
        self._cluster.remove_node(self._second, allow_graceful=False)

    def close(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Nodes]:
    made = Nodes()
    yield made
    made.close()


def nodes_of(place: RayPlace) -> dict[str, str]:
    return {name: actor.where.node for name, actor in place._actors.items() if actor.where}


def test_a_killed_worker_and_a_killed_server_come_back_and_the_job_learns(
    cluster: Nodes, tmp_path: Path
) -> None:
    # So slow a reward window that there is time to die in.
    settings = settings_for(
        tmp_path, "train.until_reward=200", "train.updates=off", "train.reward_window=300"
    )
    place, watcher = Watched(settings), Watcher()
    killed: list[str] = []

    def kill(progress: Progress) -> None:
        served = progress.served
        if progress.updates >= 5 and not killed:
            killed.append("worker 1")
            os.kill(place.pid("worker 1"), signal.SIGKILL)
        elif progress.updates >= 15 and killed == ["worker 1"] and served:
            killed.append("server")
            os.kill(place.pid("server"), signal.SIGKILL)

    watcher.act = kill
    outcome = trained(place, settings, watcher)
    assert killed == ["worker 1", "server"]
    assert (outcome.kind, outcome.code) == ("reached", Exit.OK)
    assert outcome.restarts == {"worker 1": 1, "server": 1}
    for name in killed:
        first = next(n for n in place.started if n.name == name)
        died = f"{name} died: its actor (process {first.pid} on {first.machine}) is gone; "
        assert any(line.startswith(died) for line in watcher.lines)
        assert any(line.startswith(f"{name} is started again (#2, ") for line in watcher.lines)
    fates = conclude(outcome)["fates"]
    assert fates["matches"], fates
    named = [row["fate"] for row in fates["rows"]] + [fates["note"]]
    for name in killed:
        assert any(f"{name} #1" in text for text in named), named
    # Roles of a cluster listen beyond this machine: the run made a key, and every process used it.
    for (name, number), incarnation in outcome.progress.reports.items():
        assert incarnation.stats["keys"]["opened"] > 0, (name, number)
    # Nobody was told another address: both came back where they had been looked for.
    assert not any("is now at" in line for line in watcher.lines)
    assert outcome.model_file.is_file()


def test_what_the_cluster_does_not_have_is_said_and_waited_for_to_the_deadline(
    cluster: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_place, "HOMELESS_S", 8.0)
    settings = settings_for(
        tmp_path,
        "ray.gpus_per_worker=1",
        "train.start_timeout_s=12",
        "worker.join_timeout_s=0.5",
        "train.stop_timeout_s=0.5",
    )
    watcher = Watcher()
    outcome = trained(RayPlace(settings), settings, watcher)
    assert (outcome.kind, outcome.code) == ("failed", Exit.UNREACHABLE)
    assert any(
        "worker 0: has waited 8 s for Ray to start it: it asks for 1 CPU and 1 GPU" in line
        and "0 of 0 GPU are free" in line
        for line in watcher.lines
    )


def test_workers_spread_over_nodes_and_a_node_that_dies_takes_nobody_with_it(
    cluster: Nodes, tmp_path: Path
) -> None:
    import ray

    settings = settings_for(
        tmp_path, "train.until_reward=off", "train.updates=off", "train.workers=4"
    )
    place, watcher, control = Watched(settings), Watcher(), Control()
    seen: list[dict[str, str]] = []
    again: set[str] = set()
    here = ray.get_runtime_context().get_node_id()

    def act(progress: Progress) -> None:
        joined = {name for name, _ in progress.updates_of}
        if len(joined) == 4 and not seen:
            seen.append(nodes_of(place))
            cluster.kill_second()
        back = {
            name
            for (name, number), told in progress.updates_of.items()
            if number > 1 and told["updates"] > 2
        }
        again.update(back)
        if seen and again >= {n for n, at in seen[0].items() if at != here}:
            control.stop("a test")

    watcher.act = act
    outcome = Training(settings, watcher, control, place=place).run()
    print(*watcher.lines, sep="\n")
    (places,) = seen
    assert places["server"] == places["switch"] == here
    there = {name for name, at in places.items() if at != here}
    assert len(there) == 2
    assert there < {f"worker {n}" for n in range(4)}
    assert set(outcome.restarts) == there == again
    assert outcome.code == Exit.INTERRUPTED
    assert conclude(outcome)["fates"]["matches"]


def olaf(folder: Path, *words: str) -> "subprocess.Popen[str]":
    """The command in a folder and a process group of its own, as a shell starts it."""
    return subprocess.Popen(
        [sys.executable, "-m", "olaf", "train", "--on", "ray", "--workers", "2", *words],
        text=True,
        stdout=subprocess.PIPE,
        cwd=folder,
        process_group=0,
    )


def test_the_command_starts_a_cluster_of_its_own_and_learns(tmp_path: Path) -> None:
    words = ["--env", "CartPole-v1", "--until-reward", "200", "--out", "here", "--json"]
    with olaf(tmp_path, *words) as process:
        said, _ = process.communicate(timeout=500)
    assert process.returncode == 0
    result = json.loads(said.splitlines()[-1])
    assert result["reward"]["mean"] >= 200
    assert result["fates"]["matches"]
    for file in ("run.json", "report.html", "model.npz"):
        assert (tmp_path / "here" / file).is_file(), file
    assert actors_in(tmp_path) == set()


def test_ctrl_c_ends_all_actors_and_reports(tmp_path: Path) -> None:
    words = ["--env", "CartPole-v1", "--until-reward", "off", "--updates", "off", "--out", "here"]
    with olaf(tmp_path, *words) as process:
        assert process.stdout is not None
        before: list[str] = []
        for line in process.stdout:
            before.append(line)
            if line.split()[-1:] == ["training"]:
                break
        assert len(actors_in(tmp_path)) == 4, "".join(before)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        said = process.stdout.read()
        assert process.wait(timeout=300) == Exit.INTERRUPTED
    assert "interrupted: stopped by SIGINT" in said
    assert "the sums match" in said
    deadline = time.monotonic() + 60
    while actors_in(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert actors_in(tmp_path) == set()


def actors_in(folder: Path) -> set[int]:
    """Processes of roles that Ray runs for a driver in this folder."""
    found = set()
    for process in Path("/proc").iterdir():
        try:
            is_role = b"ray::RoleActor" in (process / "cmdline").read_bytes()
            if is_role and (process / "cwd").resolve() == folder.resolve():
                found.add(int(process.name))
        except OSError:
            continue
    return found
