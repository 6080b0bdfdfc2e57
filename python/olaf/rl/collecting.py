"""Steps copies of an environment for a policy, and keeps what was seen: a rollout."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf.rl.checking import odd, refuse
from olaf.rl.copies import Copies, End, InTurn, Masks, close_all, which_of
from olaf.rl.environments import FaultyEnvironmentError, describe, make_environment
from olaf.rl.learner import Parallel

Act = Callable[[int, NDArray[np.float32], Masks | None], Sequence[Any]]
"""A policy, see `Collector.collect`."""

MOST_NUMBERS = 16
"""Numbers of ``info`` that are kept of each episode."""

SUCCESSES = ("is_success", "success")


@dataclass(frozen=True)
class Rollout:
    """The experience of ``steps`` turns of ``environments`` copies."""

    observations: NDArray[np.float32]
    """``(steps + 1, environments, *observation_shape)``; the last follows the last action."""

    rewards: NDArray[np.float32]
    """``(steps, environments)``, unscaled."""

    terminated: NDArray[np.bool_]
    """``(steps, environments)``: the episode ended in a terminal state of value 0."""

    truncated: NDArray[np.bool_]
    """``(steps, environments)``: the episode was cut, for instance by a time limit."""

    final: list[tuple[int, int, NDArray[np.float32]]]
    """(step, environment, next observation) at each cut, to bootstrap from."""

    episode_rewards: list[float]
    """Rewards of the episodes that ended, in order, unscaled."""

    episode_steps: list[int] = field(default_factory=list)
    """Steps of each of these episodes."""

    episode_numbers: list[dict[str, float]] = field(default_factory=list)
    """Numbers of each episode's last ``info``, see `numbers_of`."""

    masks: NDArray[np.bool_] | None = None
    """Allowed choices ``(steps, environments, actions)``; None if all choices are allowed."""

    skipped: NDArray[np.bool_] | None = None
    """``(steps, environments)``: the copy only began its next episode, and took no action; nothing
    can be learnt from this step. None if there are none."""

    @property
    def steps(self) -> int:
        """Steps that the environments took, over all copies."""
        return self.rewards.size - (0 if self.skipped is None else int(self.skipped.sum()))


