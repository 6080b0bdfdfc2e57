"""A whole training run: server, switches, workers, and their end. A `Place` runs the processes.

Every wait has a deadline, and its error names the process. Workers stop first and flush; then the
queue drains; then switch and server report their final counters, which settle the accounts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.beginning import Beginning
from olaf.jobs.evaluating import EVALUATOR, Evaluating
from olaf.jobs.hearing import Hearing
from olaf.jobs.limits import Limits
from olaf.jobs.places import Place
from olaf.jobs.progress import Earlier, Happening, Progress
from olaf.jobs.rations import Rations
from olaf.jobs.roles import WorkerJob
from olaf.jobs.run_keys import run_keys
from olaf.jobs.server_settings import ServerSettings
from olaf.jobs.settings import LeafSettings, Settings, SwitchSettings
from olaf.jobs.supervisor import HERE, Ended, Occurrence, Program, Said, Supervisor
from olaf.jobs.tcp_told import relay_told, server_told, worker_told
from olaf.processes.lines import PROGRESS, Control
from olaf.processes.loopback import LOOPBACK
from olaf.rl import process_environment

AGES_S = 1.0
"""Time limit for the final reading of the ages, in seconds."""

CHECKPOINT = "checkpoint.npz"
"""Name of the server's checkpoint in the run's folder, see `olaf.files.modelfile`."""

CHECKPOINT_EVERY_MS = 10_000
"""Default interval in milliseconds between the server's checkpoints in a run."""

LAST_EVALUATION = "evaluating the last model"
"""Phase of a run after its processes have stopped."""

LOOK_S = 0.1
"""Longest pause in seconds between two checks for the end of the run."""


class Observer(Protocol):
    """Watches a run: a display, a log, a test."""

    def happened(self, happening: Happening) -> None:
        """Take an event that deserves a line."""

    def stands(self, progress: Progress, phase: str) -> None:
        """Take the state of the run; called several times a second."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended. ``kind``: reached, updates, steps, time, done, stopped, interrupted, failed.

    stopped: a function that `olaf.train` calls said so.
    """

    kind: str
    reason: str
    code: Exit
    ended_s: float
    reward: float | None
    """Mean reward of the last episodes at that moment; more episodes end while workers stop."""
    progress: Progress
    restarts: dict[str, int]
    model_file: Path
    cpu_s: float | None = None
    """CPU seconds of all processes of this session, or None if unknown."""


Command = Callable[[str], Sequence[str]]
"""Returns the argv of a role's process."""


def olaf_command(role: str) -> Sequence[str]:
    """Start a role with this Python and this package."""
    if role == "relay":
        return [sys.executable, "-m", "olaf.tcp"]
    if role == EVALUATOR:
        return [sys.executable, "-m", "olaf.runs.evaluator"]
    return [sys.executable, "-m", "olaf", role, "--json", "--attached"]


