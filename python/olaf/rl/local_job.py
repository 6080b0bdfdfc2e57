"""A whole asynchronous job in one process and in virtual time: for tuning and for tests.

Workers of varying speed run the real learners and the real loop; a server applies the real rules,
written here in numpy; between them is an ideal network or a constrained queue. Time is counted,
never slept: the same configuration and seed give the same result to the last bit.

This is the twin of what the Rust core does over sockets, not a replacement for it: one segment an
update, no loss on the wire, nobody dies.
"""

import heapq
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from olaf.rl.learner import Learner, LearnerConfig, Parts, make_learner
from olaf.rl.worker_loop import Loop, LoopConfig, Progress

Weights = NDArray[np.float32]


@dataclass(frozen=True)
class RuleConfig:
    """How the server turns an update into the next model; names as in the server's settings."""

    rule: Literal["delta", "paper-literal"] = "delta"
    learning_rate: float = 1.0
    step: Literal["mean", "sum"] = "mean"
    """A merge moves the model by its mean, or by its weight times that: n for n updates."""
    gate: Literal["none", "best", "recent"] = "none"
    """Refuse an update whose reward is below the best so far, or below the recent mean."""
    gate_margin: float = 0.0
    staleness_power: float = 0.7
    """Scale an update by (1 + versions behind)^-power: as many versions came between as there are
    workers that moved the model without knowing of this one. Measured, see ``docs/training.md``."""
    recent: float = 0.1
    """Weight of the newest reward in the recent mean (``gate = recent``)."""


@dataclass(frozen=True)
class NetworkConfig:
    """What lies between workers and server, in virtual seconds."""

    queue: Literal["olaf", "fifo"] = "olaf"
    slots: int = 8
    updates_per_s: float | None = None
    """Departures a second of the uplink; None for a link on which nothing ever waits."""
    latency_s: float = 0.0005
    """From departure to the model's arrival at the worker."""
    clusters: int = 8
    """Worker i belongs to cluster i mod clusters; one slot of the queue is one cluster's."""


