"""The Rust core as Python sees it. Wraps only: every decision is made in the crates.

Arrays of model parameters are C-contiguous float32 buffers; a *list* of them is one model or
one gradient, in order, and is read or written in place with the GIL released.
Configurations go in, and statistics come out, as JSON: the schemas stand in
``docs/reference/statistics.md``.
"""

from collections.abc import Callable, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Allocator",
    "Client",
    "MinaSimulation",
    "OlafError",
    "RefusedError",
    "Server",
    "SharingController",
    "SharingHost",
    "Sweep",
    "Switch",
    "UnreachableError",
    "VirtualJob",
    "__version__",
    "apply_rule",
    "deliver",
    "format_rate",
    "format_size",
    "format_time",
    "parse_rate",
    "parse_size",
    "parse_time",
    "queues",
    "replay",
    "share_group",
    "simulate",
    "time_engine",
    "tree_gain",
    "trees_policy",
    "update_bytes",
]

__version__: str

_Parts = Sequence[NDArray[np.float32]]

class OlafError(Exception):
    """Base of what goes wrong in the network."""

class UnreachableError(OlafError):
    """A peer did not answer before the deadline; the message names the peer."""

class RefusedError(OlafError):
    """The switch or the server answered with a refusal; the message says why and what to do."""

@final
class Client:
    """A worker's end of a job: one UDP socket and one thread that keeps time."""

    def __new__(
        cls,
        address: str,
        *,
        job: int,
        cluster: int,
        worker: int | None = None,
        config: str = "{}",
    ) -> Self:
        """Open the socket. Sends nothing yet.

        address: ``host:port``, ``[v6]:port`` or ``udp://host:port``.
        worker: this worker's id in the job, unique; None draws one.
        config: JSON with any of ``segment_lanes`` (int), ``keepalive_ms`` (int),
        ``silent_after_ms`` (int: a peer unheard for so long is reported), ``seed`` (int),
        ``mtu_bytes`` (int), ``transmission`` ("off", "paper", "fair"), ``unsent`` ("carry",
        "discard", "retry"), ``threshold_ms`` (int), ``slope`` (str), ``retry_ms`` (int).
        Raises ValueError for an address or a key it cannot use.
        """

    @property
    def worker(self) -> int: ...
    @property
    def local_address(self) -> str: ...
    def join(self, weights: _Parts, timeout_s: float, layout: str | None = None) -> int:
        """Join the job, offering ``weights`` as its first model; return the model version.

        The first worker's weights start the job (OLAF 2.1); for later ones the job's model
        is fetched: read it with ``pull(parts, 0)``, which then holds version >= 1.
        layout: JSON ``[{"name": "w", "shape": [2, 3]}, ..]``, the model's arrays in the order of
        their values; checkpoints then hold them by name. ValueError where it is not this model's.
        Raises UnreachableError, RefusedError (id in use, other model size, ..).
        """

    def push(self, parts: _Parts, *, reward: float, weight: float = 1.0) -> int:
        """Send one update and return its sequence number, from 0. Never waits for an answer.

        _Parts together have as many lanes as the joined model. Raises ValueError when not.
        """

    def pull(self, parts: _Parts, newer_than: int) -> int | None:
        """Copy the newest complete model into ``parts`` if its version is above ``newer_than``.

        Returns its version or None; never waits; never writes a torn mixture.
        """

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        """Wait until a complete model above ``newer_than`` is here; its version, or None."""

    def awaits_end(self) -> bool:
        """Whether the newest update is under way: no answer has told its fate yet."""

    def refresh(self) -> None:
        """Ask the server for its newest model, without waiting for it."""

    def refreshed(self, timeout_s: float) -> bool:
        """Wait for the answer to `refresh`; whether it has come."""

    def holding(self) -> bool:
        """Whether transmission control holds back what was pushed, so that no answer comes."""

    def flush(self, timeout_s: float) -> bool:
        """Wait until it is known what became of each update sent so far; False at the deadline."""

    def rule(self) -> str | None:
        """How the server applies an update, as its newest welcome says: JSON with ``kind``,
        ``aggregate``, ``step``, ``gate``, ``factor`` and ``staleness_power``.

        None before the first welcome.
        """

    def stats(self) -> str:
        """JSON: see ``docs/reference/statistics.md#worker``."""

    def events(self) -> list[str]:
        """What happened since the last call, a JSON object each (``switch_silent``, ..)."""

    def move_to(self, cluster: int) -> None:
        """Go on in another cluster; what is pushed from here on is that cluster's."""

    def leave(self) -> None:
        """Tell the job, then close. Idempotent."""