class Training:
    """One run from launch to the settled accounts."""

    def __init__(
        self,
        settings: Settings,
        observer: Observer,
        control: Control,
        command: Command = olaf_command,
        clock: Callable[[], float] = time.monotonic,
        *,
        place: Place | None = None,
        earlier: Earlier | None = None,
    ) -> None:
        """Prepare a run; ``earlier`` holds the earlier sessions of a resumed run."""
        if settings.switch.engines != ["queue"]:
            raise RunError(
                f"`switch.engines` = {settings.switch.engines}: a training run has a switch with "
                "the engine queue alone; start another switch with `olaf switch --engines reduce`",
                Exit.USAGE,
            )
        self._settings = settings
        self._train = settings.train
        self._observer = observer
        self._control = control
        self._command = command
        self._clock = clock
        earlier = earlier or Earlier()
        self._begin = clock() - earlier.at_s
        self._session = len(earlier.sessions)
        self.progress = Progress(settings, earlier)
        self._limits = Limits(self.progress, control)
        self._hearing = Hearing(
            self.progress, observer, self._now, self._train, settings.worker.join_timeout_s
        )
        limit = self._train.updates
        left = None if limit is None else limit - earlier.updates
        self._rations = Rations(left, self._train.workers)
        self.model_file = settings.train.folder / "model.npz"
        self._place: Place = place or Supervisor(
            restarts=settings.train.restarts,
            restart_delay_s=settings.train.restart_delay_s,
        )
        self._is_tcp = settings.train.transport == "tcp"
        self._keys = run_keys(settings)
        self._homes: dict[str, str] = {}
        """The address of each switch and the server, as others reach it."""
        workers = [f"worker {number}" for number in range(settings.train.workers)]
        self._beginning = Beginning(workers, self._place.tell)
        self._evaluating = Evaluating(
            self.progress,
            ask_for_model=lambda: self._place.tell("server", f"save {settings.worker.job}"),
            bring=lambda file: self._place.bring("server", [file]),
            say=observer.happened,
            command=command,
            learner=worker_job(settings, switch="", worker=None, cluster=0, seed=0).learner,
            clock=clock,
        )
        self._phase = "starting"
        self._next_sample_s = 0.0

    def run(self) -> Outcome:
        """Run to the end. Raises RunError if the run could not start."""
        with self._place, contextlib.closing(self._evaluating):
            for name in ("server", *self._between):
                self._listening(name)
            self._phase = "workers starting"
            for worker in range(self._train.workers):
                self._place.start(self._worker_program(worker))
            kind, reason, code = self._watch()
            ended_s, reward = self._now(), self.progress.reward_so_far
            self._take_ages()
            self._finish()
            if kind not in ("failed", "interrupted"):
                self._evaluate_last()
            self._hearing.end()
            return Outcome(
                kind,
                reason,
                code,
                ended_s,
                reward,
                self.progress,
                self._place.restarts(),
                self.model_file,
                self._place.cpu_s(),
            )

    def kill(self, name: str) -> None:
        """Kill one of the processes, as a test or a demonstration of its return."""
        self._place.kill(name)

    # Starting.

    def _listening(self, name: str) -> None:
        """Start a switch or the server, and wait until it listens."""
        self._place.start(self._program_of(name))
        deadline = self._clock() + self._train.start_timeout_s
        while name not in self.progress.addresses:
            for occurrence in self._turn():
                if isinstance(occurrence, Ended) and occurrence.name == name:
                    self._cannot_start(occurrence)
            if self._control.stopping:
                raise RunError("interrupted while starting", Exit.INTERRUPTED)
            if self._clock() > deadline:
                raise RunError(
                    f"the {name} did not listen within {self._train.start_timeout_s:g} s",
                    Exit.UNREACHABLE,
                )
        # If it dies, it must come back at the same address.
        self._homes[name] = self._found_at(name)
        self._place.change(self._program_of(name))

    def _found_at(self, name: str) -> str:
        """The address as others reach it: a wildcard becomes the address of its machine."""
        host, _, port = self.progress.addresses[name].rpartition(":")
        return f"{self._place.host(name) if host in ('0.0.0.0', '[::]') else host}:{port}"

    def _listen(self, name: str, section: ServerSettings | LeafSettings) -> str:
        """The address to listen on: the configured one, the previous one, or a free port."""
        if "listen" in section.model_fields_set:
            listen = str(section.model_dump()["listen"])
            host, _, port = listen.rpartition(":")
            # Loopback, the default of `olaf config`, cannot be reached from another machine.
            if self._train.on == "local" or host not in LOOPBACK:
                return listen
        else:
            _, _, port = self._homes.get(name, ":0").rpartition(":")
        return f"{HERE}:{port}"

    def _program_of(self, name: str) -> Program:
        if name == "server":
            return self._server_program()
        if name == "switch":
            return self._switch_program()
        if name == "relay":
            return self._relay_program()
        if name in self._leaves:
            return self._leaf_program(name)
        return self._worker_program(int(name.removeprefix("worker ")))

    def _cannot_start(self, occurrence: Ended) -> None:
        hopeless = occurrence.code in (Exit.USAGE, Exit.PORT_IN_USE) or occurrence.back_in_s is None
        if hopeless:
            said = self.progress.complaints.get(occurrence.name, occurrence.how)
            code = Exit(occurrence.code) if occurrence.code in list(Exit) else Exit.FAILED
            raise RunError(f"the {occurrence.name} could not start: {said}", code)

    def _server_program(self) -> Program:
        server = self._settings.server
        changes: dict[str, Any] = {
            "listen": self._listen("server", server),
            # --fresh applies once: a server that died continues where it was.
            "fresh": server.fresh and "server" not in self._homes,
        }
        if "checkpoint" not in server.model_fields_set:
            changes["checkpoint"] = str(self._train.folder / CHECKPOINT)
        if "forget_jobs_after_ms" not in server.model_fields_set:
            # The server is the run's own, and ends with it.
            changes["forget_jobs_after_ms"] = None
        if "checkpoint_every_ms" not in server.model_fields_set:
            changes["checkpoint_every_ms"] = CHECKPOINT_EVERY_MS
        if self._is_tcp:
            told = server_told(self._settings, server.model_copy(update=changes))
            files = {
                "model_file": str(self.model_file),
                "save_folder": str(self._evaluating.folder),
            }
            return self._program("server", {**told, **files})
        return self._program(
            "server",
            {
                "core": self._keys.core("server", server.model_copy(update=changes).to_core()),
                "every_s": self._train.every_s,
                "model_file": str(self.model_file),
                "job": self._settings.worker.job,
                "save_folder": str(self._evaluating.folder),
            },
            [self._train.folder / CHECKPOINT],
        )

    def _switch_program(self) -> Program:
        switch = self._settings.switch
        changes = {"listen": self._listen("switch", switch), "upstream": self._homes["server"]}
        return self._program("switch", self._told_to(switch.model_copy(update=changes)))

    def _relay_program(self) -> Program:
        listen = self._listen("relay", self._settings.switch)
        return self._program("relay", relay_told(self._settings, listen, self._homes["server"]))

    def _told_to(self, switch: SwitchSettings) -> dict[str, Any]:
        return {
            "core": self._keys.core("switch", switch.to_core()),
            "every_s": self._train.every_s,
            "admission": switch.to_admission(),
        }

    @property
    def _between(self) -> list[str]:
        """The switches between the server and the workers, from the server on."""
        return ["relay"] if self._is_tcp else ["switch", *self._leaves]

    @property
    def _leaves(self) -> list[str]:
        return [f"leaf {number}" for number in range(self._train.leaves)]

    def _leaf_program(self, name: str) -> Program:
        leaf = self._settings.leaf
        at = leaf.at(self._listen(name, leaf), self._homes["switch"])
        return self._program(name, self._told_to(at))

    def _worker_program(self, worker: int) -> Program:
        task = worker_job(
            self._settings,
            switch=self._homes[self._home_of(worker)],
            worker=worker,
            cluster=worker % self._train.clusters,
            seed=session_seed(self._train.seed, self._session),
        )
        told = dataclasses.asdict(task) | {
            "client": self._keys.client(task.client),
            "rationed": self._rations.are_limited,
            "begins_together": self._settings.server.aggregate == "round",
            "steps_of_run": self.progress.steps,
        }
        return self._program(f"worker {worker}", told)

    def _home_of(self, worker: int) -> str:
        """The switch or leaf that a worker joins through."""
        homes = self._leaves or self._between
        return homes[worker % self._train.clusters % len(homes)]

    def _program(self, name: str, told: dict[str, Any], files: Sequence[Path] = ()) -> Program:
        role = name.split(maxsplit=1)[0]
        command = self._command("switch" if role == "leaf" else role)
        # Only a worker runs the user's code, which may end its process at any moment.
        last = "stopped" if role == "worker" else None
        return Program(name, command, json.dumps(told), process_environment(), files, last)

    # Running.

    def _watch(self) -> tuple[str, str, Exit]:
        """Run until there is a reason to stop: (kind, sentence, exit code)."""
        while True:
            for occurrence in self._turn():
                if isinstance(occurrence, Ended) and (verdict := self._gone(occurrence)):
                    return verdict
            if self.progress.last_update_s is not None:
                self._phase = "training"
            for name in self._hearing.silent(self._rations.holders()):
                self._place.kill(name)  # what is left of its ration returns to the others
            if self._hearing.fault is not None:
                return "failed", self._hearing.fault, Exit.FAILED
            if verdict := self._limits.enough(self._now()) or self._too_quiet():
                return verdict

    def _too_quiet(self) -> tuple[str, str, Exit] | None:
        workers = [name for name in self._place.alive() if name.startswith("worker")]
        if not workers:
            return self._all_workers_gone()
        quiet = self._hearing.too_quiet(workers)
        return None if quiet is None else ("failed", quiet, Exit.UNREACHABLE)

    @property
    def goal(self) -> float | None:
        """The mean reward to stop at, once it is known."""
        return self._limits.goal

    def _gone(self, occurrence: Ended) -> tuple[str, str, Exit] | None:
        """The consequence for the run of a process that will not restart."""
        if occurrence.back_in_s is not None:
            return None
        if occurrence.expected:
            return self._stopped(occurrence.name)
        said = self.progress.complaints.get(occurrence.name, occurrence.how)
        code = Exit(occurrence.code) if occurrence.code in list(Exit) else Exit.FAILED
        if occurrence.code == Exit.USAGE:
            raise RunError(said.removeprefix("olaf: "), Exit.USAGE)
        if not occurrence.name.startswith("worker"):
            return "failed", f"the {occurrence.name} died too often: {said}", code
        return None

    def _stopped(self, name: str) -> tuple[str, str, Exit] | None:
        """The consequence of a process that has ended in order before the run asked it to."""
        if name.startswith("worker"):
            return None
        why = self.progress.stopped.get(name, "")
        if why.startswith("SIG"):
            return "interrupted", f"the {name} was stopped by {why}", Exit.INTERRUPTED
        return "failed", f"the {name} has ended", Exit.FAILED

    def _all_workers_gone(self) -> tuple[str, str, Exit]:
        signals = {w for n, w in self.progress.stopped.items() if n.startswith("worker")}
        if signal := next((why for why in sorted(signals) if why.startswith("SIG")), None):
            return "interrupted", f"the workers were stopped by {signal}", Exit.INTERRUPTED
        if self.progress.session_updates and not any(
            name.startswith("worker") and not one.final
            for (name, _), one in self.progress.reports.items()
        ):
            return self._limits.ran_out("done", "every worker has done its updates")
        complaints = [t for who, t in self.progress.complaints.items() if who.startswith("worker")]
        said = complaints[-1] if complaints else "see the log"
        return "failed", f"no worker is left: {said}", Exit.FAILED

    def _turn(self, timeout_s: float = LOOK_S) -> list[Occurrence]:
        occurrences = self._place.poll(timeout_s)
        self._take(occurrences)
        return occurrences

    def _take(self, occurrences: Iterable[Occurrence]) -> None:
        for occurrence in occurrences:
            self._beginning.take(occurrence)
            self._rations.take(occurrence)
            self._evaluating.take(occurrence)
            self._hearing.take(occurrence)
            if isinstance(occurrence, Said) and occurrence.message["event"] == "listening":
                self._tell_of_a_move(occurrence.name)
            self._tell_of_steps(occurrence)
        self._evaluating.turn()
        for name, updates in self._rations.due().items():
            self._place.tell(name, f"updates {updates}")
        now = self._now()
        if now >= self._next_sample_s:
            self._next_sample_s = now + self._train.every_s
            self.progress.sample(now)
        self._observer.stands(self.progress, self._phase)

    def _tell_of_steps(self, occurrence: Occurrence) -> None:
        """Answer a worker's reports with the steps of the run, if its schedule counts them."""
        if self._settings.learner.schedule == "constant" or not isinstance(occurrence, Said):
            return
        if occurrence.message["event"] in ("joined", *PROGRESS):
            self._place.tell(occurrence.name, f"steps {self.progress.steps}")

    def _tell_of_a_move(self, name: str) -> None:
        """Restart the children that still use the old address of a process that moved machines."""
        home = self._homes.get(name)
        if home is None or home == self._found_at(name):
            return
        self._homes[name] = self._found_at(name)
        self._place.change(self._program_of(name))
        text = f"{name} is now at {self._homes[name]}, no longer at {home}; those below it follow"
        self._hearing.say("run", text, trouble=True)
        for follower in self._followers(name):
            self._place.change(self._program_of(follower))
            self._place.kill(follower)

    def _followers(self, name: str) -> list[str]:
        """The running processes that know the address of this switch or server."""
        if name == "server":
            return [first for first in self._between[:1] if first in self._homes]
        leaves = [leaf for leaf in self._leaves if name == "switch" and leaf in self._homes]
        alive = self._place.alive()
        workers = [n for n in range(self._train.workers) if self._home_of(n) == name]
        return leaves + [who for n in workers if (who := f"worker {n}") in alive]

    def _now(self) -> float:
        return self._clock() - self._begin

    # Ending.

    def _take_ages(self) -> None:
        """Read the ages while workers still push: the end of a run would make them older."""
        deadline = self._clock() + AGES_S
        before = self.progress.served
        self._place.tell("server", "stats")
        while self.progress.served is before and self._clock() < deadline:
            self._turn(0.02)
        self.progress.ages_at_end = self.progress.served

    def _finish(self) -> None:
        self._phase = "workers stopping"
        names = [*self.progress.ready, *self._place.alive()]
        workers = sorted({name for name in names if name.startswith("worker")})
        patience_s = self._train.stop_timeout_s + self._settings.worker.flush_timeout_s
        deadline = self._clock() + patience_s
        self._place.retire(workers, "finish")
        while self._clock() < deadline and self.progress.unfinished(self._place.alive()):
            self._turn()
        self._phase = "queue draining"
        self._drain()
        self._phase = "stopping"
        self._take(self._place.stop(workers, timeout_s=max(deadline - self._clock(), 2.0)))
        for name in (*reversed(self._between), "server"):
            if name in self._place.alive():
                self._take(self._place.stop([name], timeout_s=5.0))
        self._place.bring("server", [self.model_file, self._train.folder / CHECKPOINT])
        self.progress.sample(self._now())

    def _evaluate_last(self) -> None:
        def goes_on() -> bool:
            self.progress.now_s = self._now()
            self._observer.stands(self.progress, LAST_EVALUATION)
            return not self._control.stopping

        count = len(self.progress.evaluations)
        self._evaluating.last(self.model_file, goes_on)
        if len(self.progress.evaluations) > count:
            self.progress.sample(self._now())

    def _drain(self) -> None:
        """Wait until the queues are empty and the server's counts stop, or the deadline."""
        deadline = self._clock() + self._train.drain_timeout_s
        parties = (*self._between, "server")
        before = None
        while self._clock() < deadline and set(parties) <= set(self._place.alive()):
            for name in parties:
                self._place.tell(name, "stats")
            self._turn(0.05)
            self._turn(0.05)
            now = self._still_on_the_way()
            waiting, *gaps = now
            # Lost updates never arrive: it is enough that no counter moves any more.
            if waiting == 0 and (not any(gaps) or now == before):
                return
            before = now

    def _still_on_the_way(self) -> tuple[int, ...]:
        """Contributions that wait in queues; and at each hop, those that left and did not
        arrive."""
        if self._is_tcp:
            # TCP loses nothing: missing contributions wait in its buffers.
            return (self.progress.awaited,)
        roles = ("leaf", "switch") if self._leaves else ("switch",)
        tiers = [self.progress.switch_counts(role) for role in roles]
        served = self.progress.served
        arrived = [sum(tier.values()) for tier in tiers[1:]] + [served["received"] if served else 0]
        left = [tier.get("sent_alone", 0) + tier.get("merged", 0) for tier in tiers]
        waiting = sum(tier.get("waiting", 0) for tier in tiers)
        return waiting, *(one - other for one, other in zip(left, arrived, strict=True))