class Collector:
    """Steps copies of an environment for a policy; episodes continue across rollouts."""

    def __init__(
        self,
        name: str,
        environments: int,
        seeds: Sequence[int],
        *,
        parallel: Parallel = "off",
        **how: Any,
    ) -> None:
        """Make and reset the copies, each with its seed. Raises ``UnusableEnvironmentError``.

        parallel: see `LearnerConfig.parallel`. how: ``flat``, ``images``, ``options``, ``worker``
        and ``max_steps`` of `make_environment`.
        """
        self._name = name
        self._copies = made(name, environments, parallel, **how)
        self.spaces = self._copies.spaces
        self._rows = 0
        self.ended: Sequence[End] = ()
        """The episodes that ended in the last row of steps."""
        self.on_steps: Callable[[int], None] = lambda steps: None
        """Called after each row of steps with the environment steps since the collector was made.
        An exception ends the rollout and passes through."""
        try:
            self._now = self._copies.reset(seeds)
        except BaseException:
            self.close()
            raise

    def collect(self, act: Act, steps: int, episodes: int = 0) -> Rollout:
        """Take ``steps`` steps; or, with ``episodes``, as many as that number of episodes needs.

        One more where no copy took an action in any of them (`Rollout.skipped`).

        act: (step, observations ``(environments, *observation_shape)``, allowed choices
        ``(environments, actions)`` or None) -> one action for each.
        Raises ``FaultyEnvironmentError``, and what the environment and ``on_steps`` raise.
        """
        copies = self._copies
        count = copies.count
        room = 1024 if episodes else steps
        shape = self.spaces.observation_shape
        observations = np.empty((room + 1, count, *shape), np.float32)
        rewards = np.zeros((room, count), np.float32)
        terminated = np.zeros((room, count), np.bool_)
        truncated = np.zeros((room, count), np.bool_)
        final: list[tuple[int, int, NDArray[np.float32]]] = []
        ends: list[End] = []
        masks: list[NDArray[np.bool_]] = []
        skipped: list[NDArray[np.bool_]] = []
        observations[0] = self._now
        now = observations[0]
        on_steps, step, masked = self.on_steps, copies.step, copies.masks is not None
        before = self._rows
        turn, acts = 0, copies.skipped is None
        while (len(ends) < episodes) if episodes else (turn < steps or not acts):
            if turn == room:
                room *= 2
                observations = grown(observations, room + 1)
                rewards, terminated = grown(rewards, room), grown(terminated, room)
                truncated = grown(truncated, room)
            if masked:
                masks.append(np.array(copies.masks))
            following = observations[turn + 1]
            try:
                actions = act(turn, now, masks[-1] if masked else None)
                self.ended = ended = step(actions, following, rewards, turn)
            except Exception as error:
                # A number before this step that is not finite may be the cause: name that instead.
                self._refuse_odd(
                    observations[: turn + 1],
                    rewards[:turn],
                    (terminated, truncated),
                    final,
                    error,
                )
                raise
            if copies.skipped is not None:
                skipped.append(copies.skipped)
                acts = acts or not copies.skipped.all()
            for end in ended:
                ends.append(end)
                if end.observation is None:
                    terminated[turn, end.copy] = True
                else:
                    truncated[turn, end.copy] = True
                    final.append((turn, end.copy, end.observation))
            turn += 1
            now = following
            self._rows = rows = before + turn
            on_steps(rows * count)
        self._now = now.copy()
        self._refuse_odd(observations[: turn + 1], rewards[:turn], (terminated, truncated), final)
        return Rollout(
            observations[: turn + 1],
            rewards[:turn],
            terminated[:turn],
            truncated[:turn],
            final,
            [end.reward for end in ends],
            [end.steps for end in ends],
            [numbers_of(end.info) for end in ends],
            np.array(masks) if masks else None,
            np.array(skipped) if skipped else None,
        )

    def _refuse_odd(
        self,
        observations: NDArray[np.float32],
        rewards: NDArray[np.float32],
        ended: tuple[NDArray[np.bool_], NDArray[np.bool_]],
        final: list[tuple[int, int, NDArray[np.float32]]],
        error: Exception | None = None,
    ) -> None:
        """Raise ``FaultyEnvironmentError`` for the first number that is not finite.

        The arrays are a rollout so far. The sum of a whole array is finite only if all its numbers
        are, and costs almost nothing.
        """
        arrays = [observations, rewards, *(last for _, _, last in final)]
        with np.errstate(invalid="ignore"):
            if all(math.isfinite(array.sum(dtype=np.float64)) for array in arrays):
                return
        before = self._rows - len(rewards)
        last = {(turn, index): seen for turn, index, seen in final}
        for turn, index in np.ndindex(rewards.shape):
            step = f"step {before + turn + 1}"
            if not np.isfinite(rewards[turn, index]):
                what = f"the reward is {rewards[turn, index]}"
            elif not np.isfinite(cut := last.get((turn, index), np.zeros(1))).all():
                what = odd("observation", cut)
            elif not np.isfinite(seen := observations[turn + 1, index]).all():
                what = odd("observation", seen)
                if any(ends[turn, index] for ends in ended):
                    step = f"reset after {step}"
            else:
                continue
            try:
                refuse(self._name, step, what, which_of(index, self._copies.count))
            except FaultyEnvironmentError as fault:
                raise fault from error

    def running_rewards(self) -> list[float]:
        """Reward so far of each running episode."""
        return self._copies.running_rewards()

    def longest_episode(self) -> int:
        """Steps so far of the longest running episode."""
        return self._copies.longest_episode()

    def close(self) -> None:
        """Close the environments."""
        self._copies.close()


def made(name: str, count: int, parallel: Parallel, **how: Any) -> Copies:
    """The copies of an environment. Raises ``UnusableEnvironmentError``."""
    if parallel != "off":
        from olaf.rl.parallel import in_processes, in_vector

        return (in_vector if parallel == "vector" else in_processes)(name, count, **how)
    envs: list[Any] = []
    try:
        for copy in range(count):
            envs.append(make_environment(name, copy=copy, copies=count, **how))
        return InTurn(name, envs, describe(name, envs[0]))
    except BaseException:
        close_all(envs)
        raise


def numbers_of(info: Any) -> dict[str, float]:
    """The numbers of an episode's last ``info``, by name: at most `MOST_NUMBERS`, all finite.

    ``is_success`` and ``success`` are both called ``success``.
    """
    found: dict[str, float] = {}
    if not info or not isinstance(info, Mapping):
        return found
    # A success counts, however many numbers there are.
    for name, value in sorted(info.items(), key=lambda pair: pair[0] not in SUCCESSES):
        number = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
        if not isinstance(number, Real | np.bool_):
            continue
        try:
            number = float(number)
        except OverflowError:  # an int beyond all floats
            continue
        if not math.isfinite(number):
            continue
        found.setdefault("success" if name in SUCCESSES else str(name), number)
        if len(found) == MOST_NUMBERS:
            break
    return found


def grown(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a longer copy of ``array``, zeros at the end."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