@final
class Switch:
    """An aggregation switch: engine, pacer and socket in a thread of its own."""

    def __new__(cls, config: str) -> Self:
        """Bind the socket. ``config``: JSON, ``docs/reference/statistics.md#switch-configuration``.

        Raises ValueError (names the key) or OSError (port in use: says which and what to do).
        """

    @property
    def address(self) -> str: ...
    def start(self) -> None: ...
    def stats(self) -> str: ...
    def events(self) -> list[str]: ...
    def decide(self, job: int, cluster: int, admitted: bool | None) -> bool:
        """Answer the ``admission_wanted`` among the events; whether the question was still open.

        ``None``: not known, so that the stated answer is given now. Questions come one at a time,
        where ``admission_timeout_ms`` is set.
        """

    def stop(self) -> None: ...

@final
class Server:
    """A parameter server: rule, model and socket in a thread of its own."""

    def __new__(cls, config: str) -> Self: ...
    @property
    def address(self) -> str: ...
    def start(self) -> None: ...
    def stats(self) -> str: ...
    def events(self) -> list[str]: ...
    def finish(self) -> None:
        """Take nothing in any more and write the last checkpoint; `events` tells what failed."""

    def model(self, job: int) -> tuple[int, NDArray[np.float32]] | None:
        """(version, parameters) of a job now, or None while it has no model."""

    def stop(self) -> None: ...

@final
class VirtualJob:
    """A training job in virtual time: real workers, a real switch and a real server in one process.

    The learners are the caller's. The same configuration and calls give the same result to the bit.
    """

    def __new__(cls, config: str) -> Self:
        """Put everybody in place; nobody has joined, and it is 0 ns.

        config: JSON with ``seed`` (int), ``clusters`` (list: of each worker its cluster),
        ``switch`` (as `Switch` takes it), and any of ``worker`` (as `Client` takes it), ``server``
        (as `Server` takes it), ``edge`` (the links between workers and switch) and ``core`` (the
        link between switch and server), each with any of ``delay_ns``, ``jitter_ns`` and ``loss``
        (0 to below 1), alike in both directions. Addresses, cores and checkpoints have no meaning
        here. Raises ValueError (names the key).
        """

    @property
    def now_ns(self) -> int:
        """Virtual nanoseconds since the beginning."""

    def join(self, worker: int, weights: _Parts, timeout_ns: int, layout: str | None = None) -> int:
        """Join as `Client.join` does, and let time pass until the worker is in; the version.

        Raises ValueError for weights or a layout that cannot be, RefusedError, UnreachableError
        when ``timeout_ns`` of virtual time is over.
        """

    def push(self, worker: int, parts: _Parts, *, reward: float, weight: float = 1.0) -> int:
        """Send one update, now; its sequence number. Raises ValueError as `Client.push`."""

    def pull(self, worker: int, parts: _Parts, newer_than: int) -> int | None:
        """Copy the newest model that has come to the worker, if above ``newer_than``: its version.

        What the worker pushes from here on counts as computed on it.
        """

    def wait(self, worker: int, newer_than: int) -> None:
        """From here on the worker waits for a model above ``newer_than``, see `run_until`."""

    def awaits_end(self, worker: int) -> bool:
        """Whether an update of the worker is under way; see ``Client.awaits_end``."""

    def refresh(self, worker: int) -> None:
        """The worker asks for the server's newest model, now."""

    def wait_refreshed(self, worker: int) -> None:
        """From here on the worker waits for what it asked for: see ``run_until``."""

    def end_wait(self, worker: int) -> None:
        """The worker waits no more."""

    def holding(self, worker: int) -> bool:
        """Whether transmission control holds back what the worker pushed."""

    def run_until(self, ns: int) -> list[int]:
        """Let time pass: to ``ns``, or until workers that wait have their model.

        Returns these workers, which wait no more; empty: it is ``ns`` now.
        """

    def model(self) -> tuple[int, NDArray[np.float32]] | None:
        """The server's (version, parameters) now, or None while it has no model."""

    def stats(self) -> str:
        """JSON: ``now_ns``; ``server``, ``switch`` and the list ``workers`` as in
        ``docs/reference/statistics.md``; ``links``: datagrams ``sent``, ``lost`` and ``delivered``
        of ``edge_up``, ``edge_down``, ``core_up`` and ``core_down``.
        """

@final
class MinaSimulation:
    """Jobs on a cluster whose switches sum, in virtual time (MINA §V)."""

    def __new__(cls, setting: str, solve: Callable[[str], str | None] | None = None) -> Self:
        """Check; nothing is run yet.

        setting: JSON, see docs/reference/mina.md. solve: with ``exact`` trees asked for a better
        choice, a problem as JSON to a solution as JSON (`olaf.schedule.ilp`); what it raises,
        `advance` raises. Raises ValueError (says what to change; what is
        wrong with a job begins ``jobs[NUMBER]:``, counted from 0).
        """

    def advance(self, seconds: float) -> tuple[int, int, int, bool]:
        """Go on for about so long, with the GIL released.

        Returns jobs over, jobs running, nanoseconds of virtual time, and whether all are over.
        """

    def finish(self) -> str:
        """What it came to (``outcome``) and took to compute (``costs``), as JSON; once, at the end.

        Raises ValueError when it was taken before.
        """