def session_seed(seed: int, session: int) -> int:
    """The seed of a session: a resumed run continues with new random numbers."""
    if session == 0:
        return seed
    import numpy as np

    return int(np.random.SeedSequence([seed, session]).generate_state(1)[0])


def worker_job(
    settings: Settings, *, switch: str, worker: int | None, cluster: int, seed: int
) -> WorkerJob:
    """Configuration of a worker's process, from the settings of worker, learner and server."""
    own = settings.worker
    learner = settings.learner.model_dump(mode="json")
    if "gamma" not in settings.learner.model_fields_set:
        learner["gamma"] = settings.server.learning_rate
    if settings.learner.schedule != "constant" and settings.learner.schedule_steps is None:
        learner["schedule_steps"] = settings.train.steps
    wait_for_model_s = own.wait_for_model_s
    if settings.server.aggregate == "round" and "wait_for_model_s" not in own.model_fields_set:
        wait_for_model_s = 3 * settings.server.aggregate_ms / 1000
    client = {
        "keepalive_ms": own.keepalive_ms,
        "silent_after_ms": own.silent_after_ms,
        "ecn": own.ecn,
        "segment_lanes": own.segment_lanes or settings.server.segment_lanes,
        "mtu_bytes": own.mtu_bytes,
        "key_file": own.key_file,
        "transmission": own.transmission,
        "unsent": own.unsent,
        "threshold_ms": own.threshold_ms,
        "slope": own.slope,
        "retry_ms": own.retry_ms,
    }
    return WorkerJob(
        switch=switch,
        job=own.job,
        cluster=cluster,
        id=worker,
        updates=own.updates,
        seed=seed,
        flush_timeout_s=own.flush_timeout_s,
        client={key: value for key, value in client.items() if value is not None},
        loop={
            "on_refused": own.on_refused,
            "patience_s": own.patience_s,
            "waiting_share": own.waiting_share,
            "wait_for_model_s": wait_for_model_s,
            "weight": own.weight,
            "push_every": own.push_every,
            "turns_per_push": own.turns_per_push,
            "join_timeout_s": own.join_timeout_s,
        },
        learner=learner,
        tcp=worker_told(settings) if settings.train.transport == "tcp" else None,
    )
