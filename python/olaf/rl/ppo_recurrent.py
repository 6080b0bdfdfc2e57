"""PPO of a network with a memory: ``--learner torch --set learner.recurrent=lstm``.

The memory of each environment copy goes on across turns, and is zero at the start of an episode. A
turn is learnt in sequences: steps of one episode, in order, at most `LONGEST`. A sequence begins
with the memory that the collecting network had there (Kapturowski et al. 2019, "stored state"), and
gradients go back to its first step. Imported only when it is used.
"""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,untyped-decorator,type-arg"

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from olaf.rl.collecting import Rollout
from olaf.rl.networks import Network
from olaf.rl.objective import Batch
from olaf.rl.ppo_torch import TorchLearner

LONGEST = 64
"""Most steps of a sequence, and so the furthest that a gradient reaches back."""

Floats = NDArray[np.float32]
Counts = NDArray[np.int64]


class RecurrentLearner(TorchLearner):
    """PPO of the default network with an LSTM before its heads. Implements ``Learner``."""

    module: Network

    def _start(self) -> None:
        units = self.config.memory
        self.memory_size = 2 * units
        self._memory = np.zeros((self.config.environments, self.memory_size), np.float32)
        """The memory of each copy before its next step."""
        self._memories: list[Floats] = []
        """The same before each step of the rollout."""
        super()._start()
        assert self.module.lstm is not None
        # It computes the same in both modes, but cuDNN has no gradients of an LSTM in eval mode.
        self.module.lstm.train()

    def _loss_module(self) -> nn.Module:
        self._replay = Replay(self.module)
        return self._replay

    def policy(self, observations: Floats, memory: Floats | None = None) -> Floats:
        """See `NumpyLearner.policy`. Without a memory, each observation is an episode's first."""
        if memory is None:
            memory = np.zeros((len(observations), self.memory_size), np.float32)
        self._take_moments()
        stepped: tuple[Floats, Floats] = self._step(self._inputs(observations), memory)
        outputs, memory[:] = stepped
        return outputs

    @torch.no_grad()
    def _step(self, inputs: Floats, memory: Floats) -> tuple[Floats, Floats]:
        ones = np.ones(len(inputs), np.int64)
        found = self.module.sequences(self._there(inputs), ones, self._there(memory))
        return both(*found[:2]), found[2].cpu().numpy()

    def _act(self, turn: int, inputs: Floats) -> Floats:
        if turn == 0:
            self._memories = []
        self._forget()
        self._memories.append(self._memory)
        stepped: tuple[Floats, Floats] = self._step(inputs, self._memory)
        outputs, self._memory = stepped
        return outputs

    def _forget(self) -> None:
        """Empty the memory of the copies whose episode ended in the last step."""
        for end in self._collector.ended:
            self._memory[end.copy] = 0

    def _replayed(self, seen: Floats, rollout: Rollout) -> tuple[Floats, Floats]:
        """See `NumpyLearner._replayed`. Each sequence is followed by the state after it."""
        turns, count = rollout.rewards.shape
        last = {(at, copy): self._inputs(final[None])[0] for at, copy, final in rollout.final}
        pieces = pieces_of(rollout.terminated | rollout.truncated)
        rows = [row for piece in pieces for row in (*piece.rows(count), piece.row_after(count))]
        inputs = seen[rows]
        ends = np.cumsum([piece.length + 1 for piece in pieces]) - 1
        for piece, end in zip(pieces, ends.tolist(), strict=True):
            after = last.get((piece.end - 1, piece.copy))
            if after is not None:
                inputs[end] = after
        lengths = np.array([piece.length + 1 for piece in pieces])
        first = self._first_memories(pieces)
        with torch.no_grad():
            found = self.module.sequences(self._there(inputs), lengths, self._there(first))
            outputs = both(*found[:2])
        is_step = np.ones(len(rows), np.bool_)
        is_step[ends] = False
        at = np.array(rows)[is_step]
        ordered = np.empty((turns * count, outputs.shape[1]), np.float32)
        ordered[at] = outputs[is_step]
        following = np.empty(turns * count, np.float32)
        following[at] = outputs[np.flatnonzero(is_step) + 1, -1]
        self._pieces = pieces
        return ordered, following.reshape(turns, count)

    def _first_memories(self, pieces: "list[Piece]") -> Floats:
        return np.array([self._memories[piece.begin][piece.copy] for piece in pieces])

    def _batch(self, turn: Any) -> Batch:
        batch, count = super()._batch(turn), self.config.environments
        rows = [row for piece in self._pieces for row in piece.rows(count)]
        ordered = batch.rows(np.array(rows))
        return Sequences(
            **{field.name: getattr(ordered, field.name) for field in fields(Batch)},
            lengths=np.array([piece.length for piece in self._pieces]),
            memories=self._first_memories(self._pieces),
        )

    def _epochs(self, batch: Batch, passes: int) -> Iterator[list[Batch]]:
        """The minibatches of each pass: whole sequences, shuffled, of about equal size."""
        assert isinstance(batch, Sequences)
        sequences, steps = len(batch.lengths), len(batch.advantages)
        count = min(max(1, round(steps / self.config.minibatch)), sequences)
        for _ in range(passes):
            drawn = np.array_split(self._rng.permutation(sequences), count)
            yield [batch.some(which).normalised() for which in drawn]

    def _backward(self, batch: Batch) -> dict[str, float]:
        assert isinstance(batch, Sequences)
        self._replay.told = batch.lengths, self._there(batch.memories)
        return super()._backward(batch)


