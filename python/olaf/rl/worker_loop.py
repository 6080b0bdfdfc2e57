"""The asynchronous loop of one worker: collect, learn, push, take a new model if there is one.

OLAF §2.1: a worker sends its update and continues; no worker waits for another. The loop knows a
connection only by its protocol, so the real client, the emulation and a test's fake all fit.

differs: the paper's worker pushes once per turn. Here each pass over the turn's steps starts from
the newest model and is pushed separately. An update is then as old as a pass, not as a turn, and
many workers overshoot less (docs/training.md has the measurements).
"""

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from olaf.rl.learner import Iteration, Learner, OnRefused, Parts

SLICE_S = 0.1
"""Seconds between a waiting worker's checks whether it should stop."""


class Connection(Protocol):
    """A worker's connection to a job; ``olaf._olaf.Client`` is the real one."""

    def join(self, weights: Parts, timeout_s: float) -> int:
        """Join, offering ``weights`` as the job's first model; return the model's version."""

    def push(self, parts: Parts, *, reward: float, weight: float = 1.0) -> int:
        """Send one update without waiting for an answer; return its sequence number."""

    def pull(self, parts: Parts, newer_than: int) -> int | None:
        """Copy the newest model into ``parts`` if above ``newer_than``; its version, or None."""

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        """Wait until a model above ``newer_than`` is here; return its version, or None."""

    def refresh(self) -> None:
        """Ask for the newest model, without waiting for it."""

    def refreshed(self, timeout_s: float) -> bool:
        """Wait for the answer to `refresh`; return whether it has come."""

    def awaits_end(self) -> bool:
        """True while the newest update is unanswered."""

    def holding(self) -> bool:
        """True if transmission control holds back an update, so that no answer comes."""


class InterruptedTurn(Exception):  # noqa: N818 - not an error
    """The worker was asked to stop in the middle of a turn, see `NumpyLearner.watch`."""


class Ration(Protocol):
    """The updates that a worker may push. Its parent raises the number, `olaf.jobs.rations`."""

    def updates(self) -> int:
        """Updates that may be pushed in all."""

    def wait(self, timeout_s: float) -> object:
        """Wait until the number may have risen, at most this long."""


@dataclass(frozen=True)
class LoopConfig:
    """When a worker pushes, waits and takes models."""

    on_refused: OnRefused = "continue"
    """After an update without a newer model in return (refused by a gate, lost, or under way):
    ``continue`` from the worker's own weights, or ``reset`` to the last model it received."""

    push_every: Literal["pass", "turn"] = "pass"
    """``pass``: every pass over the collected steps starts from the newest model and is pushed
    separately. While an update of the worker is unanswered, its passes are summed for the next
    push. The end of a turn is always pushed. ``turn``: all passes of a turn are one update."""

    patience_s: float = 0.02
    """Seconds that a worker waits for the answer to its update, and for the newest model before it
    learns. 0 never waits; a few milliseconds on a fast network avoid a pass on an old model. A
    worker does not wait for an update that transmission control holds back."""

    waiting_share: float = 0.2
    """Largest share of a worker's time that its patience may cost. On a narrow uplink the worker
    then continues with its present model."""

    wait_for_model_s: float = 0.0
    """For a server that aggregates in rounds (synchronous training): seconds that a worker waits
    for a newer model. Then it reports the missing model and continues with its own. 0 never waits
    (asynchronous training)."""

    turns_per_push: int = 1
    """Number of turns that are pushed as one update: the sum of their changes, with the mean reward
    of the episodes that ended in them. Above 1 a worker continues from its own weights between two
    pushes and takes no model, whatever ``push_every`` says."""

    join_timeout_s: float = 30.0
    """Time limit for joining in seconds; then the worker gives up with a message."""

    weight: float = 1.0
    """Weight of this worker's updates in a merge."""


