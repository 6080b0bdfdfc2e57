"""The models of ``olaf schedule record``, described without torch."""

from __future__ import annotations

from typing import NamedTuple


class Shape(NamedTuple):
    """A description of a model, and its default number of samples per step."""

    words: str
    batch: int


SHAPES = {
    "mlp": Shape("3 hidden layers of 2,048 on 784 inputs", 256),
    "cnn": Shape("DQN's network (Mnih et al. 2015) on 4 frames of 84 x 84", 32),
    "transformer": Shape("decoder of 6 layers of 512, 8 heads, 128 tokens of 8,192", 4),
    "resnet18": Shape("ResNet-18 (He et al. 2016, torchvision's) on 3 x 224 x 224", 4),
}
