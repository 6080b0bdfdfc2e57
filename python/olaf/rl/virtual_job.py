"""A whole job in one process and in virtual time: for tuning, for tests, for planning machines.

Workers of varying speed run the real learners and the real loop. Between them are the real switch,
the real server and the workers' real protocol (`olaf._olaf.VirtualJob`). Links delay datagrams and
may lose them. Time is counted, never slept: the same configuration and seed give the same result
to the last bit on a busy machine too.
"""

import heapq
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf._olaf import VirtualJob
from olaf.rl.compute import Compute, Steady, speeds
from olaf.rl.learner import LearnerConfig, Parts
from olaf.rl.making import make_learner, resolved
from olaf.rl.seeding import seed_everything
from olaf.rl.worker_loop import Loop, LoopConfig, Progress

Weights = NDArray[np.float32]
Table = Mapping[str, Any]

NS = 1_000_000_000
WINDOW = 100
"""Number of episodes in the mean reward, as in ``train.reward_window``."""


@dataclass(frozen=True)
class Link:
    """A link between two parties, the same in both directions."""

    delay_s: float = 0.00025
    """One-way delay of a datagram in seconds."""
    jitter_s: float = 0.0
    """Largest additional delay in seconds, drawn for each datagram."""
    loss: float = 0.0
    """Probability that a datagram is lost, from 0 to below 1."""

    def to_core(self) -> dict[str, float]:
        """The link as `VirtualJob` takes it."""
        delay_ns, jitter_ns = round(self.delay_s * NS), round(self.jitter_s * NS)
        return {"delay_ns": delay_ns, "jitter_ns": jitter_ns, "loss": self.loss}