@dataclass(frozen=True)
class Progress:
    """The state of a worker after a turn. Counts and seconds are since the loop began."""

    worker: int
    updates: int = 0
    """Updates pushed."""
    pushes_at_s: tuple[float, ...] = ()
    """Times of this turn's pushes, by the loop's clock: on Linux one clock for all processes."""
    turns: int = 0
    steps: int = 0
    episodes: int = 0
    episode_rewards: tuple[float, ...] = ()
    """Rewards of the episodes that ended during the last turn only."""
    episode_steps: tuple[int, ...] = ()
    """Steps of these episodes."""
    episode_numbers: tuple[dict[str, float], ...] = ()
    """Numbers of the last ``info`` of these episodes."""
    losses: dict[str, float] = field(default_factory=dict)
    """`Iteration.losses` of the last turn: the mean over its passes."""
    reward: float = 0.0
    """The mean reward that was pushed with the last update."""
    model_version: int = 0
    """Model version that the last update was computed on."""
    staleness: int = 0
    """Model versions between the last update's model and the newest that this worker knew when the
    update was pushed or, with patience, answered. Only the server knows the exact number."""
    unanswered: int = 0
    """Updates for which no newer model came within ``wait_for_model_s``."""
    seconds_env: float = 0.0
    seconds_learn: float = 0.0
    seconds_network: float = 0.0
    """Seconds inside the connection's calls: copying, sending, waiting with patience."""


class _Unpushed:
    """The sum of all changes since the last push."""

    def __init__(self) -> None:
        self.passes = self.turns = 0
        self.sum: Parts = []
        self._rewards: list[float] = []
        self._gamma = 1.0

    def add(self, learnt: Iteration) -> None:
        """Add an update. It is the learner's own buffer, which the next pass overwrites."""
        if not self.sum:
            self.sum = [np.empty_like(part) for part in learnt.update]
        for total, part in zip(self.sum, learnt.update, strict=True):
            np.add(total, part, out=total) if self.passes else np.copyto(total, part)
        self._rewards += learnt.episode_rewards
        self._gamma = learnt.gamma
        self.passes += 1
        self.turns += learnt.is_last

    def reward(self, otherwise: float) -> float:
        """The mean reward of the episodes that ended since the last push, or else ``otherwise``."""
        return sum(self._rewards) / len(self._rewards) if self._rewards else otherwise

    def put_on(self, parts: Parts) -> None:
        """Add the changes that are not pushed yet to a model."""
        if self.passes:
            for part, total in zip(parts, self.sum, strict=True):
                np.add(part, np.float32(self._gamma) * total, out=part)

    def clear(self) -> None:
        """Start again at zero: everything is pushed."""
        self.passes = self.turns = 0
        self._rewards = []


class _Losses:
    """The mean of a turn's losses over its passes."""

    def __init__(self) -> None:
        self._passes: list[tuple[int, dict[str, float]]] = []

    def add(self, learnt: Iteration) -> None:
        """Add the losses of one or more passes."""
        self._passes.append((learnt.passes, learnt.losses))

    def taken(self) -> dict[str, float]:
        """The means by name, each over the passes that have the name; starts again at nothing."""
        passes, self._passes = self._passes, []
        sums: dict[str, float] = {}
        counts: dict[str, int] = {}
        for count, losses in passes:
            for name, value in losses.items():
                sums[name] = sums.get(name, 0.0) + count * value
                counts[name] = counts.get(name, 0) + count
        return {name: value / counts[name] for name, value in sums.items()}


