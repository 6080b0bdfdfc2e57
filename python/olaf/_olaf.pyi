"""The Python interface of the Rust core. It only wraps: every decision is made in the crates.

Arrays of model parameters are C-contiguous float32 buffers. A *list* of them is one model or one
gradient, in order; it is read or written in place with the GIL released.
Configurations and statistics are JSON; ``docs/reference/statistics.md`` has the schemas.
"""

import os
from collections.abc import Callable, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Allocator",
    "Client",
    "Engine",
    "LogFilter",
    "MinaSimulation",
    "OlafError",
    "Queue",
    "RefusedError",
    "Server",
    "SharingController",
    "SharingHost",
    "SumClient",
    "SumError",
    "SumOperation",
    "Sweep",
    "Switch",
    "UnreachableError",
    "VirtualJob",
    "__version__",
    "apply_rule",
    "defaults",
    "deliver",
    "end_old_key",
    "format_rate",
    "format_size",
    "format_time",
    "key_info",
    "key_text",
    "metrics",
    "metrics_catalogue",
    "metrics_unmapped",
    "new_key",
    "new_key_text",
    "old_key",
    "parse_rate",
    "parse_size",
    "parse_time",
    "probe",
    "queues",
    "replay",
    "rotate_key",
    "share_group",
    "simulate",
    "simulate_sums",
    "switch_key",
    "switch_key_text",
    "tree_gain",
    "trees_policy",
    "update_bytes",
    "wire_versions",
]

__version__: str

_Parts = Sequence[NDArray[np.float32]]

class OlafError(Exception):
    """Base class of network errors."""

class UnreachableError(OlafError):
    """A peer did not answer before the deadline; the message names the peer."""

class RefusedError(OlafError):
    """The switch or the server refused; the message gives the reason and what to do."""

class SumError(OlafError):
    """An all-reduce failed. The message says what happened, where, and what to do."""

    reason: str
    """``worker_died``, ``worker_left``, ``worker_joined``, ``mismatch``, ``refused``, ``full``,
    ``renewed``, ``switch_restarted``, ``switch_silent``, ``partial``, ``not_finite`` or
    ``not_joined``."""
    culprit: int | None
    """Rank of the worker that is the reason."""
    contributors: int | None
    """Of a partial sum: workers in the block with the fewest."""
    expected: int | None
    """Of a partial sum: workers that belong into it."""

