"""A job's switch and server on this machine, for the duration of a block or a notebook."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from olaf.errors.outcome import Exit
from olaf.errors.telling import tell
from olaf.files.keyfile import key_file as key_file_of
from olaf.jobs.supervisor import Ended, Occurrence, Printed, Program, Said, Supervisor
from olaf.values.defaults import SERVER, SWITCH

if TYPE_CHECKING:
    from typing import Self

    from olaf.jobs.run_keys import RunKeys
    from olaf.jobs.settings import Settings
    from olaf.push_pull.connection import Model

POLL_S = 0.1
ANSWER_S = 10.0
"""Time limit in seconds for an answer of the switch or server; they answer in milliseconds."""
EVENTS = 10_000
"""Largest number of events that are kept until they are read."""

T = TypeVar("T")


def local(
    queue: str = SWITCH["queue"],
    slots: int = SWITCH["slots"],
    uplink: str | None = SWITCH["uplink"],
    *,
    learning_rate: float = SERVER["learning_rate"],
    switch: Mapping[str, Any] | None = None,
    server: Mapping[str, Any] | None = None,
    restarts: int = 5,
    start_timeout_s: float = 30.0,
    key_file: str | None = None,
) -> LocalJob:
    """Start a switch and a parameter server as processes on this machine, on free ports.

    They run until the block ends, `LocalJob.close` is called, or this process ends in any way. A
    script, a notebook and a test all work; no ``__main__`` guard is needed. ::

        with olaf.local(queue="olaf", slots=8) as job, olaf.connect(job.address) as switch:
            switch.join(weights)

    queue: discipline of the switch's queue: "olaf", "fifo" or "freshest".
    slots: number of segments that the queue holds; a model of n parameters has ceil(n / 2208).
    uplink: bandwidth of the link between switch and server, "400kbit"; None sends at once.
    learning_rate: the server's factor on every update; 1 applies a push unchanged.
    switch, server: more keys of ``[switch]`` and ``[server]`` as `olaf config` explains them,
        for example ``server={"staleness_power": 0.0}``.
    restarts: number of restarts in a row of a process that dies, at the same address.
    key_file: the key of the job (`olaf keys`); without it OLAF_KEY_FILE of the environment. A job
        that listens beyond this machine makes a key of its own: workers take `LocalJob.key_file`.

    Raises ValueError for an invalid setting, with the key and the allowed values, and
    UnreachableError if a process does not listen within ``start_timeout_s``.
    """
    from olaf.errors.usage import ConfigurationError
    from olaf.jobs.reading import read_settings
    from olaf.processes.loopback import loopback

    own = {
        "switch.queue": ("queue", queue),
        "switch.slots": ("slots", slots),
        "server.learning_rate": ("learning_rate", learning_rate),
        "switch.listen": ("", f"{loopback()}:0"),
        "server.listen": ("", f"{loopback()}:0"),
    }
    if key_file is not None:
        own["train.key_file"] = ("key_file", key_file)
    if uplink is not None:
        own["switch.uplink"] = ("uplink", uplink)
    given = {key: (f"olaf.local({name}={value!r})", value) for key, (name, value) in own.items()}
    for section, more in (("switch", switch), ("server", server)):
        for key, value in (more or {}).items():
            where = f"olaf.local({section}={{{key!r}: {value!r}}})"
            given[f"{section}.{key}"] = (where, value)
    try:
        settings = read_settings(None, given)
    except ConfigurationError as error:
        raise ValueError(str(error)) from None
    return LocalJob(settings, restarts=restarts, start_timeout_s=start_timeout_s)


class LocalJob:
    """A switch and a server of this machine, made by `local`; a context manager that ends them.

    Every method may be called from any thread.
    """

    address: str
    """Address of the switch, for `olaf.connect`."""
    server_address: str
    """Address of the server, for another switch or for workers without a switch."""
    key_file: str | None
    """The key file that workers need (`olaf.connect`, ``key_file=``); None without keys."""

    def __init__(self, settings: Settings, *, restarts: int, start_timeout_s: float) -> None:
        self._owner = os.getpid()
        self._events: deque[dict[str, Any]] = deque(maxlen=EVENTS)
        self._answers: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self._failure: str | None = None
        self._changed = threading.Condition()
        self._one_question = threading.Lock()
        self._closing = threading.Event()
        self._folder = tempfile.TemporaryDirectory(prefix="olaf-")
        self._supervisor = Supervisor(restarts=restarts)
        try:
            self._keys = self._keys_of(settings)
            self.server_address = self._listening("server", settings, start_timeout_s)
            self.address = self._listening("switch", settings, start_timeout_s)
        except BaseException:
            self._supervisor.close()
            self._folder.cleanup()
            raise
        self._thread = threading.Thread(target=self._keep, name="olaf.local", daemon=True)
        self._thread.start()

    def stats(self) -> dict[str, dict[str, Any]]:
        """Present counters of ``"switch"`` and ``"server"``, see ``docs/reference/statistics.md``.

        Raises UnreachableError if one of them does not answer.
        """
        return {name: self._ask(name, "stats", "stats")["stats"] for name in ("switch", "server")}

    def events(self) -> list[dict[str, Any]]:
        """The events since the last call, oldest first: each has ``who`` and ``event``.

        Besides the events of the roles there are ``printed`` (a line on stderr) and ``ended`` (a
        process has ended, and whether it restarts). At most 10,000 are kept.
        """
        with self._changed:
            events = list(self._events)
            self._events.clear()
        return events

    def model(self, job: int = 1) -> Model | None:
        """The model on the server; None while the job has none.

        Raises UnreachableError if the server does not answer, OlafError if it cannot write it.
        """
        import numpy as np

        from olaf._olaf import OlafError
        from olaf.push_pull.connection import Model

        said = self._ask("server", f"save {job}", "saved")
        if "reason" in said:
            raise OlafError(f"the server could not write its model: {said['reason']}")
        if said["file"] is None:
            return None
        with np.load(said["file"]) as saved:
            return Model(int(saved["version"]), [saved["parameters"]])

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of the running ``"switch"`` and ``"server"``."""
        return {n: int(self._answers[n, "listening"][1]["pid"]) for n in ("switch", "server")}

    def close(self) -> None:
        """End both processes. A second call does nothing, nor does a call in a forked child."""
        if self._closing.is_set() or os.getpid() != self._owner:
            return
        self._closing.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self._failure or ("closed" if self._closing.is_set() else "running")
        return f"<olaf.local {self.address}, server {self.server_address}: {state}>"

    # Starting.

    def _keys_of(self, settings: Settings) -> RunKeys:
        """The keys of both processes. A job that needs a key and has none gets one of its own."""
        from olaf.errors.usage import ConfigurationError
        from olaf.jobs.run_keys import needs_key, run_keys

        if needs_key(settings):
            from olaf._olaf import new_key

            file = str(Path(self._folder.name) / "job.key")
            new_key(file, settings.worker.job)
            train = settings.train.model_copy(update={"key_file": file})
            settings = settings.model_copy(update={"train": train})
        self.key_file = key_file_of(settings.train.key_file)
        try:
            return run_keys(settings)
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    def _listening(self, name: str, settings: Settings, timeout_s: float) -> str:
        """Start a role; return its address, which it keeps when it restarts."""
        from olaf._olaf import UnreachableError

        listen = settings.switch.listen if name == "switch" else settings.server.listen
        self._supervisor.start(self._program(name, settings, listen))
        deadline = time.monotonic() + timeout_s
        while (name, "listening") not in self._answers:
            if self._failure is not None:
                raise ValueError(self._failure)
            if time.monotonic() > deadline:
                raise UnreachableError(f"the {name} did not listen within {timeout_s:g} s")
            self._take(self._supervisor.poll(POLL_S), starting=True)
        address = str(self._answers[name, "listening"][1]["address"])
        self._supervisor.change(self._program(name, settings, address))
        return address

    def _program(self, name: str, settings: Settings, listen: str) -> Program:
        first: dict[str, Any] = {"every_s": 60.0}
        if name == "switch":
            told = {"listen": listen, "upstream": self.server_address}
            switch = settings.switch.model_copy(update=told)
            first |= {
                "core": self._keys.core(name, switch.to_core()),
                "admission": switch.to_admission(),
            }
        else:
            changes: dict[str, Any] = {"listen": listen}
            if "forget_jobs_after_ms" not in settings.server.model_fields_set:
                # The server is this job's own, and ends with it.
                changes["forget_jobs_after_ms"] = None
            server = settings.server.model_copy(update=changes)
            first |= {"core": self._keys.core(name, server.to_core()), "model_file": None, "job": 1}
            first["save_folder"] = self._folder.name
        # -P: a json.py in the working directory must not hide the module of that name.
        argv = [sys.executable, "-P", "-m", "olaf", name, "--json", "--attached"]
        return Program(name, argv, json.dumps(first))

    # Running, in a separate thread.

    def _keep(self) -> None:
        with self._supervisor:
            while not self._closing.is_set():
                self._take(self._supervisor.poll(POLL_S))
            for name in ("switch", "server"):
                self._take(list(self._supervisor.stop([name], timeout_s=5.0)))
        self._folder.cleanup()
        with self._changed:
            self._changed.notify_all()

    def _take(self, occurrences: list[Occurrence], *, starting: bool = False) -> None:
        for occurrence in occurrences:
            with self._changed:
                self._note(occurrence, starting=starting)
                self._changed.notify_all()

    def _note(self, occurrence: Occurrence, *, starting: bool) -> None:
        name = occurrence.name
        if isinstance(occurrence, Said):
            event = occurrence.message.get("event", "")
            count, _ = self._answers.get((name, event), (0, {}))
            self._answers[name, event] = count + 1, occurrence.message
            if event not in ("listening", "stats", "saved", "stopped"):
                self._events.append({"who": name, **occurrence.message})
        elif isinstance(occurrence, Printed):
            self._events.append({"who": name, "event": "printed", "text": occurrence.text})
            if starting:
                self._answers[name, "printed"] = 1, {"text": occurrence.text}
            else:
                tell(logging.WARNING, f"the {name}: {occurrence.text}")
        elif isinstance(occurrence, Ended) and not self._closing.is_set():
            self._gone(occurrence, starting=starting)

    def _gone(self, occurrence: Ended, *, starting: bool) -> None:
        name, back_in_s = occurrence.name, occurrence.back_in_s
        ended = {"who": name, "event": "ended", "how": occurrence.how, "back_in_s": back_in_s}
        self._events.append(ended)
        if starting and (back_in_s is None or occurrence.code in list(Exit)):
            _, said = self._answers.get((name, "printed"), (0, {"text": occurrence.how}))
            self._failure = str(said["text"]).removeprefix("olaf: ")
        elif back_in_s is None:
            self._failure = f"the {name} {_was(occurrence.how)} and is not started again"
            tell(logging.ERROR, self._failure)
        else:
            tell(
                logging.WARNING,
                f"the {name} {_was(occurrence.how)}; it starts again in {back_in_s:g} s",
            )

    # Asking.

    def _ask(self, name: str, line: str, answer: str) -> dict[str, Any]:
        from olaf._olaf import UnreachableError

        if self._closing.is_set():
            raise UnreachableError("this olaf.local job is closed")
        with self._one_question:
            with self._changed:
                before, _ = self._answers.get((name, answer), (0, {}))
            deadline = time.monotonic() + ANSWER_S
            while not self._failure and time.monotonic() < deadline:
                # Ask again, because a role that has just restarted has not received the question.
                with contextlib.suppress(ValueError):  # its stdin was closed this very moment
                    self._supervisor.tell(name, line)
                said = self._wait_for(lambda: self._newer(name, answer, before), deadline)
                if said is not None:
                    return said
        raise UnreachableError(
            self._failure or f"the {name} did not answer within {ANSWER_S:g} s: see job.events()"
        )

    def _newer(self, name: str, answer: str, before: int) -> dict[str, Any] | None:
        count, said = self._answers.get((name, answer), (0, {}))
        return said if count > before else None

    def _wait_for(self, look: Callable[[], T | None], deadline: float) -> T | None:
        """Wait at most a second for something to read."""
        until = min(deadline, time.monotonic() + 1.0)
        with self._changed:
            while (seen := look()) is None and not self._failure and not self._closing.is_set():
                left = until - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    break
        return seen


def _was(how: str) -> str:
    return how if how.startswith("exited") else f"was {how}"