@final
class Sweep:
    """Every run that deterministic senders can bring about, through the engine; or a part."""

    def __new__(cls, question: str, *, chunk: int = 0, chunks: int = 1) -> Self:
        """Begin; nothing is run yet. Part ``chunk`` of ``chunks`` that share the work.

        question: JSON with ``service`` (ticks, the paper's p/C), ``slots`` (Qmax), ``horizon``
        (ticks), ``senders`` (list of ``cluster`` and ``interval``, ticks), ``alike`` (of each
        cluster a number that equal ones share), ``kind`` (of `olaf.verify.instance.Kind`),
        ``about`` (clusters), ``hyperperiods`` (within how many a run must repeat itself; 0:
        nothing is asked beyond the horizon). Raises ValueError (says what to change).
        """

    def step(self, runs: int) -> str:
        """Make up to so many runs; the GIL is released meanwhile.

        JSON: ``classes`` of phases in all, ``done`` of this part, ``runs``, ``finished``,
        ``largest`` and ``for_ever`` (null, or ``value`` [numerator, denominator; 0: infinite] in
        ticks, share or count, ``phases``, ``ranks``, ``cycle`` [from, period] or null),
        ``repeats`` (whether every run so far repeats itself: else ``for_ever`` is null).
        """

    def to_horizon_only(self) -> None:
        """Ask nothing beyond the horizon from here on: runs are shorter."""

def simulate(scenario: str) -> str:
    """Run a scenario in virtual time: workers, a tree of queues, one server; JSON in and out.

    The keys stand in ``docs/reference/scenarios.md``. Raises ValueError (names what cannot be).
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

    ``head``: an update that is sent keeps its slot and is ``locked``, or keeps it and is still
    ``open`` to others, or has left it and is ``gone``.

    ``full=False`` leaves ``departures`` and ``fates`` out. Raises ValueError (names file and line).
    """

def parse_rate(text: str) -> int:
    """Bits per second of a rate as `tc` writes it: ``40gbit``, ``1.9mbit``. Raises ValueError."""

def parse_time(text: str) -> int:
    """Nanoseconds of a time: ``20ms``, ``1.5s``, ``2min``. Raises ValueError."""

def parse_size(text: str) -> int:
    """Bytes of a size: ``1500B``, ``9kB``, ``1.5MiB``. Raises ValueError."""

def format_time(ns: int) -> str:
    """Nanoseconds as a time that `parse_time` reads: ``20ms``."""

def format_size(bytes: int) -> str:
    """Bytes as a size that `parse_size` reads: ``9kB``."""

def format_rate(bits_per_second: int) -> str:
    """Bits per second as a rate that `parse_rate` reads: ``400kbit``. Raises ValueError."""

def update_bytes(parameters: int, config: str = "{}") -> int:
    """Bytes of UDP payload of one worker's update, headers included, as an uplink's rate counts.

    config: JSON as `Client` takes it. Raises ValueError for a key it cannot use.
    """

def queues() -> list[tuple[str, str]]:
    """The queue disciplines: of each its name, and what it does."""

def apply_rule(config: str, weights: NDArray[np.float32], updates: Any) -> Any:
    """Apply updates to weights by a server rule without a network (for tests and tuning).

    ``updates``: sequence of (sum of lanes, weight, reward, versions behind, contributors,
    contributions that changed the model since). Returns the list of booleans, whether each was
    applied; ``weights`` is changed in place.
    """

def time_engine(lanes: int, *, merged: int = 1, batches: int = 100) -> list[float]:
    """Nanoseconds that the switch's engine alone takes for an update; one value a batch.

    lanes: parameters in an update (one segment). merged: updates that meet in the queue and leave
    as one; 1 is only passing on. A batch is 64 departures. Raises ValueError for what cannot be.
    """

def deliver(delivery: str) -> str:
    """How long until a server has so many updates of each worker over one queue, in virtual time.

    JSON in and out: the fields of ``Delivery`` and ``Outcome`` in
    ``crates/olaf-sim/src/study/delivery``.
    Raises ValueError for what cannot be.
    """