@final
class SumClient:
    """A worker's connection to a job of sums: one UDP socket and one thread that keeps time.

    Arrays are C-contiguous numpy arrays, which are reduced where they lie. ``lanes`` is ``f32``,
    ``f16``, ``bf16``, ``i32`` or ``i64``; ``op`` is ``sum``, ``mean``, ``exact_sum``,
    ``exact_mean``, ``min``, ``max`` or ``broadcast``. Any thread may call any method.
    """

    def __new__(
        cls,
        address: str,
        *,
        job: int,
        workers: int | None = None,
        rank: int | None = None,
        config: str = "{}",
    ) -> Self:
        """Open the socket, without sending anything yet.

        workers: workers of the job; None: workers come and go. rank: the wanted rank. config: JSON,
        ``docs/reference/statistics.md#sum-configuration``. Raises ValueError (names the key).
        """

    @property
    def metrics_address(self) -> str | None:
        """Address of the HTTP side (`metrics`), or None without one."""

    @property
    def local_address(self) -> str: ...
    @property
    def operation_timeout_s(self) -> float:
        """Time limit of an operation that has none of its own, in seconds."""

    def place(self) -> tuple[int, int] | None:
        """Rank and number of workers in the newest generation; None before the first."""

    def join(self, timeout_s: float) -> None:
        """Join the job and wait until it begins.

        Raises UnreachableError, RefusedError, and TimeoutError if other workers are missing.
        """

    def reduce(
        self,
        array: NDArray[Any],
        lanes: str,
        op: str,
        *,
        root: int = 0,
        partial: bool = False,
        timeout_s: float | None = None,
        tag: int = 0,
    ) -> tuple[int, int, bool]:
        """Do one operation; return contributors, expected workers, and if a lane is not finite.

        tag: the caller's mark, the same at all workers, at most 8191; 0: none.

        Raises SumError, TimeoutError at the time limit, ValueError for an array that cannot be.
        """

    def begin(
        self,
        array: NDArray[Any],
        lanes: str,
        op: str,
        *,
        root: int = 0,
        partial: bool = False,
        timeout_s: float | None = None,
        tag: int = 0,
    ) -> SumOperation:
        """Begin one operation. The array must be left alone until it has ended."""

    def begin_pipelined(
        self, array: NDArray[Any], *, iteration: int, timeout_s: float | None = None
    ) -> SumOperation:
        """Begin a pipelined sum of ``iswitch``: the mean of H vectors of whichever workers.

        array: float32, for the mean; its contents are not sent. iteration: sums before this one.
        """

    def contribute(self, array: NDArray[Any], *, began: int, bound: int) -> tuple[str, int | None]:
        """Send a copy of a float32 array for the first pipelined sum that is open.

        began: sums in the weights that the array was computed with. bound: most sums that may have
        come since. Returns ``sent``, ``stale``, ``surplus`` (H arrays of this worker are on their
        way for the sum) or ``without_sum``; and for the first two the number of sums that have come
        since. Raises SumError, ValueError for another size.
        """

    def end_pipeline(self) -> None:
        """Take part in pipelined sums no more: those without a result fail at all workers."""

    def next_told(self) -> int | None:
        """Wait for the next end after `SumOperation.tell`; its id. None once the client is closed.

        For a thread of its own: Ctrl-C does not end the wait.
        """

    def stats(self) -> str:
        """Statistics as JSON: see ``docs/reference/statistics.md#worker-of-sums``."""

    def events(self) -> list[str]:
        """The events since the last call, one JSON object each."""

    def next_move(self) -> str | None:
        """What to tell people once this worker goes on through its second switch; waits for it.

        None if it never will. For a thread of its own: Ctrl-C does not end the wait.
        """

    def leave(self) -> None:
        """Leave the job, then close. Open operations fail. Idempotent.

        With a second switch it first waits until no other worker lacks a result of this one, for
        15 s at most, or twice that where the job moves meanwhile.
        """

    def leave_at_once(self) -> None:
        """Leave the job, then close, without waiting for other workers."""

@final
class SumOperation:
    """An operation that has begun."""

    @property
    def id(self) -> int:
        """Number of the operation at its client."""

    def done(self) -> bool:
        """True if it has ended."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; False at the deadline. None waits for the operation's time limit."""

    def outcome(self) -> tuple[int, int, bool]:
        """How it ended, once: as `SumClient.reduce` returns or raises it."""

    def give_up(self) -> None:
        """End it now, with a TimeoutError: nothing writes to its array any more."""

    def tell(self) -> bool:
        """Let `SumClient.next_told` return its id at the end; False if it has ended already."""