@dataclass(frozen=True)
class JobConfig:
    """A job in virtual time. Tables have the keys and defaults of the real roles' JSON."""

    learner: LearnerConfig = field(default_factory=LearnerConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    server: Table = field(default_factory=dict)
    """Keys of `olaf._olaf.Server`: ``rule``, ``staleness_power``, ``aggregate``, .."""
    switch: Table = field(default_factory=dict)
    """Keys of `olaf._olaf.Switch`: ``queue``, ``slots``, ``uplink_bps``, .."""
    worker: Table = field(default_factory=dict)
    """Keys of `olaf._olaf.Client`: ``transmission``, ``segment_lanes``, .."""
    edge: Link = field(default_factory=Link)
    """Link between each worker and the switch."""
    core: Link = field(default_factory=Link)
    """Link between the switch and the server."""
    workers: int = 8
    clusters: int = 8
    """Worker i belongs to cluster i mod clusters; each cluster has one slot of the queue."""
    compute: Compute = field(default_factory=Steady)
    """Length of a turn on a machine of speed 1."""
    speeds: float = 1.0
    """The fastest machine's speed divided by the slowest's; the mean speed is 1."""

    def to_core(self) -> str:
        """The configuration as `VirtualJob` takes it."""
        tables = {
            "seed": self.learner.seed,
            "clusters": [worker % self.clusters for worker in range(self.workers)],
            "server": dict(self.server),
            "switch": {"upstream": "server", **self.switch},
            "worker": dict(self.worker),
            "edge": self.edge.to_core(),
            "core": self.core.to_core(),
        }
        return json.dumps(tables)


@dataclass(frozen=True)
class Point:
    """A worker's progress at a virtual time."""

    time_s: float
    progress: Progress


Act = Callable[[], Point | None]
"""An event at a virtual time; a `Point` if it ends a worker's turn."""


@dataclass(frozen=True)
class Outcome:
    """The result of a job. ``curve`` has a point per turn: (environment steps of all workers,
    virtual seconds, mean reward of the last 100 episodes of all workers)."""

    curve: list[tuple[int, float, float]]
    reward: float
    """Mean reward of the last 100 episodes."""
    steps: int
    updates: int
    time_s: float
    steps_to: int | None
    """Steps until that mean, over at least 100 episodes, first reached ``until_reward``."""
    time_to_s: float | None
    """Virtual seconds until then."""
    weights: Weights
    """The server's model; for a machine without a network, its own."""
    stats: dict[str, Any] = field(default_factory=dict)
    """Counters, see `olaf._olaf.VirtualJob.stats`; empty for a machine without a network."""

    @property
    def applied(self) -> int:
        """Contributions that changed the model, each segment of an update counted."""
        fates = self._served["fates"]
        return int(fates["delivered_alone"] + fates["delivered_merged"])

    @property
    def refused(self) -> int:
        """Contributions that the server's gate refused, each segment of an update counted."""
        return int(self._served["fates"]["gated"])

    @property
    def fates(self) -> dict[str, int]:
        """Fates of contributions at the switch; ``alone`` and ``merged`` ones left it.

        Each segment of an update is counted.
        """
        fates = self.stats["switch"]["fates"]
        return {
            "alone": fates["sent_alone"],
            "merged": fates["merged"],
            "replaced": fates["replaced"],
            "filtered": fates["filtered"],
            "dropped": sum(fates["dropped"].values()),
        }

    @property
    def staleness_mean(self) -> float:
        """Mean number of model versions between an update's model and the model it changed."""
        return float(self._served["staleness_mean"] or 0.0)

    @property
    def _served(self) -> dict[str, Any]:
        (job,) = self.stats["server"]["jobs"]
        return dict(job)


class VirtualConnection:
    """One worker's connection to the job. Implements ``Connection``."""

    def __init__(self, job: VirtualJob, worker: int) -> None:
        self._job, self._worker = job, worker

    def join(self, weights: Parts, timeout_s: float) -> int:
        """Join; virtual time passes until the worker is in."""
        return self._job.join(self._worker, weights, round(timeout_s * NS))

    def push(self, parts: Parts, *, reward: float, weight: float = 1.0) -> int:
        """Send the update at the current virtual time."""
        return self._job.push(self._worker, parts, reward=reward, weight=weight)

    def pull(self, parts: Parts, newer_than: int) -> int | None:
        """Copy the newest model that has arrived."""
        return self._job.pull(self._worker, parts, newer_than)

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        """Raise: only the job lets time pass, for all workers together."""
        raise RuntimeError("virtual time passes in LocalJob.progress(), not in a worker's call")

    def awaits_end(self) -> bool:
        """True while an update is unanswered."""
        return self._job.awaits_end(self._worker)

    def refresh(self) -> None:
        """Ask for the newest model at the current virtual time."""
        self._job.refresh(self._worker)

    def refreshed(self, timeout_s: float) -> bool:
        """Raise, as `wait` does."""
        raise RuntimeError("virtual time passes in LocalJob.progress(), not in a worker's call")

    def holding(self) -> bool:
        """True if transmission control holds back an update."""
        return self._job.holding(self._worker)


class LocalJob:
    """Runs a job; ``progress()`` yields every worker's turns in order of virtual time."""

    def __init__(self, config: JobConfig) -> None:
        """Make learners, switch and server. Raises ValueError for an invalid key."""
        self.config = config
        self.job = VirtualJob(config.to_core())
        self._begin_ns = 0
        self._events: list[tuple[int, int, Act]] = []
        self._order = 0
        self._waiting: dict[int, tuple[int, Act]] = {}
        """Waiting worker -> (order of the event that ends its wait, what follows)."""
        self._steps = 0
        """Environment steps of all workers."""
        seed = config.learner.seed
        told = resolved(config.learner)
        seed_everything(seed, 0)
        with ExitStack() as made:
            learners = [
                made.enter_context(closing(make_learner(told, worker)))
                for worker in range(config.workers)
            ]
            for learner in learners:
                learner.steps_of_run = lambda: self._steps
            self._loops = [
                Loop(
                    learner,
                    VirtualConnection(self.job, worker),
                    worker=worker,
                    config=config.loop,
                    clock=self.now,
                )
                for worker, learner in enumerate(learners)
            ]
            self._learners = made.pop_all()
        self._turns = [config.compute.turns(seed, worker) for worker in range(config.workers)]
        self._speeds = speeds(config.workers, config.speeds)
        self._pass_s = [0.0] * config.workers

    def now(self) -> float:
        """Virtual seconds since all workers had joined."""
        return (self.job.now_ns - self._begin_ns) / NS

    def progress(self, updates: int) -> Iterator[Point]:
        """Run until ``updates`` updates of all workers are pushed and processed."""
        for loop in self._loops:
            loop.join()
        self._begin_ns = self.job.now_ns
        for worker in range(self.config.workers):
            self._after(0.0, partial(self._collect, worker))
        done = 0
        while done < updates:
            at_ns = self._events[0][0]
            answered = self.job.run_until(at_ns)
            points: list[Point | None] = [self._answered(worker) for worker in answered]
            for point in points or [self._next()]:
                if point is not None and done < updates:
                    done += len(point.progress.pushes_at_s)
                    yield point

    def run(
        self,
        updates: int,
        until_reward: float | None = None,
        stop: bool = True,
        *,
        step_limit: float = math.inf,
        on_steps: Callable[[int], None] = lambda steps: None,
    ) -> Outcome:
        """Run ``updates`` updates, or until another limit is reached; then close environments.

        The run stops earlier at ``step_limit`` environment steps of all workers, or, with ``stop``,
        when the mean reward reaches ``until_reward``.

        on_steps: called after each turn with the environment steps of all workers so far.
        """
        course = Course(until_reward)
        with closing(self):
            course.follow(self.progress(updates), stop, step_limit, on_steps)
        time_s = self.now()
        model = self.job.model()
        assert model is not None, "joined before the first turn"
        return course.outcome(time_s, model[1], json.loads(self.job.stats()))

    def close(self) -> None:
        """Close the environments of all workers."""
        self._learners.close()

    def _collect(self, worker: int) -> None:
        steps = self._loops[worker].collect()
        self._steps += steps
        collecting_s, learning_s = self._turns[worker].next(steps)
        speed = self._speeds[worker]
        self._pass_s[worker] = learning_s / speed / self.config.learner.passes
        self._after(collecting_s / speed, partial(self._ask, worker))

    def _ask(self, worker: int) -> None:
        waits_s = self._loops[worker].ask()
        if waits_s == 0:
            return self._learn(worker)
        self.job.wait_refreshed(worker)
        self._wait(worker, waits_s, partial(self._asked, worker))
        return None

    def _asked(self, worker: int) -> None:
        self._loops[worker].has_waited()
        self._learn(worker)

    def _learn(self, worker: int) -> None:
        learnt = self._loops[worker].learn()
        self._after(learnt.passes * self._pass_s[worker], partial(self._push, worker))

    def _push(self, worker: int) -> Point | None:
        loop = self._loops[worker]
        loop.push()
        waits_s = loop.waits_s()
        if waits_s == 0:
            return self._take(worker)
        self.job.wait(worker, loop.version)
        self._wait(worker, waits_s, partial(self._take, worker))
        return None

    def _take(self, worker: int) -> Point | None:
        progress = self._loops[worker].take(waited=True)
        if progress is None:
            self._ask(worker)
            return None
        self._after(0.0, partial(self._collect, worker))
        return Point(self.now(), progress)

    def _wait(self, worker: int, seconds: float, then: Act) -> None:
        order = self._after(seconds, partial(self._waited, worker, self._order))
        self._waiting[worker] = order, then

    def _answered(self, worker: int) -> Point | None:
        """End the wait of a worker whose model is here; the event at its end then does nothing."""
        _, then = self._waiting.pop(worker)
        return then()

    def _waited(self, worker: int, order: int) -> Point | None:
        waiting = self._waiting.get(worker)
        if waiting is None or waiting[0] != order:
            return None
        self.job.end_wait(worker)
        return self._answered(worker)

    def _after(self, seconds: float, act: Act) -> int:
        """Schedule ``act``; return its number in the order of scheduling."""
        order = self._order
        self._order += 1
        heapq.heappush(self._events, (self.job.now_ns + round(seconds * NS), order, act))
        return order

    def _next(self) -> Point | None:
        _, _, act = heapq.heappop(self._events)
        return act()


class Alone:
    """One machine without a network: the same learner, the same turns, in virtual time."""

    def __init__(self, config: JobConfig) -> None:
        """Make the learner of worker 0."""
        seed_everything(config.learner.seed, 0)
        self.learner = make_learner(config.learner, 0)
        self._applies = config.learner.gradient_kind == "gradient"
        self._turns = config.compute.turns(config.learner.seed, 0)
        self._factor = float(config.server.get("learning_rate", 1.0))

    def progress(self, updates: int) -> Iterator[Point]:
        """Run ``updates`` turns."""
        progress, now_s = Progress(0), 0.0
        for update in range(1, updates + 1):
            turn = self.learner.iterate()
            if self._applies:
                # No server applies the update, so its step is taken here.
                for part, change in zip(self.learner.parts(), turn.update, strict=True):
                    np.add(part, self._factor * change, out=part)
            now_s += sum(self._turns.next(turn.steps))
            progress = Progress(
                worker=0,
                updates=update,
                steps=progress.steps + turn.steps,
                episodes=progress.episodes + turn.episodes,
                episode_rewards=turn.episode_rewards,
                reward=turn.reward,
                pushes_at_s=(now_s,),
                turns=progress.turns + 1,
            )
            yield Point(now_s, progress)

    def run(
        self,
        updates: int,
        until_reward: float | None = None,
        stop: bool = True,
        *,
        step_limit: float = math.inf,
        on_steps: Callable[[int], None] = lambda steps: None,
    ) -> Outcome:
        """See `LocalJob.run`."""
        course = Course(until_reward)
        with closing(self.learner):
            now_s = course.follow(self.progress(updates), stop, step_limit, on_steps)
        flat = np.concatenate([part.ravel() for part in self.learner.parts()])
        return course.outcome(now_s, flat, {})


class Course:
    """Collects the turns of all workers, in order of time."""

    def __init__(self, until_reward: float | None) -> None:
        self._until_reward = until_reward
        self._recent: list[float] = []
        self._curve: list[tuple[int, float, float]] = []
        self.steps = self._updates = 0
        self._steps_of: dict[int, int] = {}
        self._reached: tuple[int, float] | None = None

    def follow(
        self,
        points: Iterable[Point],
        stop: bool,
        step_limit: float,
        on_steps: Callable[[int], None],
    ) -> float:
        """Take turns until the limits of `LocalJob.run`; return the last turn's time in seconds."""
        time_s = 0.0
        for point in points:
            time_s = point.time_s
            over = self.see(point) and stop
            on_steps(self.steps)
            if over or self.steps >= step_limit:
                break
        return time_s

    def see(self, point: Point) -> bool:
        """Take in one turn; return whether the reward has been reached."""
        progress = point.progress
        self._updates += len(progress.pushes_at_s)
        self.steps += progress.steps - self._steps_of.get(progress.worker, 0)
        self._steps_of[progress.worker] = progress.steps
        self._recent = (self._recent + list(progress.episode_rewards))[-WINDOW:]
        mean = float(np.mean(self._recent)) if self._recent else progress.reward
        self._curve.append((self.steps, point.time_s, mean))
        if (
            self._reached is None
            and self._until_reward is not None
            and len(self._recent) == WINDOW
            and mean >= self._until_reward
        ):
            self._reached = self.steps, point.time_s
        return self._reached is not None

    def outcome(self, time_s: float, weights: Weights, stats: dict[str, Any]) -> Outcome:
        """The result so far."""
        reached = self._reached or (None, None)
        return Outcome(
            curve=self._curve,
            reward=self._curve[-1][2],
            steps=self.steps,
            updates=self._updates,
            time_s=time_s,
            steps_to=reached[0],
            time_to_s=reached[1],
            weights=weights,
            stats=stats,
        )
