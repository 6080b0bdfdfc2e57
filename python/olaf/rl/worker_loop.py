"""The asynchronous loop of one worker: collect, learn, push, take a new model if one has come.

OLAF §2.1: a worker sends its update and goes on; nobody waits for anybody. The loop knows a
connection only by its protocol, so that the real client, the emulation and a test's fake serve
alike.
"""

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from olaf.rl.learner import Iteration, Learner, OnRefused, Parts

SLICE_S = 0.1
"""A worker that waits for a model looks so often whether it should stop."""


class Connection(Protocol):
    """A worker's end of a job; ``olaf._olaf.Client`` is the real one."""

    def join(self, weights: Parts, timeout_s: float) -> int:
        """Join, offering ``weights`` as the job's first model; the model's version."""

    def push(self, parts: Parts, *, reward: float, weight: float = 1.0) -> int:
        """Send one update without waiting for an answer; its sequence number."""

    def pull(self, parts: Parts, newer_than: int) -> int | None:
        """Copy the newest model into ``parts`` if above ``newer_than``; its version, or None."""

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        """Wait until a model above ``newer_than`` is here; its version, or None."""

    def holding(self) -> bool:
        """Whether transmission control holds back what was pushed, so that no answer comes."""


@dataclass(frozen=True)
class LoopConfig:
    """How a worker behaves towards the network."""

    on_refused: OnRefused = "continue"
    """What a worker does whose update brought no newer model (refused by a gate, lost, or still
    under way): ``continue`` from its own weights, or ``reset`` to the last model it was given."""

    patience_s: float = 0.02
    """Seconds that a worker waits for the answer to its update before it collects again.
    0 never waits; a few milliseconds on a quick network spare it one turn on an old model. An
    update that transmission control holds back is not waited for."""

    wait_for_model_s: float = 0.0
    """Synchronous training, where the server aggregates in rounds: seconds a worker waits for a
    newer model than the one its update was computed on, before it says so and goes on with its
    own. 0 is asynchronous training: nobody waits for anybody."""

    join_timeout_s: float = 30.0
    """Seconds after which a job that cannot be joined is given up, with a message."""

    weight: float = 1.0
    """Weight of this worker's updates in a merge."""


@dataclass(frozen=True)
class Progress:
    """Where a worker stands after an update. Counts and seconds are since the loop began."""

    worker: int
    updates: int = 0
    steps: int = 0
    episodes: int = 0
    episode_rewards: tuple[float, ...] = ()
    """Rewards of the episodes that ended during the last turn only."""
    reward: float = 0.0
    """The mean reward that was pushed with the last update."""
    pushed_at_s: float = 0.0
    """When the last update was pushed, by the loop's clock: on Linux one for all processes."""
    model_version: int = 0
    """Version that the last update was computed on."""
    staleness: int = 0
    """Versions by which the job's model had moved on, as far as this worker has seen, when the
    last update was pushed or, with patience, answered. The server knows it exactly."""
    unanswered: int = 0
    """Updates for which no newer model came within ``wait_for_model_s``."""
    seconds_env: float = 0.0
    seconds_learn: float = 0.0
    seconds_network: float = 0.0
    """Inside the connection's calls: copying, sending, waiting with patience."""


class Loop:
    """One worker's turns, in the steps of which time passes: `compute`, `push`, `take`.

    ``work`` runs them one after the other; the emulation lets virtual time pass between them.
    """

    def __init__(
        self,
        learner: Learner,
        connection: Connection,
        *,
        worker: int,
        config: LoopConfig | None = None,
        clock: Callable[[], float] = time.perf_counter,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.config = config or LoopConfig()
        self._stop = stop
        self._learner, self._connection, self._clock = learner, connection, clock
        self._parts = learner.parts()
        self._served = [part.copy() for part in self._parts]
        self._version = 0
        self._turn: Iteration | None = None
        self._pushed_at_s = 0.0
        self._progress = Progress(worker)

    def join(self) -> int:
        """Join the job and take its model; the version. Raises what the connection raises."""
        begin = self._clock()
        version = self._connection.join(self._parts, self.config.join_timeout_s)
        self._version = self._connection.pull(self._parts, 0) or version
        self._keep()
        self._spent(begin)
        return self._version

    def compute(self) -> Iteration:
        """Collect and learn."""
        self._turn = turn = self._learner.iterate()
        return turn

    def push(self) -> None:
        """Send the turn's update. Never waits."""
        turn = self._turn
        if turn is None:
            raise RuntimeError("push() follows compute()")
        begin = self._pushed_at_s = self._clock()
        self._connection.push(turn.update, reward=turn.reward, weight=self.config.weight)
        self._spent(begin)

    def take(self) -> Progress:
        """Wait as long as patience allows, take a newer model if there is one, and account."""
        turn = self._turn
        if turn is None:
            raise RuntimeError("take() follows push()")
        begin = self._clock()
        unanswered = 0
        if self._connection.holding():
            pass  # Nothing was sent that could be answered; the next push decides anew.
        elif self.config.wait_for_model_s > 0:
            unanswered = int(not self._model_comes())
        elif self.config.patience_s > 0:
            self._connection.wait(self._version, self.config.patience_s)
        computed_on = self._version
        newer = self._connection.pull(self._parts, self._version)
        if newer is not None:
            self._version = newer
            self._keep()
        elif self.config.on_refused == "reset":
            for part, kept in zip(self._parts, self._served, strict=True):
                part[...] = kept
        self._spent(begin)
        self._turn = None
        so_far = self._progress
        self._progress = dataclasses.replace(
            so_far,
            updates=so_far.updates + 1,
            steps=so_far.steps + turn.steps,
            episodes=so_far.episodes + turn.episodes,
            episode_rewards=turn.episode_rewards,
            reward=turn.reward,
            pushed_at_s=self._pushed_at_s,
            model_version=computed_on,
            staleness=self._version - computed_on,
            unanswered=so_far.unanswered + unanswered,
            seconds_env=so_far.seconds_env + turn.seconds_env,
            seconds_learn=so_far.seconds_learn + turn.seconds_learn,
        )
        return self._progress

    def _model_comes(self) -> bool:
        """Wait for a newer model; False when its time is over, True also when told to stop."""
        deadline = self._clock() + self.config.wait_for_model_s
        while (left := deadline - self._clock()) > 0:
            if self._connection.wait(self._version, min(left, SLICE_S)) is not None:
                return True
            if self._stop():
                return True
        return False

    def _keep(self) -> None:
        for kept, part in zip(self._served, self._parts, strict=True):
            kept[...] = part

    def _spent(self, begin: float) -> None:
        seconds = self._progress.seconds_network + self._clock() - begin
        self._progress = dataclasses.replace(self._progress, seconds_network=seconds)


def work(
    learner: Learner,
    connection: Connection,
    *,
    worker: int,
    updates: int | None = None,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Progress], None] = lambda progress: None,
    config: LoopConfig | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> Progress:
    """Join, then work until ``updates`` are pushed or ``stop()`` says so, asked before each turn.

    Raises what ``connection.join`` raises. Gives the last progress.
    A new model replaces the weights and leaves the optimiser's moments: they describe the
    landscape, which is the same. Does not leave the job: the caller owns the connection.
    """
    loop = Loop(learner, connection, worker=worker, config=config, clock=clock, stop=stop)
    loop.join()
    progress = Progress(worker)
    while (updates is None or progress.updates < updates) and not stop():
        loop.compute()
        loop.push()
        progress = loop.take()
        on_progress(progress)
    return progress