@final
class Client:
    """A worker's connection to a job: one UDP socket and one thread that keeps time."""

    def __new__(
        cls,
        address: str,
        *,
        job: int,
        cluster: int,
        worker: int | None = None,
        config: str = "{}",
    ) -> Self:
        """Open the socket, without sending anything yet.

        address: ``host:port``, ``[v6]:port`` or ``udp://host:port``.
        worker: this worker's id, unique in the job; None draws a random id.
        config: JSON with any of ``segment_lanes`` (int), ``keepalive_ms`` (int),
        ``silent_after_ms`` (int: report a peer that was not heard for this time), ``seed`` (int),
        ``mtu_bytes`` (int), ``ecn`` (bool: send ECN-capable datagrams), ``transmission`` ("off",
        "paper", "fair"), ``unsent`` ("carry", "discard", "retry"), ``threshold_ms`` (int),
        ``slope`` (str), ``retry_ms`` (int).
        Raises ValueError for an invalid address or key.
        """

    @property
    def worker(self) -> int: ...
    @property
    def metrics_address(self) -> str | None:
        """Address of the HTTP side (`metrics`), or None without one."""

    @property
    def local_address(self) -> str: ...
    def join(self, weights: _Parts, timeout_s: float, layout: str | None = None) -> int:
        """Join the job, offering ``weights`` as its first model; return the model version.

        The first worker's weights start the job (OLAF 2.1). Later workers fetch the job's model:
        read it with ``pull(parts, 0)``; its version is 1 or more. layout: JSON ``[{"name": "w",
        "shape": [2, 3]}, ..]``, the model's arrays in the order of their values; checkpoints store
        them by name. Raises ValueError for another model's layout. Raises UnreachableError,
        RefusedError (id in use, model of another size, ..).
        """

    def push(self, parts: _Parts, *, reward: float, weight: float = 1.0) -> int:
        """Send one update and return its sequence number, from 0. Never waits for an answer.

        _Parts together must have as many lanes as the joined model, otherwise ValueError.
        """

    def pull(self, parts: _Parts, newer_than: int) -> int | None:
        """Copy the newest complete model into ``parts`` if its version is above ``newer_than``.

        Returns its version, or None. Never waits, and never mixes two versions.
        """

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        """Wait until a complete model above ``newer_than`` is here; return its version, or None."""

    def awaits_end(self) -> bool:
        """True while the newest update is unanswered."""

    def refresh(self) -> None:
        """Ask the server for its newest model, without waiting for it."""

    def refreshed(self, timeout_s: float) -> bool:
        """Wait for the answer to `refresh`; return whether it has come."""

    def holding(self) -> bool:
        """True if transmission control holds back an update, so that no answer comes."""

    def flush(self, timeout_s: float) -> bool:
        """Wait until the fate of each update so far is known; False at the deadline."""

    def rule(self) -> str | None:
        """The server's rule from its newest welcome: JSON with ``kind``, ``aggregate``, ``step``,
        ``gate``, ``factor`` and ``staleness_power``.

        None before the first welcome.
        """

    def stats(self) -> str:
        """Statistics as JSON: see ``docs/reference/statistics.md#worker``."""

    def events(self) -> list[str]:
        """The events since the last call, one JSON object each (``switch_silent``, ..)."""

    def move_to(self, cluster: int) -> None:
        """Move to another cluster; later pushes belong to it."""

    def leave(self) -> None:
        """Leave the job, then close. Idempotent."""

@final
class Switch:
    """An aggregation switch: its engines, each with its links and its socket in its own thread."""

    def __new__(cls, config: str) -> Self:
        """Bind the socket. ``config``: JSON, ``docs/reference/statistics.md#switch-configuration``.

        Raises ValueError (names the key) or OSError (port in use: names it and what to do).
        """

    @property
    def address(self) -> str:
        """Address of the first engine."""

    @property
    def addresses(self) -> dict[str, str]:
        """Address of each engine, by the engine's name."""

    @property
    def metrics_address(self) -> str | None:
        """Address of the HTTP side (`metrics`), or None without one."""

    def start(self) -> None: ...
    def stats(self) -> str: ...
    def events(self) -> list[str]: ...
    def decide(self, job: int, cluster: int, admitted: bool | None) -> bool:
        """Answer an ``admission_wanted`` event; return whether the question was still open.

        ``None`` means unknown: the switch then gives its configured answer at once. Questions come
        one at a time, if ``admission_timeout_ms`` is set.
        """

    def stop(self) -> None: ...

@final
class Server:
    """A parameter server: rule, model and socket in its own thread."""

    def __new__(cls, config: str) -> Self: ...
    @property
    def metrics_address(self) -> str | None:
        """Address of the HTTP side (`metrics`), or None without one."""

    @property
    def address(self) -> str: ...
    def start(self) -> None: ...
    def stats(self) -> str: ...
    def events(self) -> list[str]: ...
    def finish(self) -> None:
        """Accept nothing more and write the last checkpoint; `events` reports a failure."""

    def model(self, job: int) -> tuple[int, NDArray[np.float32]] | None:
        """(version, parameters) of a job, or None while it has no model."""

    def stop(self) -> None: ...

