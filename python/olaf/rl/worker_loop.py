"""The asynchronous loop of one worker: collect, learn, push, take a new model if one has come.

OLAF §2.1: a worker sends its update and goes on; nobody waits for anybody. The loop knows a
connection only by its protocol, so that the real client, the emulation and a test's fake serve
alike.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from olaf.rl.learner import Learner, OnRefused, Parts


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


@dataclass(frozen=True)
class LoopConfig:
    """How a worker behaves towards the network."""

    on_refused: OnRefused = "continue"
    """What a worker does whose update brought no newer model (refused by a gate, lost, or still
    under way): ``continue`` from its own weights, or ``reset`` to the last model it was given."""

    patience_s: float = 0.0
    """Seconds that a worker waits for the answer to its update before it collects again.
    0 never waits; a few milliseconds on a quick network spare it one turn on an old model."""

    join_timeout_s: float = 30.0
    """Seconds after which a job that cannot be joined is given up, with a message."""

    weight: float = 1.0
    """Weight of this worker's updates in a merge."""


@dataclass(frozen=True)
class Progress:
    """Where a worker stands after an update. Counts and seconds are since the loop began."""

    worker: int
    updates: int
    steps: int
    episodes: int
    episode_rewards: tuple[float, ...]
    """Rewards of the episodes that ended during the last turn only."""
    reward: float
    """The mean reward that was pushed with the last update."""
    model_version: int
    """Version that the last update was computed on."""
    staleness: int
    """Versions by which the job's model had moved on, as far as this worker has seen, when the
    last update was pushed or, with patience, answered. The server knows it exactly."""
    seconds_env: float
    seconds_learn: float
    seconds_network: float
    """Inside the connection's calls: copying, sending, waiting with patience."""


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
) -> Progress | None:
    """Join, then work until ``updates`` are pushed or ``stop()`` says so, asked before each turn.

    Raises what ``connection.join`` raises. Gives the last progress, or None if there was none.
    A new model replaces the weights and leaves the optimiser's moments: they describe the
    landscape, which is the same. Does not leave the job: the caller owns the connection.
    """
    config = config or LoopConfig()
    parts = learner.parts()
    begin = clock()
    version = connection.join(parts, config.join_timeout_s)
    version = connection.pull(parts, 0) or version
    network = clock() - begin
    served = [part.copy() for part in parts]
    progress: Progress | None = None
    steps = episodes = done = 0
    seconds_env = seconds_learn = 0.0
    while (updates is None or done < updates) and not stop():
        turn = learner.iterate()
        begin = clock()
        connection.push(turn.update, reward=turn.reward, weight=config.weight)
        if config.patience_s > 0:
            connection.wait(version, config.patience_s)
        newer = connection.pull(parts, version)
        computed_on = version
        if newer is not None:
            version = newer
            for kept, part in zip(served, parts, strict=True):
                kept[...] = part
        elif config.on_refused == "reset":
            for kept, part in zip(served, parts, strict=True):
                part[...] = kept
        network += clock() - begin
        done += 1
        steps += turn.steps
        episodes += turn.episodes
        seconds_env += turn.seconds_env
        seconds_learn += turn.seconds_learn
        progress = Progress(
            worker=worker,
            updates=done,
            steps=steps,
            episodes=episodes,
            episode_rewards=turn.episode_rewards,
            reward=turn.reward,
            model_version=computed_on,
            staleness=version - computed_on,
            seconds_env=seconds_env,
            seconds_learn=seconds_learn,
            seconds_network=network,
        )
        on_progress(progress)
    return progress
