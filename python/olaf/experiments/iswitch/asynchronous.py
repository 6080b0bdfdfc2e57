"""Asynchronous training over links: a parameter server, and iSwitch's Algorithm 1 (§4.1).

Gradients are real. Time is virtual: `Times` has the time of a gradient at a worker, and that of a
vector on a link. A link carries vectors one after the other. A switch and a server pass bytes on as
they come: a vector is through a second link as soon as through the first, where that is free.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from olaf.experiments import Spread
from olaf.experiments.iswitch.learners import LEARNERS
from olaf.experiments.iswitch.networks import Floats
from olaf.rl.adam import Adam

WINDOW = 20
"""Episodes in a mean reward."""


@dataclass(frozen=True)
class Times:
    """How long each part takes, s."""

    compute_s: float
    """A gradient, on average."""
    vector_s: float
    """A vector on a link."""
    spread: float = 0.0
    """Standard deviation of the time to compute, as a share of its mean: log-normal."""


@dataclass
class Course:
    """What happened until the mark was reached, or no iteration was left."""

    iterations: int = 0
    """Updates of the weights."""
    seconds: float = 0.0
    gradients: int = 0
    """Gradients that were applied."""
    stale: int = 0
    """Gradients that were dropped, because they were older than the bound."""
    ages: list[int] = field(default_factory=list)
    """Staleness of each applied gradient, in iterations."""
    reached: bool = False
    points: list[tuple[float, int, float]] = field(default_factory=list)
    """Seconds, iteration, mean reward of the last episodes."""
    kept: dict[int, Floats] = field(default_factory=dict)
    """Iterations that the caller asked for -> the weights then."""

    @property
    def iteration_s(self) -> float:
        """Mean time between two updates of the weights."""
        return self.seconds / max(self.iterations, 1)

    @property
    def age(self) -> float:
        """Mean staleness of the applied gradients."""
        return float(np.mean(self.ages)) if self.ages else 0.0

    @property
    def reward(self) -> float:
        """The last mean reward."""
        return self.points[-1][2] if self.points else float("nan")


class Training:
    """Weights, their optimizer and the workers' learners; it ends at a mark."""

    def __init__(self, algorithm: str, workers: int, seed: int, mark: float, most: int) -> None:
        """most: iterations after which it has failed."""
        of: Any = LEARNERS[algorithm]
        self.workers, self._mark, self._most = workers, mark, most
        self.learners = [of(1000 * seed + rank) for rank in range(workers)]
        self.weights: Floats = of.initial(np.random.default_rng(seed))
        self._adam = Adam(self.weights.size, 0.9, 0.999)
        self._rate = of.rate
        self._recent: deque[float] = deque(maxlen=WINDOW)
        self.course = Course()

    def gradient(self, rank: int, weights: Floats) -> Floats:
        """One worker's, at these weights."""
        learner = self.learners[rank]
        gradient: Floats = learner.gradient(weights)
        self._recent.extend(learner.returns)
        learner.returns.clear()
        return gradient

    def apply(self, mean: Floats, ages: list[int], now_s: float) -> bool:
        """One update of the weights; whether the training is over."""
        self._adam.step(self.weights, mean, self._rate)
        course = self.course
        course.iterations += 1
        course.seconds = now_s
        course.gradients += len(ages)
        course.ages += ages
        if len(self._recent) == WINDOW:
            reward = float(np.mean(self._recent))
            course.points.append((now_s, course.iterations, reward))
            course.reached = reward >= self._mark
        return course.reached or course.iterations >= self._most


