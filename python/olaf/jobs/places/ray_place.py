"""The roles of a job as actors of a Ray cluster.

Ray finds the nodes, reserves resources, and starts an actor again when its process or its node
dies. This module decides which actors count as dead, and how they restart. Each actor always has
one call under way: ``begin`` until it runs, then ``hear``, which returns when there are messages.
A call that fails means that the actor is gone.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import signal
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.backoff import Backoff
from olaf.jobs.places.ray_actor import Copy, Heard, RoleActor, Where
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Ended, Occurrence, Printed, Program, Said, Started

HEAR_S = 10.0
"""Seconds that ``hear`` waits for a message; the driver does other work meanwhile."""

HOMELESS_S = 30.0
"""After this many seconds without a node for an actor, the missing resources are reported once."""

MISS_S, MOST_MISSES = 0.25, 40
"""Pause in seconds between calls to an actor that Ray is restarting, and their number."""

REACH_S = 10.0
"""Time limit in seconds for the head of a cluster to accept the connection."""

COPY_S = 10.0
"""Seconds between copies of a file that a role keeps on another node."""

READ_S = 60.0
"""Time limit in seconds for one such copy."""

THREADS = 4
"""Threads of an actor: one for ``hear``, one for ``tell``, one for files, one spare."""


@dataclass
class _Actor:
    program: Program
    backoff: Backoff
    handle: Any
    asked: dict[str, float]
    """Requested resources, for messages."""
    call: Any = None
    """The call under way: ``begin`` while ``where`` is None, else ``hear``."""
    where: Where | None = None
    last: Where | None = None
    """Its process when it was declared dead."""
    incarnation: int = 1
    heard: int = 0
    began_at: float = 0.0
    due: float | None = None
    retired: bool = False
    warned: bool = False
    misses: int = 0
    copying: Any = None
    """The copy of a file from its node that is under way."""
    copy_at: float = 0.0

    @property
    def alive(self) -> bool:
        return self.call is not None or self.due is not None


class RayPlace:
    """See `olaf.jobs.places.Place`."""

    def __init__(self, settings: Settings) -> None:
        self._ray: Any = importlib.import_module("ray")
        self._errors: Any = importlib.import_module("ray.exceptions")
        self._settings = settings
        self._actors: dict[str, _Actor] = {}
        self._occurrences: list[Occurrence] = []
        self._mine = not self._ray.is_initialized()
        if self._mine:
            self._connect(settings.train.on.partition(":")[2])
        self._client = bool(self._ray.util.client.ray.is_connected())
        """True outside of the cluster: then no node's files are local."""
        self._node = self._ray.get_runtime_context().get_node_id()

    def start(self, program: Program) -> None:
        """Place an actor and start its role."""
        train = self._settings.train
        backoff = Backoff(train.restarts, train.restart_delay_s)
        asked = self._resources(program.name)
        remote = self._ray.remote(RoleActor).options(
            num_cpus=asked["CPU"],
            num_gpus=asked.get("GPU", 0),
            # Ray restarts it whenever it dies; this module decides how often that is useful.
            max_restarts=-1,
            max_task_retries=0,
            max_concurrency=THREADS,
            scheduling_strategy=self._strategy(program.name),
            runtime_env={"env_vars": dict(program.environment)},
        )
        actor = _Actor(program, backoff, remote.remote(), asked)
        self._actors[program.name] = actor
        self._begin(actor)

    def change(self, program: Program) -> None:
        """See `Place.change`."""
        self._actors[program.name].program = program

    def poll(self, timeout_s: float) -> list[Occurrence]:
        """See `Place.poll`."""
        if self._occurrences:
            timeout_s = 0
        calls = {actor.call: actor for actor in self._actors.values() if actor.call is not None}
        if calls:
            ready, _ = self._ray.wait(list(calls), num_returns=1, timeout=timeout_s)
            if ready:
                ready, _ = self._ray.wait(list(calls), num_returns=len(calls), timeout=0)
            for call in ready:
                self._answered(calls[call], call)
        else:
            time.sleep(min(timeout_s, 0.05))
        self._look_after()
        occurrences, self._occurrences = self._occurrences, []
        return occurrences

    def tell(self, name: str, line: str) -> None:
        """See `Place.tell`."""
        actor = self._actors.get(name)
        if actor and actor.where is not None and actor.call is not None:
            actor.handle.tell.remote(line)

    def retire(self, names: Iterable[str], line: str) -> None:
        """See `Place.retire`. An actor without a node no longer waits for one."""
        for name in names:
            actor = self._actors[name]
            actor.retired = True
            if actor.where is None and actor.alive:
                self._bury(actor, int(Exit.OK), "it had not begun")
            self.tell(name, line)

    def kill(self, name: str) -> None:
        """See `Place.kill`."""
        self._ray.kill(self._actors[name].handle, no_restart=False)

    def alive(self) -> list[str]:
        """See `Place.alive`."""
        return [name for name, actor in self._actors.items() if actor.alive]

    def restarts(self) -> dict[str, int]:
        """See `Place.restarts`."""
        return {n: a.incarnation - 1 for n, a in self._actors.items() if a.incarnation > 1}

    def stop(self, names: Iterable[str], timeout_s: float) -> Iterator[Occurrence]:
        """See `Place.stop`."""
        waiting = set(names)
        self.retire(waiting, "stop")
        deadline = time.monotonic() + timeout_s
        while waiting := {name for name in waiting if self._actors[name].alive}:
            if time.monotonic() >= deadline:
                for name in sorted(waiting):
                    self._bury(self._actors[name], -signal.SIGKILL, "")
            yield from self.poll(0.05)
        yield from self.poll(0)

    def host(self, name: str) -> str:
        """See `Place.host`."""
        where = self._actors[name].where
        return where.address if where else "127.0.0.1"

    def bring(self, name: str, files: Sequence[Path]) -> None:
        """Copy the file that an actor wrote on its node to here, unless it is here already."""
        actor = self._actors.get(name)
        if actor is None or actor.where is None:
            return
        for file in files:
            here = Copy.of(file)
            asked = actor.handle.read.remote(str(file), here.digest if here else "")
            try:
                self._keep(self._ray.get(asked, timeout=READ_S))
            except (self._errors.RayError, OSError) as error:
                text = f"{file} stays on {actor.where.name}: {_first_line(error)}"
                self._occurrences.append(Printed(name, actor.incarnation, text))

    def cpu_s(self) -> float | None:
        """None: the CPU time of actors is not counted."""
        return None

    def close(self) -> None:
        """End all actors and leave the cluster; shut it down if this process started it."""
        for actor in self._actors.values():
            actor.call = actor.due = None
            with contextlib.suppress(Exception):  # a cluster that is gone has no actors either
                self._ray.kill(actor.handle, no_restart=True)
        if self._mine:
            self._ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # Connecting and placing.

    def _connect(self, address: str) -> None:
        own: dict[str, Any] = {"address": address}
        if not address:
            # This cluster serves this job alone: actors share its processors as processes would.
            needed = self._needed()
            own = {"address": "local", "include_dashboard": False}
            own["num_cpus"] = max(int(needed["CPU"] + 0.999), 1)
        else:
            _reach(address)
        try:
            self._ray.init(**own, log_to_driver=False, logging_level="error")
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            where = f"the Ray cluster at {address}" if address else "a Ray cluster of this machine"
            raise RunError(
                f"--on {self._settings.train.on}: {where} cannot be used: {_first_line(error)}",
                Exit.UNREACHABLE,
            ) from None

    def _needed(self) -> dict[str, float]:
        """Sum of the resources of all actors."""
        train = self._settings.train
        names = ["server", "switch", *(f"leaf {n}" for n in range(train.leaves))]
        names += [f"worker {n}" for n in range(train.workers)]
        needed: dict[str, float] = {}
        for name in names:
            for kind, amount in self._resources(name).items():
                needed[kind] = needed.get(kind, 0.0) + amount
        return needed

    def _resources(self, name: str) -> dict[str, float]:
        ray = self._settings.ray
        if not name.startswith("worker"):
            return {"CPU": ray.cpus_per_switch}
        return {"CPU": ray.cpus_per_worker} | (
            {"GPU": ray.gpus_per_worker} if ray.gpus_per_worker else {}
        )

    def _strategy(self, name: str) -> Any:
        ray = self._settings.ray
        if name.startswith("worker"):
            return "SPREAD" if ray.workers == "spread" else "DEFAULT"
        if ray.switches == "any":
            return "DEFAULT"
        kinds = importlib.import_module("ray.util.scheduling_strategies")
        return kinds.NodeAffinitySchedulingStrategy(self._node, soft=True)

    # Listening.

    def _begin(self, actor: _Actor) -> None:
        program = actor.program
        role = program.name.split(maxsplit=1)[0]
        actor.due = None
        if not actor.misses:
            actor.began_at = time.monotonic()
        actor.call = actor.handle.begin.remote(
            "switch" if role == "leaf" else role,
            program.first_line,
            str(Path.cwd()),
            [copy for file in program.files if (copy := Copy.of(file))],
        )

    def _answered(self, actor: _Actor, call: Any) -> None:
        try:
            answer: Where | Heard = self._ray.get(call)
        except self._errors.ActorUnavailableError:
            self._lost(actor)
        except self._errors.RayError as error:
            self._gone(actor, error)
        else:
            if isinstance(answer, Heard):
                self._take(actor, answer)
            else:
                self._begun(actor, answer)

    def _begun(self, actor: _Actor, where: Where) -> None:
        actor.where, actor.misses = where, 0
        name = actor.program.name
        if actor.last and actor.last.life == where.life:
            # It never died: only the network was down. The actor has kept its messages.
            actor.incarnation -= 1
            self._occurrences.append(
                Printed(name, actor.incarnation, "answers again: it was not dead")
            )
        else:
            actor.heard = 0
            self._occurrences.append(Started(name, actor.incarnation, where.pid, where.name))
        self._hear(actor)

    def _hear(self, actor: _Actor) -> None:
        actor.call = actor.handle.hear.remote(actor.heard, HEAR_S)

    def _take(self, actor: _Actor, heard: Heard) -> None:
        name, number = actor.program.name, actor.incarnation
        for kind, text in heard.lines:
            said = kind == "said"
            self._occurrences.append(
                Said(name, number, json.loads(text)) if said else Printed(name, number, text)
            )
        actor.heard = heard.upto
        if heard.code is None:
            self._hear(actor)
        elif heard.code == Exit.OK or actor.retired:
            if name.startswith("worker"):  # the other roles have files to copy
                self._ray.kill(actor.handle, no_restart=True)
            self._end(actor, heard.code, expected=True)
        elif heard.code == Exit.USAGE:
            self._end(actor, heard.code)
        else:
            self._return(actor, heard.code, "")
            if actor.due is not None:
                # Its next incarnation is in a new process.
                self._ray.kill(actor.handle, no_restart=False)

    def _lost(self, actor: _Actor) -> None:
        """Handle the death of its process; Ray starts another."""
        if actor.retired:
            self._bury(actor, int(Exit.OK), "")
            return
        if actor.where is None and actor.misses < MOST_MISSES:
            # Ray has not restarted it yet: that is not another death.
            actor.misses += 1
            actor.call, actor.due = None, time.monotonic() + MISS_S
            return
        self._return(actor, -signal.SIGKILL, f"its actor{self._place_of(actor)} is gone")

    def _gone(self, actor: _Actor, error: Exception) -> None:
        """Handle an actor that Ray will not restart, or could not start at all."""
        expected = actor.retired
        detail = f"Ray gave its actor{self._place_of(actor)} up: {_last_words(error)}"
        code = int(Exit.FAILED)
        if "No module named 'olaf" in str(error):
            detail = (
                "a node of the Ray cluster has no olaf: install the same version on every node "
                f"({_last_words(error)})"
            )
            code = int(Exit.USAGE)
        self._end(actor, code, detail, expected=expected)

    def _return(self, actor: _Actor, code: int, detail: str) -> None:
        """Schedule the next incarnation of an actor, or give it up."""
        back_in_s = actor.backoff.died(time.monotonic() - actor.began_at)
        if back_in_s is None:
            self._bury(actor, code, detail)
            return
        name, number = actor.program.name, actor.incarnation
        self._occurrences.append(Ended(name, number, code, False, back_in_s, detail))
        actor.call, actor.where, actor.last = None, None, actor.where or actor.last
        actor.incarnation += 1
        actor.due = time.monotonic() + back_in_s

    def _bury(self, actor: _Actor, code: int, detail: str) -> None:
        """End an actor for good."""
        with contextlib.suppress(self._errors.RayError):
            self._ray.kill(actor.handle, no_restart=True)
        self._end(actor, code, detail, expected=actor.retired)

    def _end(self, actor: _Actor, code: int, detail: str = "", *, expected: bool = False) -> None:
        actor.call = actor.due = None
        name, number = actor.program.name, actor.incarnation
        self._occurrences.append(Ended(name, number, code, expected, None, detail))

    def _look_after(self) -> None:
        now = time.monotonic()
        for actor in self._actors.values():
            if actor.due is not None and actor.due <= now:
                self._begin(actor)
            if actor.program.files:
                self._copy_files(actor)
            waits = actor.call is not None and actor.where is None
            if waits and not actor.warned and now - actor.began_at > HOMELESS_S:
                actor.warned = True
                text = self._homeless(actor)
                self._occurrences.append(Printed(actor.program.name, actor.incarnation, text))

    def _homeless(self, actor: _Actor) -> str:
        free, there = self._ray.available_resources(), self._ray.cluster_resources()
        asked = " and ".join(f"{amount:g} {kind}" for kind, amount in actor.asked.items())
        rest = ", ".join(
            f"{free.get(kind, 0):g} of {there.get(kind, 0):g} {kind} are free"
            for kind in actor.asked
        )
        return (
            f"has waited {HOMELESS_S:g} s for Ray to start it: it asks for {asked}, and {rest}; "
            "`[ray]` in the configuration says what each actor asks for"
        )

    def _copy_files(self, actor: _Actor) -> None:
        """Copy the files of a role on another node to here, so that it can restart on any node.

        One file at a time, without waiting for it.
        """
        if actor.copying is not None:
            ready, _ = self._ray.wait([actor.copying], timeout=0)
            if ready:
                actor.copying = None
                # The death of a node is reported elsewhere; the last copy stays valid.
                with contextlib.suppress(self._errors.RayError, OSError):
                    self._keep(self._ray.get(ready[0]))
            return
        is_here = actor.where is not None and actor.where.node == self._node and not self._client
        now = time.monotonic()
        if actor.where is None or is_here or now < actor.copy_at:
            return
        actor.copy_at = now + COPY_S
        file = actor.program.files[0]
        here = Copy.of(file)
        actor.copying = actor.handle.read.remote(str(file), here.digest if here else "")

    def _keep(self, copy: Copy | None) -> None:
        if copy is not None:
            copy.unfold()

    def _place_of(self, actor: _Actor) -> str:
        where = actor.where
        return f" (process {where.pid} on {where.name})" if where else ""


def _reach(address: str) -> None:
    """Raise RunError if nothing listens at ``HOST:PORT``: Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # auto, or a word that Ray knows or refuses
    try:
        socket.create_connection((host.strip("[]"), int(port)), REACH_S).close()
    except (OSError, OverflowError) as error:
        raise RunError(
            f"--on ray:{address}: no Ray cluster answers there ({error}); `ray status` on a node "
            "of the cluster shows its address",
            Exit.UNREACHABLE,
        ) from None


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _last_words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__