def both(policy: Tensor, value: Tensor) -> Floats:
    """Policy and value side by side, as an array."""
    outputs: Floats = torch.cat([policy, value[:, None]], dim=1).cpu().numpy()
    return outputs


@dataclass(frozen=True)
class Piece:
    """Steps of one copy in one episode: a sequence."""

    copy: int
    begin: int
    end: int
    """The turn after the last step."""

    @property
    def length(self) -> int:
        """Number of steps."""
        return self.end - self.begin

    def rows(self, count: int) -> range:
        """Rows of its steps among the steps of ``count`` copies, ``(turns * count, ..)``."""
        return range(self.begin * count + self.copy, self.end * count + self.copy, count)

    def row_after(self, count: int) -> int:
        """The row of the state after the last step."""
        return self.end * count + self.copy


def pieces_of(ended: NDArray[np.bool_]) -> list[Piece]:
    """The sequences of a rollout, from the ends of its episodes ``(turns, copies)``."""
    pieces: list[Piece] = []
    turns, count = ended.shape
    for copy in range(count):
        begin = 0
        for end in [*(np.flatnonzero(ended[:, copy]) + 1).tolist(), turns]:
            while begin < end:
                pieces.append(Piece(copy, begin, min(end, begin + LONGEST)))
                begin = pieces[-1].end
    return pieces


@dataclass(frozen=True, kw_only=True)
class Sequences(Batch):
    """Steps in order of their sequences."""

    lengths: Counts
    """Steps of each sequence, ``(sequences,)``"""
    memories: Floats
    """Memory before the first step of each sequence, ``(sequences, memory)``"""

    def some(self, which: Counts) -> "Sequences":
        """Some of the sequences."""
        begins = np.cumsum(self.lengths) - self.lengths
        steps = np.concatenate(
            [np.arange(begins[one], begins[one] + self.lengths[one]) for one in which]
        )
        rows = self.rows(steps)
        return replace(
            self,
            **{field.name: getattr(rows, field.name) for field in fields(Batch)},
            lengths=self.lengths[which],
            memories=self.memories[which],
        )

    def normalised(self) -> "Sequences":
        """See `Batch.normalised`."""
        return replace(self, advantages=super().normalised().advantages)


class Replay(nn.Module):
    """The network on the steps of sequences, as the loss calls it."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network
        self.told: tuple[Counts, Tensor] = (np.zeros(0, np.int64), torch.empty(0))
        """Lengths and first memories of the sequences of the next call."""

    @property
    def log_std(self) -> Tensor:
        """``(actions,)``; only for continuous actions."""
        return self.network.log_std

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """``(steps, *observation_shape)`` to policy ``(steps, actions)``, value ``(steps,)``."""
        return self.network.sequences(observations, *self.told)[:2]