@final
class VirtualJob:
    """A training job in virtual time: real workers, a real switch and a real server in one process.

    The caller provides the learners. The same configuration and calls give the same result to the
    bit.
    """

    def __new__(cls, config: str) -> Self:
        """Create all parties at 0 ns; no worker has joined yet.

        config: JSON with ``seed`` (int), ``clusters`` (list: each worker's cluster),
        ``switch`` (keys of `Switch`), and any of ``worker`` (keys of `Client`), ``server`` (keys of
        `Server`), ``edge`` (the links between workers and switch) and ``core`` (the link between
        switch and server). A link has any of ``delay_ns``, ``jitter_ns`` and ``loss`` (0 to below
        1), the same in both directions. Addresses, CPU cores and checkpoints are ignored. Raises
        ValueError (names the key).
        """

    @property
    def now_ns(self) -> int:
        """Virtual nanoseconds since the beginning."""

    def join(self, worker: int, weights: _Parts, timeout_ns: int, layout: str | None = None) -> int:
        """Join as `Client.join` does; time passes until the worker is in. Returns the version.

        Raises ValueError for invalid weights or layout, RefusedError, and UnreachableError after
        ``timeout_ns`` of virtual time.
        """

    def push(self, worker: int, parts: _Parts, *, reward: float, weight: float = 1.0) -> int:
        """Send one update now; return its number. Raises ValueError as `Client.push`."""

    def pull(self, worker: int, parts: _Parts, newer_than: int) -> int | None:
        """Copy the worker's newest model, if above ``newer_than``; return its version.

        Later pushes of the worker count as computed on it.
        """

    def wait(self, worker: int, newer_than: int) -> None:
        """Begin to wait for a model above ``newer_than``, see `run_until`."""

    def awaits_end(self, worker: int) -> bool:
        """True while an update of the worker is unanswered; see ``Client.awaits_end``."""

    def refresh(self, worker: int) -> None:
        """Ask for the server's newest model now."""

    def wait_refreshed(self, worker: int) -> None:
        """Begin to wait for the answer to `refresh`, see ``run_until``."""

    def end_wait(self, worker: int) -> None:
        """End the worker's wait."""

    def holding(self, worker: int) -> bool:
        """True if transmission control holds back an update of the worker."""

    def run_until(self, ns: int) -> list[int]:
        """Let time pass: until ``ns``, or until waiting workers have their model.

        Returns these workers, which no longer wait. An empty list means that it is ``ns`` now.
        """

    def model(self) -> tuple[int, NDArray[np.float32]] | None:
        """The server's (version, parameters), or None while it has no model."""

    def stats(self) -> str:
        """JSON: ``now_ns``; ``server``, ``switch`` and the list ``workers`` as in
        ``docs/reference/statistics.md``; ``links``: datagrams ``sent``, ``lost`` and ``delivered``
        of ``edge_up``, ``edge_down``, ``core_up`` and ``core_down``.
        """

@final
class MinaSimulation:
    """Jobs on a cluster whose switches sum, in virtual time (MINA §V)."""

    def __new__(cls, setting: str, solve: Callable[[str], str | None] | None = None) -> Self:
        """Check the setting; nothing runs yet.

        setting: JSON, see docs/reference/mina.md. solve: for ``exact`` trees, maps a problem to a
        better solution, both JSON (`olaf.schedule.ilp`); `advance` raises its exceptions. Raises
        ValueError (says what to change; for an invalid job it begins with ``jobs[NUMBER]:``,
        counted from 0).
        """

    def advance(self, seconds: float) -> tuple[int, int, int, bool]:
        """Simulate for about this time, with the GIL released.

        Returns (ended jobs, running jobs, nanoseconds of virtual time, whether all have ended).
        """

    def finish(self) -> str:
        """The result (``outcome``) and its computing times (``costs``), as JSON; once, at the end.

        Raises ValueError on the second call.
        """

@final
class Sweep:
    """All runs that deterministic senders can produce, through the engine; or a part of them."""

    def __new__(cls, question: str, *, chunk: int = 0, chunks: int = 1) -> Self:
        """Begin; nothing runs yet. This is part ``chunk`` of ``chunks`` parts.

        question: JSON with ``service`` (ticks, the paper's p/C), ``slots`` (Qmax), ``horizon``
        (ticks), ``senders`` (list of ``cluster`` and ``interval``, ticks), ``alike`` (for each
        cluster a number; interchangeable clusters share it), ``kind`` (of
        `olaf.verify.instance.Kind`), ``about`` (clusters), ``hyperperiods`` (number within which a
        run must repeat itself; 0 asks nothing beyond the horizon). Raises ValueError (says what to
        change).
        """

    def step(self, runs: int) -> str:
        """Make at most ``runs`` runs, with the GIL released.

        JSON: ``classes`` of phases in total, ``done`` of this part, ``runs``, ``finished``,
        ``largest`` and ``for_ever`` (null, or ``value`` [numerator, denominator; 0: infinite] in
        ticks, share or count, ``phases``, ``ranks``, ``cycle`` [from, period] or null),
        ``repeats`` (true if every run so far repeats itself; otherwise ``for_ever`` is null).
        """

    def to_horizon_only(self) -> None:
        """From now on, decide only up to the horizon: runs are shorter."""

