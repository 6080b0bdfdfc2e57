"""The main functions of a job's processes: switch, server and worker.

Many of these processes start at once, so this module imports only what a role needs. An attached
role reads its configuration as checked JSON, without pydantic and without the command line's
helpers.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from olaf.errors.outcome import configuring, failure_of
from olaf.files.keyfile import with_key
from olaf.files.writing import in_one_step
from olaf.processes.lines import Control, Reporter, clock_here
from olaf.processes.serving import POLL_S, pass_on, serve

if TYPE_CHECKING:
    pass


LINGER_S = 60.0
"""Seconds that a finished worker stays in the job unless it is told to stop."""


def run_told(role: str, told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    """Run the role that the first line of stdin describes; `olaf.jobs.training` writes it."""
    if role == "switch":
        run_switch(told["core"], told["every_s"], reporter, control, told.get("admission"))
    elif "tcp" in told and role == "server":
        from olaf.tcp.roles import run_tcp_server

        run_tcp_server(told, reporter, control)
    elif role == "server":
        run_server(
            told["core"],
            told["every_s"],
            reporter,
            control,
            model_file=told["model_file"],
            job=told["job"],
            save_folder=told.get("save_folder"),
        )
    else:
        run_worker(WorkerJob(**told), reporter, control)


def run_switch(
    core: str,
    every_s: float,
    reporter: Reporter,
    control: Control,
    admission: Mapping[str, Any] | None = None,
) -> None:
    """Serve as an aggregation switch until asked to stop. ``core``: JSON for `_olaf.Switch`.

    admission: fields of `olaf.jobs.admission.Policy`, if the switch asks before a cluster joins.
    """
    from olaf._olaf import Switch

    with configuring():
        switch = Switch(core)
    if admission is None:
        serve(switch, every_s, reporter, control)
        return
    from olaf.jobs.admission import Admission, Policy, Program

    policy = Policy.told(admission)
    asks = Program(policy.command, policy.file)
    desk = Admission(policy, switch.decide, asks, lambda: json.loads(switch.stats()))
    serve(switch, every_s, reporter, control, before_stop=desk.stop, desk=desk)


def run_server(
    core: str,
    every_s: float,
    reporter: Reporter,
    control: Control,
    *,
    model_file: str | None = None,
    job: int = 1,
    save_folder: str | None = None,
) -> None:
    """Serve as a parameter server until asked to stop; then write the model to ``model_file``.

    save_folder: folder for models that the parent requests with ``save JOB``.
    """
    from olaf._olaf import Server

    with configuring():
        server = Server(core)

    unsaved: list[OSError] = []

    def save() -> None:
        server.finish()
        if model_file and (model := server.model(job)):
            try:
                save_model(Path(model_file), *model)
            except OSError as error:  # the server reports its counts all the same
                unsaved.append(error)

    def hand_over(job: int) -> None:
        """Write a job's model and report the file.

        Report no file if there is no model yet, or, with the reason, if it could not be written.
        """
        file, why = None, {}
        if save_folder and (model := server.model(job)):
            file = Path(save_folder) / f"model-{job}.npz"
            try:
                save_model(file, *model)
            except OSError as error:
                why, file = {"reason": f"{file}: {error.strerror or error}"}, None
        reporter.say("saved", job=job, file=None if file is None else str(file), **why)

    serve(server, every_s, reporter, control, before_stop=save, hand_over=hand_over)
    if unsaved:
        raise unsaved[0]


def save_model(file: Path, version: int, parameters: Any, **more: Any) -> None:
    """Write a model as .npz in one step, so that a reader never sees half a file."""
    import numpy as np

    with in_one_step(file) as half, half.open("wb") as stream:
        np.savez(stream, version=version, parameters=parameters, **more)


@dataclass(frozen=True)
class WorkerJob:
    """Configuration of a worker's process; JSON-able."""

    switch: str
    job: int
    cluster: int
    id: int | None
    updates: int | None
    seed: int
    flush_timeout_s: float
    client: dict[str, Any] = field(default_factory=dict)
    """Configuration of `_olaf.Client`."""
    loop: dict[str, Any] = field(default_factory=dict)
    """Fields of `olaf.rl.worker_loop.LoopConfig`."""
    learner: dict[str, Any] = field(default_factory=dict)
    """Fields of `olaf.rl.LearnerConfig` except the seed."""
    begins_together: bool = False
    """Wait after the join until the parent says ``begin``, see `olaf.jobs.beginning`."""
    rationed: bool = False
    """Push only as many updates as the parent allows: ``updates N`` of `olaf.processes.lines`."""
    steps_of_run: int | None = None
    """Environment steps of all workers at the start, for the schedule of the learning rate; the
    parent tells of more. None: the worker counts its own."""
    tcp: dict[str, Any] | None = None
    """For TCP: ``timeout_s`` and ``buffer_bytes`` of `olaf.tcp.client.TcpClient`."""


def run_worker(task: WorkerJob, reporter: Reporter, control: Control) -> None:
    """Join the job, then learn and push until done or asked to stop; flush and leave."""
    from olaf.rl import process_environment

    for name, value in process_environment().items():
        os.environ.setdefault(name, value)
    from olaf.jobs.playing import made
    from olaf.rl.learner import LearnerConfig

    def is_over() -> bool:
        return control.stopping or control.finishing

    client = _client_of(task, is_over)
    config = LearnerConfig(**task.learner, seed=task.seed)
    with made(config, reporter, client.worker) as learner:
        if (begun := task.steps_of_run) is not None:
            learner.steps_of_run = lambda: max(begun, control.steps_of_run)
        _work(task, client, learner, reporter, control)