class Loop:
    """One worker's turns, divided into steps in which time passes.

    A turn is `collect`, then `ask`, `learn`, `push` and `take` until `take` returns its `Progress`.
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
        permit: Callable[[], bool] = lambda: True,
    ) -> None:
        """``permit`` is asked before each push, and may wait; after its False nothing is pushed."""
        self.config = config or LoopConfig()
        self._stop, self._permit = stop, permit
        self._is_permitted = True
        self._learner, self._connection, self._clock = learner, connection, clock
        self._parts = learner.parts()
        self._served = [part.copy() for part in self._parts]
        self._version = 0
        self._learnt: Iteration | None = None
        self._losses = _Losses()
        self._unpushed = _Unpushed()
        self._is_pushed = self._is_first = False
        self._asking_s = self.config.patience_s
        """Seconds that the last question took."""
        self._joined_at_s = self._asked_at_s = self._waited_s = 0.0
        self._progress = Progress(worker)
        # What changes several times in a pass; `_noted` brings it into the progress.
        self.updates = 0
        """Updates pushed so far."""
        self._pushes_at_s: list[float] = []
        self._network_s = self._reward = 0.0

    def join(self) -> int:
        """Join the job and take its model; return the version. Raises the connection's errors."""
        begin = self._clock()
        version = self._connection.join(self._parts, self.config.join_timeout_s)
        self._version = self._connection.pull(self._parts, 0) or version
        self._keep()
        self._joined_at_s = self._clock()
        self._spent(begin)
        return self._version

    def collect(self) -> int:
        """Run the policy in the environments; return the environment steps."""
        self.report()
        self._is_first = True
        return self._learner.collect()

    def report(self) -> Progress:
        """The progress so far; the next one holds later episodes and pushes only."""
        progress = self._noted()
        self._pushes_at_s = []
        self._progress = dataclasses.replace(
            progress,
            episode_rewards=(),
            episode_steps=(),
            episode_numbers=(),
            pushes_at_s=(),
        )
        return progress

    def turn(self, updates: int | None = None) -> Progress:
        """Run a whole turn, one step after the other; stop early when ``updates`` are pushed."""
        self.collect()
        while True:
            waits_s = self.ask()
            if waits_s > 0:
                self._connection.refreshed(waits_s)
                self.has_waited()
            self.learn()
            self.push()
            progress = self.take()
            if progress is not None:
                return progress
            if not self._is_permitted or (updates is not None and self.updates >= updates):
                return self._noted()

    def ask(self) -> float:
        """Before `learn`: ask for the newest model; return the seconds to wait for it.

        0 if the answer to the last push has already brought it.
        """
        is_first, self._is_first = self._is_first, False
        if not self._by_pass or self.config.patience_s == 0:
            return 0.0
        if not is_first and not self._connection.awaits_end():
            return 0.0
        begin = self._asked_at_s = self._clock()
        self._connection.refresh()
        self._spent(begin)
        return self._patience_s()

    def has_waited(self) -> None:
        """After the wait that `ask` allowed: count its time."""
        self._asking_s = self._clock() - self._asked_at_s
        self._waited_s += self._asking_s
        self._spent(self._asked_at_s)

    def learn(self) -> Iteration:
        """Make the next pass over the collected steps, from the newest model; `push` follows.

        Makes all passes of the turn at once if a push holds them all.
        """
        if self.config.turns_per_push == 1:
            begin = self._clock()
            self._pull()
            self._spent(begin)
        self._learnt = learnt = self._learner.learn(1 if self._by_pass else None)
        self._losses.add(learnt)
        self._unpushed.add(learnt)
        return learnt

    def push(self) -> None:
        """Send the changes since the last push, if a push is due. Never waits.

        Over a transport that blocks (`olaf.tcp`), this waits until the network has taken the bytes.
        """
        learnt = self._learnt
        if learnt is None:
            raise RuntimeError("push() follows learn()")
        self._is_pushed = self._is_time_to_push(learnt) and self._may_push()
        if not self._is_pushed:
            return
        reward = learnt.reward
        if self.config.turns_per_push > 1:
            reward = self._unpushed.reward(otherwise=reward)
        begin = self._clock()
        self._connection.push(self._unpushed.sum, reward=reward, weight=self.config.weight)
        self._unpushed.clear()
        self._spent(begin)
        self.updates += 1
        self._pushes_at_s.append(begin)
        self._reward = reward

    @property
    def version(self) -> int:
        """Version of the model that the worker computes on."""
        return self._version

    def waits_s(self) -> float:
        """Seconds that `take` would wait now, at most, for a model above `version`."""
        if not self._is_pushed or self._connection.holding():
            return 0.0  # Nothing was sent that could be answered; the next push decides again.
        if self.config.wait_for_model_s > 0:
            return self.config.wait_for_model_s
        # An update that takes much longer than a question waits in a queue: then asking is faster.
        quick_s = max(2 * self._asking_s, 0.001) if self._by_pass else math.inf
        return min(self._patience_s(), quick_s)

    def _patience_s(self) -> float:
        """Remaining seconds of patience, by `patience_s` and by the worker's whole time."""
        config, time_s = self.config, self._clock() - self._joined_at_s
        left_s = config.patience_s + config.waiting_share * time_s - self._waited_s
        return min(config.patience_s, max(0.0, left_s))

    def take(self, *, waited: bool = False) -> Progress | None:
        """Wait as long as patience allows, then take a newer model if there is one.

        Returns the progress at the end of a turn, and None while the turn has passes left.
        waited: the caller has let the time of `waits_s` pass since the push, or a model came.
        """
        learnt = self._learnt
        if learnt is None:
            raise RuntimeError("take() follows push()")
        computed_on = self._version
        unanswered = self._take_model(waited) if self._is_pushed else 0
        self._learnt = None
        so_far = self._progress
        self._progress = dataclasses.replace(
            so_far,
            turns=so_far.turns + learnt.is_last,
            steps=so_far.steps + learnt.steps,
            episodes=so_far.episodes + learnt.episodes,
            episode_rewards=so_far.episode_rewards + learnt.episode_rewards,
            episode_steps=so_far.episode_steps + learnt.episode_steps,
            episode_numbers=so_far.episode_numbers + learnt.episode_numbers,
            model_version=computed_on,
            staleness=self._version - computed_on,
            unanswered=so_far.unanswered + unanswered,
            seconds_env=so_far.seconds_env + learnt.seconds_env,
            seconds_learn=so_far.seconds_learn + learnt.seconds_learn,
            losses=self._losses.taken() if learnt.is_last else {},
        )
        return self._noted() if learnt.is_last else None

    @property
    def _by_pass(self) -> bool:
        return self.config.push_every == "pass" and self.config.turns_per_push == 1

    def _is_time_to_push(self, learnt: Iteration) -> bool:
        if learnt.is_last:
            return self._unpushed.turns >= self.config.turns_per_push
        # A second update of this worker would replace its first in a queue. While the first is
        # unanswered, changes are summed for the next push.
        return self._by_pass and not self._connection.awaits_end()

    def _may_push(self) -> bool:
        self._is_permitted = self._is_permitted and self._permit()
        return self._is_permitted

    def _take_model(self, waited: bool) -> int:
        """Take the answer to a push, or another newer model; return 1 if waiting for one failed."""
        begin = self._pushes_at_s[-1] if waited else self._clock()
        waits_s = 0.0 if waited else self.waits_s()
        expects = self.config.wait_for_model_s > 0 and not self._connection.holding()
        if waits_s > 0:
            if expects:
                expects = not self._model_comes()
            else:
                self._connection.wait(self._version, waits_s)
        if self.config.wait_for_model_s == 0:
            self._waited_s += self._clock() - begin
        is_newer = self._pull()
        if not is_newer and self.config.on_refused == "reset":
            for part, kept in zip(self._parts, self._served, strict=True):
                part[...] = kept
        self._spent(begin)
        return int(expects and not is_newer)

    def _pull(self) -> bool:
        """Take the newest model if it is newer; changes that are not pushed stay on top of it."""
        newer = self._connection.pull(self._parts, self._version)
        if newer is None:
            return False
        self._version = newer
        self._keep()
        self._unpushed.put_on(self._parts)
        return True

    def _model_comes(self) -> bool:
        """Wait for a newer model; False at the end of its time, True also when told to stop."""
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
        self._network_s += self._clock() - begin

    def _noted(self) -> Progress:
        """The progress with what has changed since the last `take`."""
        self._progress = dataclasses.replace(
            self._progress,
            updates=self.updates,
            pushes_at_s=tuple(self._pushes_at_s),
            reward=self._reward,
            seconds_network=self._network_s,
        )
        return self._progress


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
    ration: Ration | None = None,
) -> Progress:
    """Join, then work until ``updates`` are pushed or ``stop()``, asked before each turn, is true.

    A worker that has used up its ``ration`` reports, and waits for more in the middle of its turn.

    Raises what ``connection.join`` raises. Returns the last progress. A new model replaces the
    weights and keeps the optimiser's moments, since they describe the same landscape. Does not
    leave the job: the caller owns the connection.
    """

    def permit() -> bool:
        if ration is None or loop.updates < ration.updates():
            return True
        on_progress(loop.report())  # the parent gives more when it hears that this is used up
        while loop.updates >= ration.updates():
            if stop():
                return False
            ration.wait(SLICE_S)
        return True

    loop = Loop(
        learner, connection, worker=worker, config=config, clock=clock, stop=stop, permit=permit
    )
    loop.join()
    progress = Progress(worker)
    while (updates is None or progress.updates < updates) and not stop():
        try:
            progress = loop.turn(updates)
        except InterruptedTurn:
            break
        on_progress(progress)
    return progress
