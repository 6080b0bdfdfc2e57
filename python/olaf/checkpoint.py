"""Read the checkpoints that a server writes: a job's model, by the names of its arrays.

    from olaf import checkpoint
    saved = checkpoint.load("runs/latest/checkpoint.npz")
    saved.version                      # the server's count of models
    saved.arrays["layers.0.weight"]    # float32, in the shape that the workers gave

``docs/reference/checkpoint.md`` describes the file. ``numpy.load`` reads it too.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
        with np.load(file, allow_pickle=False) as archive:
            if isinstance(archive, np.ndarray):
                raise CheckpointError(f"{file}: one bare array, not a checkpoint")
            names = archive.files
            if METADATA in names:
                return _checkpoint(file, archive)
            if "version" in names and FLAT in names:
                return _old_model(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise CheckpointError(f"{file}: damaged or cut short ({error}){_advice(file)}") from None
    except CheckpointError:
        raise
    except ValueError as error:
        # numpy's errors for a file that is neither .npy nor .npz, or has a damaged header.
        raise CheckpointError(f"{file}: not a checkpoint ({error}){_advice(file)}") from None
    raise CheckpointError(f"{file}: an .npz without {METADATA}: not a checkpoint of Olaf")


def _checkpoint(file: Path, archive: Any) -> Checkpoint:
    try:
        metadata = json.loads(archive[METADATA])
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{file}: {METADATA} is not JSON ({error})") from None
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise CheckpointError(f"{file}: {METADATA} does not say {FORMAT!r}")
    if metadata.get("format_version") != FORMAT_VERSION:
        raise CheckpointError(
            f"{file}: format {metadata.get('format_version')}; this release of Olaf reads format "
            f"{FORMAT_VERSION}: use the release that wrote the file"
        )
    layout = metadata.get("layout")
    if layout is None:
        layout = [{"name": FLAT, "shape": [metadata.get("parameters")]}]
    arrays: dict[str, NDArray[np.float32]] = {}
    for entry in layout:
        name, shape = entry["name"], tuple(entry["shape"])
        if name not in archive.files:
            raise CheckpointError(f"{file}: array {name!r} is missing")
        array = archive[name]
        if array.dtype != np.float32 or array.shape != shape:
            raise CheckpointError(
                f"{file}: array {name!r} is {array.dtype}{list(array.shape)}; the layout says "
                f"float32{list(shape)}"
            )
        arrays[name] = array
    return Checkpoint(int(metadata["version"]), arrays, metadata)


def _old_model(archive: Any) -> Checkpoint:
    """``model.npz``: the parameters in a row, and in their shapes as ``part_0``, ``part_1``, .."""
    parts = sorted(
        (name for name in archive.files if name.startswith("part_")),
        key=lambda name: int(name.removeprefix("part_")),
    )
    arrays = {name: archive[name] for name in parts or [FLAT]}
    layout = [{"name": name, "shape": list(arrays[name].shape)} for name in parts] or None
    version = int(archive["version"])
    metadata = {
        "format": "olaf-model",
        "version": version,
        "parameters": int(archive[FLAT].size),
        "layout": layout,
    }
    return Checkpoint(version, arrays, metadata)


def _advice(file: Path) -> str:
    before = previous(file)
    return f"; the previous checkpoint is {before}" if before.exists() else ""