def _work(
    task: WorkerJob,
    client: Any,
    learner: Any,
    reporter: Reporter,
    control: Control,
) -> None:
    from olaf.jobs.faults import end_with_fault, is_users
    from olaf.jobs.playing import Pulse
    from olaf.rl.environments import reward_threshold
    from olaf.rl.learner import layout_of, named_parts
    from olaf.rl.worker_loop import LoopConfig, Progress, work

    environment = learner.config.environment
    reporter.say(
        "ready",
        worker=client.worker,
        cluster=task.cluster,
        address=client.local_address,
        metrics=_page_of(client),
        environment=environment,
        parameters=learner.parameters,
        shapes=[list(part.shape) for part in learner.parts()],
        layout=[[name, list(part.shape)] for name, part in named_parts(learner).items()],
        reward_threshold=reward_threshold(environment),
        pid=os.getpid(),
        clock=clock_here(),
    )

    pulse = Pulse(reporter, control, client.worker, learner)
    learner.watch(pulse)
    news = _News(client)
    unanswered = 0

    def progress(now: Progress) -> None:
        nonlocal unanswered
        pulse.told()
        pass_on(news, reporter)
        if now.unanswered > unanswered:
            unanswered = now.unanswered
            reporter.say(
                "model_missing",
                worker=now.worker,
                model_version=now.model_version,
                seconds=task.loop["wait_for_model_s"],
                address=task.switch,
            )
        reporter.say(
            "update" if now.pushes_at_s else "turn",
            worker=now.worker,
            updates=now.updates,
            steps=now.steps,
            episodes=now.episodes,
            episode_rewards=now.episode_rewards,
            episode_steps=now.episode_steps,
            episode_numbers=now.episode_numbers,
            losses=now.losses,
            reward=now.reward,
            pushes_at_s=now.pushes_at_s,
            model_version=now.model_version,
            seconds_env=now.seconds_env,
            seconds_learn=now.seconds_learn,
            seconds_network=now.seconds_network,
            stats=json.loads(client.stats()),
        )

    class Joined:
        """The client, once it has joined."""

        def join(self, weights: Any, timeout_s: float) -> int:
            version: int = client.join(weights, timeout_s, layout_of(learner))
            reporter.say("joined", worker=client.worker, version=version)
            if task.begins_together:
                _await_the_others(control, timeout_s)
            return version

        push = staticmethod(client.push)
        pull = staticmethod(client.pull)
        wait = staticmethod(client.wait)
        awaits_end = staticmethod(client.awaits_end)
        refresh = staticmethod(client.refresh)
        refreshed = staticmethod(client.refreshed)
        holding = staticmethod(client.holding)

    try:
        work(
            learner,
            Joined(),
            worker=client.worker,
            updates=task.updates,
            stop=lambda: control.stopping or control.finishing,
            on_progress=progress,
            config=LoopConfig(**task.loop),
            ration=_Ration(control) if task.rationed else None,
        )
        flushed = client.flush(task.flush_timeout_s)
        if control.finishing and not control.stopping:
            # Updates may still wait in a switch's queue; the server accepts updates of members
            # only.
            reporter.say("finished", worker=client.worker, stats=json.loads(client.stats()))
            deadline = time.monotonic() + LINGER_S
            while not control.wait(POLL_S) and time.monotonic() < deadline:
                pass
        pass_on(news, reporter)
        stats = json.loads(client.stats())
    except (Exception, SystemExit) as error:
        if failure_of(error) is not None and not is_users(error):  # of the network
            raise
        end_with_fault(reporter, error, worker=client.worker)
    finally:
        client.leave()
    reporter.say(
        "stopped", why=control.why or "done", worker=client.worker, flushed=flushed, stats=stats
    )


def _await_the_others(control: Control, timeout_s: float) -> None:
    """Wait until the parent says ``begin``, or the run ends, or ``timeout_s`` is over."""
    deadline = time.monotonic() + timeout_s
    while not (control.beginning or control.finishing or control.stopping):
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return
        control.wait(min(left_s, POLL_S))


class _Ration:
    """The updates that the parent allows, see `olaf.rl.worker_loop.Ration`."""

    def __init__(self, control: Control) -> None:
        self._control = control

    def updates(self) -> int:
        return self._control.updates_allowed

    def wait(self, timeout_s: float) -> None:
        self._control.wait(timeout_s)


class _News:
    """A worker's events, less the `joined` of the join that the role itself reports."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._is_told = False

    def events(self) -> list[str]:
        events: list[str] = self._client.events()
        if self._is_told:
            return events
        joins = [event for event in events if json.loads(event)["event"] == "joined"]
        if joins:
            self._is_told = True
            events.remove(joins[0])
        return events


def _page_of(client: Any) -> str | None:
    """Where the worker serves its metrics, if it does."""
    address = getattr(client, "metrics_address", None)
    return f"http://{address}" if address else None


def _client_of(task: WorkerJob, stop: Callable[[], bool]) -> Any:
    """The worker's connection: ``_olaf.Client``, or one that is used alike, over TCP."""
    if task.tcp is not None:
        from olaf.tcp.client import TcpClient

        return TcpClient(
            task.switch,
            cluster=task.cluster,
            worker=task.id,
            flush_s=task.flush_timeout_s,
            stop=stop,
            **task.tcp,
        )
    from olaf._olaf import Client

    with configuring():
        return Client(
            task.switch,
            job=task.job,
            cluster=task.cluster,
            worker=task.id,
            config=json.dumps(with_key(task.client)),
        )
