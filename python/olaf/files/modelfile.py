"""The files of a model: named arrays, written in one step, and read into a learner's weights."""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf import checkpoint
from olaf.errors.outcome import Exit, RunError
from olaf.files.writing import in_one_step

Arrays = Mapping[str, NDArray[np.float32]]


CHECKPOINT = "checkpoint.npz"

MODEL = "model.npz"

OBSERVATIONS = "observations.moments"
"""Array of a model that normalises its observations: see `olaf.rl.moments`."""

REWARDS = "rewards.moments"
"""Array of a model that scales its rewards by their spread. It only matters in training."""


class NotFiniteError(ValueError):
    """The model has a value that is not a finite number; the message names array and value."""


def check_finite(arrays: Arrays, what: str) -> None:
    """Raise NotFiniteError if a value is not finite. ``what``: the sentence's first words."""
    for name, array in arrays.items():
        if np.isfinite(array).all():
            continue
        flat = np.ravel(array)
        (bad,) = np.nonzero(~np.isfinite(flat))
        raise NotFiniteError(
            f"{what}: the array {name!r} has {len(bad)} of {flat.size} values that are not finite "
            f"({flat[bad[0]]})"
        )


BEST = "best.npz"
"""The model with the best evaluation of a run (`train.evaluate_every`)."""


def write_model(file: Path, version: int, arrays: Arrays, **metadata: Any) -> None:
    """Write a model in one step, as a checkpoint without a server's counts: `checkpoint.load`.

    Raises NotFiniteError, and leaves an earlier file as it is, if the model is not finite.
    """
    check_finite(arrays, f"{file} is not written")
    about = {
        "format": checkpoint.FORMAT,
        "format_version": checkpoint.FORMAT_VERSION,
        "version": version,
        "parameters": sum(array.size for array in arrays.values()),
        "layout": [{"name": name, "shape": list(array.shape)} for name, array in arrays.items()],
        **metadata,
    }
    with in_one_step(file) as half:
        with half.open("wb") as stream:
            entries: dict[str, Any] = dict(arrays)
            np.savez(stream, **entries)
        with zipfile.ZipFile(half, "a") as archive:
            archive.writestr(checkpoint.METADATA, json.dumps(about))


def named(
    flat: NDArray[np.float32], layout: Iterable[tuple[str, Sequence[int]]]
) -> dict[str, NDArray[np.float32]]:
    """Cut a model that lies in a row into its arrays: ``(name, shape)`` each."""
    arrays: dict[str, NDArray[np.float32]] = {}
    at = 0
    for name, shape in layout:
        size = math.prod(shape)
        arrays[name] = flat[at : at + size].reshape(tuple(shape))
        at += size
    if at != flat.size:
        raise ValueError(f"the layout has {at} parameters, the model {flat.size}")
    return arrays


def write_named(
    source: Path, target: Path, layout: Iterable[tuple[str, Sequence[int]]] | Sequence[Any]
) -> None:
    """Write the model in ``source`` to ``target`` with the names and shapes of its arrays.

    A layout of another size, or an empty one, leaves the arrays as they are.
    Raises OSError, and RunError for a source that is not a model.
    """
    saved = read_model(source)
    flat = saved.parameters
    parts = [(str(name), tuple(shape)) for name, shape in layout]
    if sum(math.prod(shape) for _, shape in parts) == flat.size:
        write_model(target, saved.version, named(flat, parts))
    elif source != target:
        write_model(target, saved.version, saved.arrays)


def read_model(file: Path) -> checkpoint.Checkpoint:
    """Read a model, or a checkpoint.

    Raises RunError with the reason if it cannot be read, or is not finite.
    """
    try:
        saved = checkpoint.load(file)
        check_finite(saved.arrays, f"{file} is not a finite model")
        return saved
    except OSError as error:
        raise RunError(f"{file}: {error.strerror}", Exit.USAGE) from None
    except (checkpoint.CheckpointError, NotFiniteError) as error:
        raise RunError(str(error), Exit.USAGE) from None


def normalises(saved: checkpoint.Checkpoint) -> dict[str, Any]:
    """``normalise`` and ``scales`` of the learner that made a model; nothing if it has no names."""
    if len(saved.arrays) < 2:
        return {}
    moments = saved.arrays.get(OBSERVATIONS)
    if moments is None:
        return {"normalise": "off"}
    return {"normalise": "on", "scales": tuple(moments[:, 3:].ravel().tolist())}


def put_into(learner: Any, saved: checkpoint.Checkpoint) -> None:
    """Write the saved model into a learner's weights. Raises RunError where it does not fit.

    A learner that needs no scale of rewards ignores that of the model, and one that needs it starts
    anew where the model has none.
    """
    arrays = dict(saved.arrays)
    if len(arrays) > 1:  # else it has no names
        own = learner.named_parts().get(REWARDS)
        if own is None:
            arrays.pop(REWARDS, None)
        else:
            arrays.setdefault(REWARDS, own)
    flat = np.concatenate([np.ravel(array) for array in arrays.values()])
    if flat.size != learner.parameters:
        shape = learner.spaces.observation_shape
        raise RunError(
            f"the saved model has {flat.size:,} parameters, and the learner of these settings "
            f"{learner.parameters:,} (observations {shape}, {learner.spaces.actions} actions): "
            "name the run's own environment and network, as with --env and --set learner.hidden",
            Exit.USAGE,
        )
    at = 0
    for part in learner.parts():
        part[...] = flat[at : at + part.size].reshape(part.shape)
        at += part.size