def simulate(scenario: str) -> str:
    """Run a scenario in virtual time: workers, a tree of queues, one server; JSON in and out.

    ``docs/reference/scenarios.md`` lists the keys. Raises ValueError (names the invalid key).
    """

def simulate_sums(scenario: str, told: Callable[[int], object]) -> str:
    """Run jobs that sum their gradients, in virtual time; JSON in and out.

    ``told`` is called with the number of iterations of workers that have ended.
    ``docs/simulate-sums.md`` lists the keys. Raises ValueError (names the invalid key).
    """

def replay(
    trace: str,
    *,
    engine: str,
    slots: int,
    rate: str,
    gate: float | None = None,
    head: str = "locked",
    full: bool = True,
) -> str:
    """Run a recorded trace through the pure engine in virtual time; JSON as `olaf replay --json`.

    ``head``: while an update is sent, it keeps its slot and is ``locked``, keeps its slot and is
    ``open`` to merges, or has left its slot (``gone``).

    ``full=False`` leaves out ``departures`` and ``fates``. Raises ValueError (names file and line).
    """

def parse_rate(text: str) -> int:
    """Parse a rate in tc's units, ``40gbit``, to bits per second. Raises ValueError."""

def parse_time(text: str) -> int:
    """Parse a time, ``20ms``, ``1.5s`` or ``2min``, to nanoseconds. Raises ValueError."""

def parse_size(text: str) -> int:
    """Parse a size, ``1500B``, ``9kB`` or ``1.5MiB``, to bytes. Raises ValueError."""

def format_time(ns: int) -> str:
    """Write nanoseconds as a time for `parse_time`: ``20ms``."""

def format_size(bytes: int) -> str:
    """Write bytes as a size for `parse_size`: ``9kB``."""

def format_rate(bits_per_second: int) -> str:
    """Write bits per second as a rate for `parse_rate`: ``400kbit``. Raises ValueError."""

def new_key(path: str | os.PathLike[str], job: int | None = None) -> str:
    """Write a new key to a new file that only its owner may read; its public name."""