@dataclass(frozen=True)
class JobConfig:
    """A job in virtual time."""

    learner: LearnerConfig = field(default_factory=LearnerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    rule: RuleConfig = field(default_factory=RuleConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    workers: int = 8
    steps_per_s: float = 5000.0
    """Environment steps that a worker of middling speed takes, learning included."""
    spread: float = 0.3
    """Workers' speeds are evenly spread over 1 - spread .. 1 + spread of that; and each turn's
    length is drawn from +-10 % of its own."""


@dataclass
class Message:
    """An update on its way: a sum, a weight, and whose it is."""

    cluster: int
    sum: Weights
    weight: float
    reward: float
    oldest: int
    """Oldest model version that a contributor computed on."""
    newest: int
    workers: list[int]


class Server:
    """The parameter server's rules, as plainly as they can be written."""

    def __init__(self, config: RuleConfig) -> None:
        self.config = config
        self.weights: Weights | None = None
        self.version = 0
        self.applied = self.refused = 0
        self.staleness: list[int] = []
        self._best = -np.inf
        self._recent: float | None = None
        self._average: Weights | None = None

    def start(self, weights: Weights) -> None:
        """OLAF §2.1: the first worker's weights start the job, later ones' are discarded."""
        if self.weights is None:
            self.weights = weights.copy()
            self.version = 1

    def apply(self, message: Message) -> bool:
        """Take one delivered update; whether it changed the model."""
        if self.weights is None:
            raise RuntimeError("no worker has joined")
        behind = (self.version - message.oldest + self.version - message.newest) // 2
        self.staleness.append(behind)
        mean = message.sum / np.float32(message.weight)
        literal = self.config.rule == "paper-literal"
        taken = self._literal(message, mean) if literal else self._delta(message, mean, behind)
        self.version += taken
        self.applied += taken
        self.refused += not taken
        return taken

    def _delta(self, message: Message, mean: Weights, behind: int) -> bool:
        config, reward = self.config, message.reward
        taken = True
        if config.gate == "best":
            taken = reward >= self._best - config.gate_margin
        elif config.gate == "recent" and self._recent is not None:
            taken = reward >= self._recent - config.gate_margin
        self._best = max(self._best, reward)
        last = reward if self._recent is None else self._recent
        self._recent = last + config.recent * (reward - last)
        if taken:
            factor = config.learning_rate * (1.0 + behind) ** -config.staleness_power
            if config.step == "sum":
                factor *= message.weight
            self._move(np.float32(factor) * mean)
        return taken

    def _literal(self, message: Message, mean: Weights) -> bool:
        # OLAF §2.1, word for word: r_g = -inf at first; only if r_i > r_g, w <- w + gamma g_a
        # with g_a = avg(g_a, g_i), and r_g becomes r_i. Freezes once a lucky episode set r_g.
        if not message.reward > self._best:
            return False
        self._best = message.reward
        average = mean if self._average is None else (self._average + mean) / np.float32(2)
        self._average = average
        self._move(np.float32(self.config.learning_rate) * average)
        return True

    def _move(self, step: Weights) -> None:
        if self.weights is not None:
            self.weights = self.weights + step


class Uplink:
    """A queue before a link: OLAF's, which merges and replaces, or FIFO."""

    def __init__(self, config: NetworkConfig) -> None:
        self.config = config
        self.fates = {"alone": 0, "merged": 0, "replaced": 0, "dropped": 0}
        self._queue: list[Message] = []
        self._sending: Message | None = None

    def arrive(self, message: Message) -> None:
        """Queue an update: replace, merge, append or drop it (the architecture's rules 1 to 4)."""
        used = len(self._queue) + (self._sending is not None)
        if self.config.queue == "olaf":
            for waiting in self._queue:
                if waiting.cluster == message.cluster:
                    self._combine(waiting, message)
                    return
        if used >= self.config.slots:
            self.fates["dropped"] += 1
            return
        self._queue.append(message)

    def _combine(self, waiting: Message, message: Message) -> None:
        if waiting.workers == message.workers:
            self.fates["replaced"] += 1
            waiting.sum, waiting.reward = message.sum, message.reward
            waiting.oldest, waiting.newest = message.oldest, message.newest
            return
        total = waiting.weight + message.weight
        waiting.reward += (message.reward - waiting.reward) * message.weight / total
        waiting.sum = waiting.sum + message.sum
        waiting.weight = total
        waiting.oldest = min(waiting.oldest, message.oldest)
        waiting.newest = max(waiting.newest, message.newest)
        waiting.workers = waiting.workers + message.workers

    def begin(self) -> bool:
        """Start to send the head if the link is free; whether it did."""
        if self._sending is not None or not self._queue:
            return False
        self._sending = self._queue.pop(0)
        return True

    def finish(self) -> Message:
        """Return the update that has now left."""
        message, self._sending = self._sending, None
        if message is None:
            raise RuntimeError("nothing is being sent")
        fate = "alone" if len(message.workers) == 1 else "merged"
        self.fates[fate] += len(message.workers)
        return message


class EmulatedConnection:
    """One worker's end of the emulated job. Implements ``Connection``."""

    def __init__(self, job: "LocalJob", worker: int, cluster: int) -> None:
        self._job, self._worker, self._cluster = job, worker, cluster
        self._version = 0
        self._newest: tuple[int, Weights] | None = None
        self._pushed = 0

    def join(self, weights: Parts, timeout_s: float) -> int:
        """Offer weights; the model is there at once."""
        server = self._job.server
        server.start(np.concatenate([part.ravel() for part in weights]))
        if server.weights is not None:
            self._newest = (server.version, server.weights)
        return server.version

    def push(self, parts: Parts, *, reward: float, weight: float = 1.0) -> int:
        """Put the update on the uplink."""
        total = np.concatenate([part.ravel() for part in parts]) * np.float32(weight)
        version = self._version
        message = Message(self._cluster, total, weight, reward, version, version, [self._worker])
        self._job.send(message)
        self._pushed += 1
        return self._pushed - 1

    def pull(self, parts: Parts, newer_than: int) -> int | None:
        """Copy the newest model that has arrived."""
        if self._newest is None or self._newest[0] <= newer_than:
            return None
        self._version, flat = self._newest
        offset = 0
        for part in parts:
            part[...] = flat[offset : offset + part.size].reshape(part.shape)
            offset += part.size
        return self._version

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        """Say what is here: the job has let the time pass already."""
        return self._newest[0] if self._newest and self._newest[0] > newer_than else None

    def holding(self) -> bool:
        """Return False: there is no transmission control in here."""
        return False

    def answered(self, version: int, weights: Weights) -> None:
        """Take in a model's arrival."""
        if self._newest is None or version > self._newest[0]:
            self._newest = (version, weights)


@dataclass(frozen=True)
class Point:
    """A worker's progress at a virtual time."""

    time_s: float
    progress: Progress


@dataclass(frozen=True)
class Outcome:
    """How a job ended. ``curve``: (environment steps of all workers, virtual seconds, mean reward
    of the last 100 episodes of all workers), a point per update."""

    curve: list[tuple[int, float, float]]
    reward: float
    """Mean reward of the last 100 episodes."""
    steps: int
    updates: int
    time_s: float
    steps_to: int | None
    """Steps until that mean first reached ``until_reward``, over at least 100 episodes."""
    applied: int
    refused: int
    fates: dict[str, int]
    staleness_mean: float
    weights: Weights


class LocalJob:
    """Runs a job; ``progress()`` yields every worker's turns in order of virtual time."""

    def __init__(self, config: JobConfig) -> None:
        if config.loop.wait_for_model_s > 0:
            raise ValueError("wait_for_model_s: no time passes while a worker waits in emulation")
        self.config = config
        self.server = Server(config.rule)
        self.uplink = Uplink(config.network)
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], Point | None]]] = []
        self._order = 0
        self._rng = np.random.default_rng([config.learner.seed, 2**31])
        self._learners: list[Learner] = [
            make_learner(config.learner, worker) for worker in range(config.workers)
        ]
        self._connections = [
            EmulatedConnection(self, worker, worker % config.network.clusters)
            for worker in range(config.workers)
        ]
        self._loops = [
            Loop(
                self._learners[worker],
                self._connections[worker],
                worker=worker,
                config=config.loop,
                clock=lambda: self.now,
            )
            for worker in range(config.workers)
        ]
        self._speeds = config.steps_per_s * np.linspace(
            1 - config.spread, 1 + config.spread, config.workers
        )

    def progress(self, updates: int) -> Iterator[Point]:
        """Run until ``updates`` have been taken account of, over all workers."""
        for loop in self._loops:
            loop.join()
        for worker in range(self.config.workers):
            self._at(0.0, partial(self._compute, worker))
        done = 0
        while done < updates:
            self.now, _, act = heapq.heappop(self._events)
            point = act()
            if point is not None:
                done += 1
                yield point

    def run(self, updates: int, until_reward: float | None = None, stop: bool = True) -> Outcome:
        """Run to the end, or to the reward if ``stop``."""
        recent: list[float] = []
        curve: list[tuple[int, float, float]] = []
        steps, reached = 0, None
        before = [0] * self.config.workers
        for point in self.progress(updates):
            progress = point.progress
            steps += progress.steps - before[progress.worker]
            before[progress.worker] = progress.steps
            recent = (recent + list(progress.episode_rewards))[-100:]
            mean = float(np.mean(recent)) if recent else progress.reward
            curve.append((steps, point.time_s, mean))
            if until_reward is not None and len(recent) == 100 and mean >= until_reward:
                reached = reached or steps
                if stop:
                    break
        server = self.server
        assert server.weights is not None, "joined before the first turn"
        return Outcome(
            curve=curve,
            reward=curve[-1][2],
            steps=steps,
            updates=len(curve),
            time_s=self.now,
            steps_to=reached,
            applied=server.applied,
            refused=server.refused,
            fates=dict(self.uplink.fates),
            staleness_mean=float(np.mean(server.staleness or [0])),
            weights=server.weights,
        )

    def send(self, message: Message) -> None:
        """Take an update from a worker, at the time it is now."""
        if self.config.network.updates_per_s is None:
            self.uplink.fates["alone"] += 1
            self._deliver(message)
            return
        self.uplink.arrive(message)
        self._transmit()

    def _transmit(self) -> None:
        rate = self.config.network.updates_per_s
        if rate is not None and self.uplink.begin():
            self._at(self.now + 1 / rate, self._departed)

    def _departed(self) -> None:
        self._deliver(self.uplink.finish())
        self._transmit()

    def _deliver(self, message: Message) -> None:
        self.server.apply(message)
        version, weights = self.server.version, self.server.weights
        assert weights is not None, "a worker joins before it sends"
        connections = [self._connections[worker] for worker in message.workers]

        def arrive() -> None:
            for connection in connections:
                connection.answered(version, weights)

        self._at(self.now + self.config.network.latency_s, arrive)

    def _compute(self, worker: int) -> None:
        turn = self._loops[worker].compute()
        took = turn.steps / self._speeds[worker] * self._rng.uniform(0.9, 1.1)
        self._at(self.now + took, partial(self._push, worker))

    def _push(self, worker: int) -> None:
        self._loops[worker].push()
        # differs: patience lets its whole time pass here; the real wait ends with the answer.
        patience = min(self.config.loop.patience_s, self.config.network.latency_s * 2)
        self._at(self.now + patience, partial(self._take, worker))

    def _take(self, worker: int) -> Point:
        progress = self._loops[worker].take()
        self._at(self.now, partial(self._compute, worker))
        return Point(self.now, progress)

    def _at(self, time_s: float, act: Callable[[], Point | None]) -> None:
        heapq.heappush(self._events, (time_s, self._order, act))
        self._order += 1


def describe(config: JobConfig) -> str:
    """Return the configuration as one line of JSON, for a result's provenance."""
    return json.dumps(asdict(config))