@final
class Allocator:
    """The allocation controller's state machine (MINA §IV-A); JSON in and out, no I/O, no clock.

    Its fields stand in ``crates/olaf-sched/src/allocation`` (``Command``, ``Outcome``, ``JobView``,
    ``Explanation``, ``ClusterView``).
    """

    def __new__(cls, spec: str) -> Allocator:
        """Keys: topology, capacity, placement, trees, seed, most_queued, most_ended.

        ``topology`` is ``{"word": "fat-tree:16"}`` or ``{"graph": {..}}``; policies are words, or
        all that a word stands for. Raises ValueError (names the key and what it may be).
        """

    @staticmethod
    def resolve(spec: str) -> str:
        """The spec with all that its words stand for. Raises ValueError."""

    @staticmethod
    def restore(spec: str, snapshot: str) -> Allocator:
        """The state that a snapshot tells; it may later decide otherwise than its original would.

        Raises ValueError for what no state can be, and when trees would be planned differently.
        """

    def snapshot(self) -> str:
        """The state now, for ``restore``: ``Snapshot``."""

    def apply(self, now_ms: int, command: str) -> str:
        """One step: ``{"done": Outcome, "digest": n}`` or ``{"refused": {"why", "text"}}``.

        ``digest`` tells different outcomes apart. Raises ValueError for what is no command.
        """

    def replay(self, commands: list[tuple[int, str, int]], keep: int) -> str:
        """Apply commands that were accepted before: time, command, digest of its outcome.

        JSON: ``events`` (how many came), ``last`` (``keep`` of them at most), ``differs`` (None, or
        the place of the first that is decided differently now: nothing behind it was applied).
        Raises ValueError for what is no command.
        """

    def jobs(self, *, after: int = 0, most: int = 1000, state: str | None = None) -> str:
        """A JSON list of ``JobView``: jobs behind ``after``, in the order of submission.

        Raises ValueError for a state that there is not.
        """

    def job(self, job: int) -> str | None:
        """One ``JobView``; None when there is none, or when it was forgotten."""

    def explain(self, job: int) -> str | None:
        """An ``Explanation``; None when there is none, or when it was forgotten."""

    def cluster(self) -> str:
        """A ``ClusterView``."""

def tree_gain(pattern: str, network: str, hosts: int) -> int:
    """What a job wins by its tree, in host-nanoseconds a second of running.

    JSON in: ``Pattern`` and ``Network`` of ``crates/olaf-sched/src/pattern.rs``. Raises ValueError.
    """

def trees_policy(asked: str) -> str:
    """A policy that chooses trees, from its word and the parameters that were given; JSON.

    Keys: ``trees`` (``none``, ``first``, ``first-gain``, ``random``, ``mina``, ``gain``,
    ``exact``), and each null or left out for the policy's own: ``candidates``, ``join`` (``none``,
    ``one``, ``several``), ``price_millis``. Raises ValueError for a word or parameter that the
    policy does not have.
    """

@final
class SharingController:
    """The sharing controller over UDP (MINA §IV-B); works while ``run`` is called."""

    def __new__(cls, config: str) -> SharingController:
        """Take its port. ``config``: the fields of ``SharingConfig`` in ``crates/olaf-net``.

        Raises ValueError (names the key), OSError (the port cannot be had).
        """

    @property
    def address(self) -> str: ...
    def run(self, timeout_s: float) -> list[str]:
        """Work for so long, or until something must be acted on: what happened, as JSON.

        Raises OSError when the socket fails.
        """

    def statistics(self) -> str:
        """What it did so far, as JSON: rounds, and how late its timers were in microseconds."""

    def fenced(self, job: int) -> None:
        """The switches refuse the job from now on: what it held may be given on."""

    def fail(self, job: int) -> None:
        """The job has ended or failed: its tree is to be torn down."""

@final
class SharingHost:
    """One host of a job: plays its steps in real time, in threads of its own."""

    def __new__(cls, config: str) -> SharingHost:
        """Begin. ``config``: the fields of ``SharingHostConfig`` in ``crates/olaf-net``.

        Raises ValueError (names the key), OSError (the port cannot be had, or the log).
        """

    def is_done(self) -> bool:
        """Has it played everything, or failed?"""

    def finish(self) -> str:
        """End it; what it did, as JSON.

        Raises UnreachableError (names the host of the job that was waited for), OlafError.
        """

def share_group(group: str) -> str:
    """Jobs that share one aggregation tree in time, taken forward (MINA §V-C, Figure 12).

    JSON in: ``policy`` (none, greedy, mina, plan), ``network`` (``Network``),
    ``compute_speed_millis`` (1000 if not given), ``jobs`` (each ``{"pattern": Pattern, "hosts":
    n}``), ``until`` (``{"steps": n}`` each, or ``{"ns": n}``). JSON out: ``jobs`` (each ``steps``,
    ``ns`` when the last of them ended, ``shortest_ns``, ``longest_ns``, ``in_network_ns``,
    ``in_network`` and ``operations`` counted, ``none_ns`` and ``all_ns`` of a step), ``score`` and
    ``score_weighted`` by hosts (None if nobody could gain), ``bound`` and ``bound_weighted``: no
    policy exceeds them over a long time. Raises ValueError.
    """