def switch_key(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> str:
    """Write what a switch needs of the key in ``path`` to ``out``; its public name.

    ``out`` is new, or has what the switch needed of that key before the last rotation.
    """

def rotate_key(path: str | os.PathLike[str], until_s: int) -> str:
    """Write a new key in the place of the one in ``path``; the new key's public name.

    The old one is good until ``until_s``, seconds of Unix time.
    """

def end_old_key(path: str | os.PathLike[str]) -> str:
    """End the old key in ``path``; the present key's public name."""

def old_key(path: str | os.PathLike[str]) -> tuple[str, int, bool] | None:
    """The key before the last rotation in ``path``: name, end (Unix time), whether it is good."""

def probe(address: str, config: str, timeout_s: float) -> str | None:
    """Measure the path to a switch or a server, without joining a job.

    config: JSON with ``job``, ``parameters``, ``questions``, ``every_ms``, ``patience_ms``,
    ``key_file``. Returns JSON (``docs/doctor.md`` names the fields), or None after ``timeout_s``.
    Raises ValueError for an address or a key that cannot be used.
    """

def key_info(path: str | os.PathLike[str]) -> tuple[str, str, int | None]:
    """Public name, kind ("job" or "switch") and job (None: any) of the key in ``path``."""

def key_text(path: str | os.PathLike[str]) -> str:
    """The text of the key file in ``path``, to hand over to a process: the secret is in it."""

def new_key_text(job: int | None = None) -> str:
    """The text of a new key for ``job`` (None: any job), which is in no file."""

def switch_key_text(text: str) -> str:
    """The text of what a switch needs of the key with this text."""

def update_bytes(parameters: int, config: str = "{}") -> int:
    """Bytes of one worker's update in UDP payload with headers, as an uplink's rate counts them.

    config: JSON, see `Client`. Raises ValueError for an invalid key.
    """

@final
class LogFilter:
    """Lets the lines of a log through from a level on, and not too many of one kind."""

    def __new__(cls, level: str) -> Self:
        """level: debug, info, warning or error; otherwise ValueError."""

    @staticmethod
    def level(event: str) -> str:
        """The level of an event, by the event's name."""

    def take(self, event: str) -> int | None:
        """None: leave the line out. A number: print it, after so many of its kind left out."""

    def end(self) -> list[tuple[str, int]]:
        """Number of left-out lines, by kind, that no printed line has counted yet."""

def wire_versions() -> list[tuple[str, int]]:
    """Each protocol with a version in its messages, and the version that is spoken here."""

def metrics(status: str) -> str:
    """Metrics of a status document (JSON), in OpenMetrics' text format.

    Raises ValueError if ``status`` is not JSON.
    """

def metrics_catalogue() -> list[tuple[str, str, str]]:
    """Name, type and help of every metric of switch, server and worker, in the order of names."""

def metrics_unmapped(status: str) -> list[str]:
    """The fields of a status document that are neither metrics nor left out by name.

    Raises ValueError if ``status`` is not JSON.
    """

def defaults() -> str:
    """The defaults of every key: JSON with a table each for ``switch``, ``server``, ``worker``.

    Keys and units are those of the roles' JSON. ``admission_timeout_ms`` counts where somebody is
    asked; a switch asks nobody where nothing is set.
    """

def queues() -> list[tuple[str, str]]:
    """The queue disciplines: (name, what it does) for each."""

def apply_rule(config: str, weights: NDArray[np.float32], updates: Any) -> Any:
    """Apply updates to weights by a server rule, without a network (for tests and tuning).

    ``updates``: sequence of (sum of lanes, weight, reward, versions behind, contributors,
    contributions that changed the model since). Changes ``weights`` in place. Returns for each
    update whether it was applied.
    """

def deliver(delivery: str) -> str:
    """Virtual time until a server has a number of updates of each worker, over one queue.

    JSON in and out: the fields of ``Delivery`` and ``Outcome`` in
    ``crates/olaf-sim/src/study/delivery``.
    Raises ValueError for invalid input.
    """

@final
class Allocator:
    """The allocation controller's state machine (MINA §IV-A); JSON in and out, no I/O, no clock.

    ``crates/olaf-sched/src/allocation`` defines its JSON (``Command``, ``Outcome``, ``JobView``,
    ``Explanation``, ``ClusterView``).
    """

    def __new__(cls, spec: str) -> Allocator:
        """Keys: topology, capacity, placement, trees, seed, most_queued, most_ended.

        ``topology`` is ``{"word": "fat-tree:16"}`` or ``{"graph": {..}}``. A policy is a word, or
        all its fields. Raises ValueError (names the key and its allowed values).
        """

    @staticmethod
    def resolve(spec: str) -> str:
        """The spec with every policy's word replaced by its fields. Raises ValueError."""

    @staticmethod
    def restore(spec: str, snapshot: str) -> Allocator:
        """The state from a snapshot; it may later decide differently from its original.

        Raises ValueError for an invalid state, and if its trees would be planned differently.
        """

    def snapshot(self) -> str:
        """The present state as a ``Snapshot``, for ``restore``."""

    def apply(self, now_ms: int, command: str) -> str:
        """One step: ``{"done": Outcome, "digest": n}`` or ``{"refused": {"why", "text"}}``.

        ``digest`` differs for different outcomes. Raises ValueError for an invalid command.
        """

    def replay(self, commands: list[tuple[int, str, int]], keep: int) -> str:
        """Apply commands that were accepted earlier: time, command, digest of the outcome.

        JSON: ``events`` (their number), ``last`` (at most the last ``keep`` of them), ``differs``
        (None, or the index of the first command with another outcome; later ones were not applied).
        Raises ValueError for an invalid command.
        """

    def jobs(self, *, after: int = 0, most: int = 1000, state: str | None = None) -> str:
        """A JSON list of ``JobView``: jobs after number ``after``, in the order of submission.

        Raises ValueError for an unknown state.
        """

    def job(self, job: int) -> str | None:
        """One ``JobView``; None if the job is unknown or forgotten."""

    def explain(self, job: int) -> str | None:
        """An ``Explanation``; None if the job is unknown or forgotten."""

    def cluster(self) -> str:
        """A ``ClusterView``."""

def tree_gain(pattern: str, network: str, hosts: int) -> int:
    """The time that a tree saves a job, in host-nanoseconds per second of running.

    JSON in: ``Pattern`` and ``Network`` of ``crates/olaf-sched/src/pattern.rs``. Raises ValueError.
    """

def trees_policy(asked: str) -> str:
    """A policy that chooses trees, from its word and the given parameters; JSON.

    Keys: ``trees`` (``none``, ``first``, ``first-gain``, ``random``, ``mina``, ``gain``,
    ``exact``), and optionally ``candidates``, ``join`` (``none``, ``one``, ``several``) and
    ``price_millis``; null or a missing key uses the policy's own value. Raises ValueError for a
    word or parameter that the policy does not have.
    """

@final
class SharingController:
    """The sharing controller over UDP (MINA §IV-B); it works from the first ``run`` on."""

    def __new__(cls, config: str) -> SharingController:
        """Bind its port. ``config``: the fields of ``SharingConfig`` in ``crates/olaf-net``.

        Raises ValueError (names the key), OSError (the port is not available).
        """

    @property
    def address(self) -> str: ...
    @property
    def metrics_address(self) -> str | None:
        """Address of the HTTP side (`metrics`), or None without one."""

    def run(self, timeout_s: float) -> list[str]:
        """Wait for the given time, or until an event needs the caller; return the events as JSON.

        Raises OSError when its thread cannot start or has died.
        """

    def statistics(self) -> str:
        """Statistics as JSON: rounds, and the lateness of its timers in microseconds."""

    def fenced(self, job: int) -> None:
        """The switches now refuse the job: its resources may be given to others."""

    def fail(self, job: int) -> None:
        """The job has ended or failed: its tree must be torn down."""

@final
class SharingHost:
    """One host of a job: it plays its steps in real time, in threads of its own."""

    def __new__(cls, config: str) -> SharingHost:
        """Begin. ``config``: the fields of ``SharingHostConfig`` in ``crates/olaf-net``.

        Raises ValueError (names the key), OSError (the port or the log is not available).
        """

    @property
    def metrics_address(self) -> str | None:
        """Address of the HTTP side (`metrics`), or None without one."""

    def is_done(self) -> bool:
        """True if the host has played everything, or failed."""

    def finish(self) -> str:
        """End the host; return its statistics as JSON.

        Raises UnreachableError (names the host of the job that did not answer), OlafError.
        """

def share_group(group: str) -> str:
    """Simulate jobs that take turns on one aggregation tree (MINA §V-C, Figure 12).

    JSON in: ``policy`` (none, greedy, mina, plan), ``network`` (``Network``),
    ``compute_speed_millis`` (default 1000), ``jobs`` (each ``{"pattern": Pattern, "hosts": n}``),
    ``until`` (``{"steps": n}`` each, or ``{"ns": n}``). JSON out: ``jobs`` (each: ``steps``, ``ns``
    when the last step ended, ``shortest_ns``, ``longest_ns``, ``in_network_ns``; the numbers of
    all-reduces ``in_network`` and ``operations``; ``none_ns`` and ``all_ns`` of a step), ``score``,
    ``score_weighted`` by hosts (None if no job could gain), ``bound`` and ``bound_weighted``, which
    no policy exceeds over a long time. Raises ValueError.
    """

@final
class Engine:
    """A whole engine without sockets and clocks: a switch, a parameter server or a worker.

    Time and datagrams are arguments. After every input, take the events (`poll_event`), then the
    datagrams of each port (`poll_transmit`), then the time of the next timeout (`poll_timeout`).
    Peers are numbers that the caller gives. Time is in nanoseconds and never runs backwards.
    """

    def __new__(cls, role: str, config: str = "{}", life: int = 1) -> Self:
        """Create an engine.

        role: ``switch``, ``sum_switch`` (that of `reduce`), ``server`` or ``worker``. config: JSON
        with the keys of that role's configuration. A switch has the key ``server`` besides (the
        peer that is its server), a ``sum_switch`` has ``above`` (the peer above, if any); a
        worker has ``job``, ``cluster``, ``worker``, ``switch`` (a peer), ``segment_lanes`` and
        ``seed``. life: names this life of the engine; draw it at random, above 0. Raises
        ValueError (names the key).
        """

    @property
    def role(self) -> str:
        """The role: ``switch``, ``server`` or ``worker``."""

    @property
    def ports(self) -> int:
        """Number of ports. At a switch port 0 is towards servers and port 1 towards workers."""

    def handle_packet(
        self, now_ns: int, peer: int, data: bytes, port: int = 0, traffic_class: int = 0
    ) -> str:
        """Take in a datagram; return ``"absorbed"``, or the reason why it was dropped."""

    def poll_transmit(self, now_ns: int, port: int = 0) -> tuple[list[int], bytes, int] | None:
        """Return the next datagram that has left the port's link by now, or None.

        The tuple has the receivers, the bytes and the traffic class.
        """

    def poll_timeout(self) -> int | None:
        """Return the time at which to call `handle_timeout`, or None."""

    def handle_timeout(self, now_ns: int) -> None:
        """Tell the engine that the time of its timeout has come."""

    def poll_event(self) -> dict[str, Any] | None:
        """Return the next event, with its name under ``event``, or None."""

    def report(self, now_ns: int) -> dict[str, Any]:
        """Return everything counted so far, by the names of docs/reference/statistics.md."""

    def peers(self) -> list[int]:
        """Return the peers that the engine still knows."""

    def join(self, now_ns: int, parameters: NDArray[np.float32]) -> None:
        """Worker: join the job, with ``parameters`` (1-D) as the first model. Raises ValueError."""

    def push(
        self,
        now_ns: int,
        update: NDArray[np.float32],
        *,
        reward: float = 0.0,
        weight: float = 1.0,
    ) -> int:
        """Worker: send an update (1-D, of the model's size); its number. Raises ValueError."""

    def pull(self, into: NDArray[np.float32], newer_than: int = 0) -> int | None:
        """Worker: copy the newest whole model above ``newer_than``; its version, or None.

        Raises ValueError if ``into`` is not of the model's size.
        """

    def leave(self) -> None:
        """Worker: leave the job."""

    def model(self, job: int = 1) -> tuple[int, NDArray[np.float32]] | None:
        """Server: a job's model, its version and its parameters, or None."""

@final
class Queue:
    """The queue of a switch: updates of one flow (job, cluster, segment) merge while they wait.

    docs/queue.md has the rules. The entry that departs is locked: it keeps its slot and takes
    nothing in.
    """

    def __new__(cls, discipline: str = "olaf", slots: int = 8, gate: float | None = None) -> Self:
        """Create an empty queue.

        discipline: a name that `queues` lists. slots: updates that it holds, the departing one
        included. gate: threshold of the reward gate, None for no gate. Raises ValueError.
        """

    @property
    def slots(self) -> int:
        """Number of slots."""

    @property
    def used(self) -> int:
        """Number of slots in use, that of the departing update included."""

    def arrive(
        self,
        lanes: NDArray[np.float32],
        *,
        worker: int = 0,
        sequence: int = 0,
        cluster: int = 0,
        job: int = 1,
        segment: int = 0,
        segments: int = 1,
        contributors: int = 1,
        weight: float = 1.0,
        reward: float = 0.0,
        generated_ns: tuple[int, int] = ...,
        versions: tuple[int, int] = ...,
        hops: int = 0,
        size: int | None = None,
    ) -> tuple[str, int | None]:
        """Let an update arrive; return what became of it and the entry it met.

        lanes: the values times the weight (1-D). The fate is ``appended``, ``merged``,
        ``replaced``, ``filtered``, ``dropped``, ``evicted`` (it took the slot of another entry) or
        the name of a rejection. generated_ns and versions are pairs, the oldest first, and (0, 0)
        unless given. size: bytes on the link, those of the lanes unless given. Raises
        ValueError for a header that contradicts itself.
        """

    def begin_departure(self) -> dict[str, Any] | None:
        """Lock the entry whose turn it is and return it; None if none waits or one departs.

        The dict has ``entry`` (its number), the header's fields and ``lanes``, the sum.
        """

    def end_departure(self) -> int | None:
        """Free the slot of the departing entry; return the entry's number."""

    def entries(self) -> list[dict[str, Any]]:
        """Return every entry: the departing one, then the others in the order of their turns."""