class Events:
    """What is to come, by time; equal times in the order of their making."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Callable[[float], bool]]] = []
        self._made = 0

    def at(self, time_s: float, do: Callable[[float], bool]) -> None:
        """Call ``do`` with the time then; it returns whether all is over."""
        heapq.heappush(self._heap, (time_s, self._made, do))
        self._made += 1

    def run(self) -> None:
        """Until something says that all is over."""
        while self._heap:
            time_s, _, do = heapq.heappop(self._heap)
            if do(time_s):
                return


def parameter_server(training: Training, times: Times, bound: int, seed: int) -> Course:
    """Each gradient is an update of the server's weights, which go back to its worker.

    The server's link carries the gradients one after the other, and the weights likewise. As in
    the paper (§6.2) it drops gradients above the bound, too.
    """
    events, course = Events(), training.course
    drawn = [computing(times, seed, rank) for rank in range(training.workers)]
    into_s = out_of_s = 0.0

    def begin(rank: int, now_s: float, weights: Floats, version: int) -> None:
        done_s = now_s + next(drawn[rank])
        events.at(done_s, lambda at_s: computed(rank, at_s, weights, version))

    def computed(rank: int, now_s: float, weights: Floats, version: int) -> bool:
        nonlocal into_s
        gradient = training.gradient(rank, weights)
        into_s = max(now_s, into_s) + times.vector_s
        events.at(into_s, lambda at_s: arrived(rank, at_s, gradient, version))
        return False

    def arrived(rank: int, now_s: float, gradient: Floats, version: int) -> bool:
        nonlocal out_of_s
        age = course.iterations - version
        if age > bound:
            course.stale += 1
        elif training.apply(gradient, [age], now_s):
            return True
        sends_s = max(now_s, out_of_s)
        out_of_s = sends_s + times.vector_s
        events.at(sends_s, lambda at_s: sent(rank, at_s))
        return False

    def sent(rank: int, now_s: float) -> bool:
        begin(rank, now_s + times.vector_s, training.weights.copy(), course.iterations)
        return False

    for rank in range(training.workers):
        begin(rank, 0.0, training.weights.copy(), 0)
    events.run()
    return course


def pipelined(training: Training, times: Times, bound: int, seed: int) -> Course:
    """Algorithm 1: H gradients, from whichever workers, are an update at all of them.

    A worker computes the next gradient while the last one is on its way.
    """
    events, course = Events(), training.course
    drawn = [computing(times, seed, rank) for rank in range(training.workers)]
    up_s = [0.0] * training.workers
    down_s = 0.0
    waiting: list[tuple[Floats, int]] = []

    def begin(rank: int, now_s: float) -> None:
        weights, version = training.weights.copy(), course.iterations
        events.at(now_s + next(drawn[rank]), lambda at_s: computed(rank, at_s, weights, version))

    def computed(rank: int, now_s: float, weights: Floats, version: int) -> bool:
        gradient = training.gradient(rank, weights)
        if course.iterations - version <= bound:
            up_s[rank] = max(now_s, up_s[rank]) + times.vector_s
            events.at(up_s[rank], lambda at_s: summed(at_s, gradient, version))
        else:
            course.stale += 1
        begin(rank, now_s)
        return False

    def summed(now_s: float, gradient: Floats, version: int) -> bool:
        nonlocal down_s
        waiting.append((gradient, version))
        if len(waiting) == training.workers:
            # The sum of a packet goes down as soon as the last worker's packet is there.
            down_s = max(now_s, down_s + times.vector_s)
            whole = list(waiting)
            waiting.clear()
            events.at(down_s, lambda at_s: received(at_s, whole))
        return False

    def received(now_s: float, whole: list[tuple[Floats, int]]) -> bool:
        ages = [course.iterations - version for _, version in whole]
        mean = sum_of([gradient for gradient, _ in whole]) / np.float32(len(whole))
        return training.apply(mean, ages, now_s)

    for rank in range(training.workers):
        begin(rank, 0.0)
    events.run()
    return course


def synchronous(
    training: Training,
    iteration_s: float,
    orders: Callable[[int], list[list[int]]],
    keep: Sequence[int] = (),
) -> Course:
    """Each iteration sums one gradient of each worker.

    orders: for an iteration, in which order the workers' values are added in each part of the
    vector: all parts are equally long. keep: iterations after which the weights are kept.
    """
    course, ranks, over = training.course, range(training.workers), False
    while not over:
        gradients = [training.gradient(rank, training.weights) for rank in ranks]
        order = orders(course.iterations)
        cuts = [training.weights.size * at // len(order) for at in range(1, len(order))]
        parts = [np.split(gradient, cuts) for gradient in gradients]
        total = [sum_of([parts[rank][at] for rank in of]) for at, of in enumerate(order)]
        mean = np.concatenate(total) / np.float32(len(gradients))
        over = training.apply(mean, [0] * len(gradients), (course.iterations + 1) * iteration_s)
        if course.iterations in keep:
            course.kept[course.iterations] = training.weights.copy()
    return course


def rewards(courses: Sequence[Course], points: int = 40) -> list[tuple[float, Spread]]:
    """Mean reward over virtual seconds, one value per course: the last one until then.

    It begins when all courses have a reward, and ends with the longest course.
    """
    begin = max(course.points[0][0] for course in courses)
    end = max(course.points[-1][0] for course in courses)
    curve = []
    for at in np.linspace(begin, end, points):
        last = [max((p for p in c.points if p[0] <= at), key=lambda p: p[1])[2] for c in courses]
        curve.append((float(at), Spread.of(last)))
    return curve


def computing(times: Times, seed: int, rank: int) -> Iterator[float]:
    """A worker's times to compute, drawn alike for every approach."""
    random = np.random.default_rng([seed, rank])
    sigma = float(np.sqrt(np.log1p(times.spread**2)))
    while True:
        yield times.compute_s * float(np.exp(random.normal(-(sigma**2) / 2, sigma)))


def sum_of(vectors: list[Floats]) -> Floats:
    """One after the other, in float32: the order counts."""
    total = vectors[0].copy()
    for vector in vectors[1:]:
        total += vector
    return total
