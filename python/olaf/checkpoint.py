"""Read the checkpoints that a server writes: a job's model, by the names of its arrays.

    from olaf import checkpoint
    saved = checkpoint.load("runs/latest/checkpoint.npz")
    saved.version                      # the server's count of models
    saved.arrays["layers.0.weight"]    # float32, in the shape that the workers gave

``docs/reference/checkpoint.md`` describes the file. ``numpy.load`` reads it too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf.values.npz import Npz, NpzError

__all__ = ["FLAT", "Checkpoint", "CheckpointError", "load", "previous"]

FORMAT = "olaf-checkpoint"
FORMAT_VERSION = 1
METADATA = "olaf.metadata.json"

FLAT = "parameters"
"""Name of the single array of a model without names: all parameters in a row."""


class CheckpointError(ValueError):
    """The file is not a complete checkpoint. The message names the file and the reason."""


@dataclass(frozen=True)
class Checkpoint:
    """The contents of a checkpoint."""

    version: int
    """The server's model version when it wrote the file."""
    arrays: dict[str, NDArray[np.float32]]
    """The model, in the order in which workers push it. Without names: one array, `FLAT`."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """Job, rule, counts and more: ``docs/reference/checkpoint.md`` lists the keys."""

    @property
    def is_named(self) -> bool:
        """True if the workers gave names and shapes."""
        return self.metadata.get("layout") is not None

    @property
    def parameters(self) -> NDArray[np.float32]:
        """The whole model as one float32 vector."""
        return np.concatenate([np.ravel(array) for array in self.arrays.values()])


def previous(path: str | Path) -> Path:
    """Path of the server's previous checkpoint."""
    return Path(f"{path}.previous")


def load(path: str | Path) -> Checkpoint:
    """Read a checkpoint, or the ``model.npz`` of an older run.

    Raises OSError if the file does not exist, CheckpointError if it is not a complete checkpoint.
    """
    file = Path(path)
    try:
        with Npz(file) as archive:
            if METADATA in archive.names:
                return _checkpoint(archive)
            if "version" in archive.names and FLAT in archive.names:
                return _old_model(archive)
    except NpzError as error:
        raise CheckpointError(f"{file}: not a checkpoint: {error}{_advice(file)}") from None
    raise CheckpointError(f"{file}: an .npz without {METADATA}: not a checkpoint of Olaf")


def _checkpoint(archive: Npz) -> Checkpoint:
    try:
        metadata = json.loads(archive.text(METADATA))
    except (ValueError, RecursionError) as error:
        raise NpzError(f"{METADATA} is not JSON ({error})") from None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise NpzError(f"{METADATA} does not say {FORMAT!r}")
    if metadata.get("format_version") != FORMAT_VERSION:
        raise NpzError(
            f"format {metadata.get('format_version')}; this release of Olaf reads format "
            f"{FORMAT_VERSION}: use the release that wrote the file"
        )
    arrays: dict[str, NDArray[np.float32]] = {}
    for name, shape in _layout_of(metadata):
        if name not in archive.names:
            raise NpzError(f"array {name!r} is missing")
        array = archive.array(name)
        if array.dtype != np.float32 or array.shape != shape:
            raise NpzError(
                f"array {name!r} is {array.dtype}{list(array.shape)}; the layout says "
                f"float32{list(shape)}"
            )
        arrays[name] = array
    version = metadata.get("version")
    if type(version) is not int:
        raise NpzError(f"{METADATA}: version = {version!r} is not a number")
    return Checkpoint(version, arrays, metadata)


def _layout_of(metadata: Mapping[str, Any]) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the arrays."""
    layout = metadata.get("layout")
    if layout is None:
        layout = [{"name": FLAT, "shape": [metadata.get("parameters")]}]
    try:
        found = [(entry["name"], tuple(entry["shape"])) for entry in layout]
    except (TypeError, KeyError) as error:
        raise NpzError(f"{METADATA}: the layout is not a list of names and shapes") from error
    for name, shape in found:
        if not isinstance(name, str) or not all(type(size) is int for size in shape):
            raise NpzError(f"{METADATA}: the layout has the entry {name!r} {list(shape)!r}")
    return found


def _old_model(archive: Npz) -> Checkpoint:
    """``model.npz``: the parameters in a row, and in their shapes as ``part_0``, ``part_1``, .."""
    parts = sorted(
        (name for name in archive.names if name.removeprefix("part_").isdecimal()),
        key=lambda name: int(name.removeprefix("part_")),
    )
    arrays = {name: archive.array(name) for name in parts or [FLAT]}
    for name, array in arrays.items():
        if array.dtype != np.float32:
            raise NpzError(f"array {name!r} is {array.dtype}, and not float32")
    layout = [{"name": name, "shape": list(arrays[name].shape)} for name in parts] or None
    version = archive.array("version")
    if version.size != 1 or version.dtype.kind not in "iu":
        raise NpzError(f"version is {version.dtype}{list(version.shape)}, and not a number")
    number = int(version.reshape(()))
    metadata = {
        "format": "olaf-model",
        "version": number,
        "parameters": int(archive.array(FLAT).size),
        "layout": layout,
    }
    return Checkpoint(number, arrays, metadata)


def _advice(file: Path) -> str:
    before = previous(file)
    return f"; the previous checkpoint is {before}" if before.exists() else ""
