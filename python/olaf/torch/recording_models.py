"""Models of well-known shapes, trained on random data just long enough to record them.

The cost and the communication of a step depend on the model's shape and the batch's size, not on
what is learnt, so the data are noise.
"""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,no-any-return,misc"
# mypy: disable-error-code="name-defined,attr-defined,no-untyped-call"

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from olaf.schedule.recording import Pattern
from olaf.schedule.shapes import SHAPES
from olaf.torch.recording import Recorder

VOCABULARY, CONTEXT = 8192, 128
Batch = tuple[Tensor, Tensor]


class Transformer(nn.Module):
    """A decoder like GPT-2's (Radford et al. 2019), 6 layers of 512, with its own last
    projection."""

    def __init__(self, width: int = 512, heads: int = 8, layers: int = 6) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.places = nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True,
            norm_first=True,
        )  # fmt: skip
        self.layers = nn.TransformerEncoder(
            layer, layers, norm=nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of each next token: (batch, length) to (batch, length, VOCABULARY)."""
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length)
        hidden = self.tokens(tokens) + self.places(torch.arange(length))
        return self.head(self.layers(hidden, mask=mask, is_causal=True))


def _mlp() -> nn.Module:
    """Three hidden layers of 2,048."""
    widths = (784, 2048, 2048, 2048, 10)
    layers: list[nn.Module] = []
    for into, out in pairwise(widths):
        layers += [nn.Linear(into, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _cnn() -> nn.Module:
    """The network of DQN (Mnih et al. 2015): four frames of 84 x 84, 18 actions."""
    return nn.Sequential(
        nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(),
        nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(),
        nn.Conv2d(64, 64, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(), nn.Linear(512, 18),
    )  # fmt: skip


def _resnet18() -> nn.Module:
    from torchvision.models import resnet18

    return resnet18()


def _pictures(*shape: int, classes: int) -> Callable[[int], Batch]:
    def batch(size: int) -> Batch:
        return torch.randn(size, *shape), torch.randint(classes, (size,))

    return batch


def _text(size: int) -> Batch:
    tokens = torch.randint(VOCABULARY, (size, CONTEXT + 1))
    return tokens[:, :-1], tokens[:, 1:]


@dataclass(frozen=True)
class Subject:
    """A model and its training data."""

    model: Callable[[], nn.Module]
    batch: Callable[[int], Batch]


SUBJECTS = {
    "mlp": Subject(_mlp, _pictures(784, classes=10)),
    "cnn": Subject(_cnn, _pictures(4, 84, 84, classes=18)),
    "transformer": Subject(Transformer, _text),
    "resnet18": Subject(_resnet18, _pictures(3, 224, 224, classes=1000)),
}


def record(
    name: str,
    *,
    batch: int,
    steps: int,
    warmup: int,
    seed: int,
    clock: str = "wall",
    say: Callable[[int], None] = lambda _: None,
) -> tuple[Pattern, dict[str, object]]:
    """Train a model in this process alone, with Adam, until its step is recorded.

    name: key of SUBJECTS. batch: samples per step. clock: see Recorder. say: called after each step
    with the number of steps.

    Returns the recorder and a description. Raises RecordingError if the steps differ.
    """
    torch.manual_seed(seed)
    subject = SUBJECTS[name]
    recorder = Recorder(steps=steps, warmup=warmup, clock=clock)
    with alone():
        model = DistributedDataParallel(subject.model())
        recorder.watch(model)
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
        inputs, targets = subject.batch(batch)
        while not recorder.complete:
            optimiser.zero_grad()
            outputs = model(inputs)
            functional.cross_entropy(outputs.flatten(0, -2), targets.flatten()).backward()
            optimiser.step()
            say(recorder.count)
        about = {
            "model": name,
            "shape": SHAPES[name].words,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "batch": batch,
            "optimiser": "adam",
            **recorder.circumstances(),
        }
    return recorder.pattern(), about


@contextmanager
def alone() -> Iterator[None]:
    """A process group of this process alone, which needs no port and no file."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        yield
    finally:
        dist.destroy_process_group()
