"""The model of a run: named arrays in a file, and a learner that plays with them."""

from __future__ import annotations

import contextlib
import json
import math
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from olaf import checkpoint
from olaf.outcome import Exit, RunError

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings
    from olaf.rl.ppo_numpy import NumpyLearner

Arrays = Mapping[str, NDArray[np.float32]]

CHECKPOINT = "checkpoint.npz"
MODEL = "model.npz"


def write_model(file: Path, version: int, arrays: Arrays, **metadata: Any) -> None:
    """Write a model in one step, as a checkpoint without a server's counts: `checkpoint.load`."""
    file.parent.mkdir(parents=True, exist_ok=True)
    about = {
        "format": checkpoint.FORMAT,
        "format_version": checkpoint.FORMAT_VERSION,
        "version": version,
        "parameters": sum(array.size for array in arrays.values()),
        "layout": [{"name": name, "shape": list(array.shape)} for name, array in arrays.items()],
        **metadata,
    }
    half = file.with_name(file.name + ".part")
    try:
        with half.open("wb") as stream:
            entries: dict[str, Any] = dict(arrays)
            np.savez(stream, **entries)
        with zipfile.ZipFile(half, "a") as archive:
            archive.writestr(checkpoint.METADATA, json.dumps(about))
        half.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            half.unlink()
        raise


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


@dataclass(frozen=True)
class Found:
    """A model somebody named, and the settings of its run."""

    file: Path
    tables: Mapping[str, Mapping[str, Any]]
    """For `read_settings`; empty where the file lies in no run's folder."""


def find_model(named: Path) -> Found:
    """The model that somebody means: a file, or the newest of a run's folder.

    Raises RunError where there is none.
    """
    from olaf.runs.folder import find_folder
    from olaf.runs.settings import settings_of, tables_of_settings

    if named.is_file() and named.suffix == ".npz":
        try:
            return Found(named, tables_of_settings(settings_of(named.parent)))
        except RunError:
            return Found(named, {})
    folder = find_folder(named)
    if (folder / "compare.json").exists():
        runs = sorted(file.parent.name for file in folder.glob("*/run.json"))
        raise RunError(
            f"{folder}: holds a comparison; name one of its runs: "
            f"{', '.join(str(folder / run) for run in runs)}",
            Exit.USAGE,
        )
    tables = tables_of_settings(settings_of(folder))
    return Found(newest_model(folder), tables)


def newest_model(folder: Path) -> Path:
    """The file with the newest model of a run: at its end model.npz, before it the checkpoint.

    Raises RunError where the run has left neither.
    """
    found = [folder / name for name in (MODEL, CHECKPOINT) if (folder / name).exists()]
    if not found:
        raise RunError(
            f"{folder}: no model there: neither {MODEL} nor {CHECKPOINT}. A run writes its first "
            "checkpoint some seconds after its first update",
            Exit.USAGE,
        )
    return max(found, key=lambda file: file.stat().st_mtime)


def read_model(file: Path) -> checkpoint.Checkpoint:
    """Read a model, or a checkpoint. Raises RunError with the reason where it cannot be read."""
    try:
        return checkpoint.load(file)
    except OSError as error:
        raise RunError(f"{file}: {error.strerror}", Exit.USAGE) from None
    except checkpoint.CheckpointError as error:
        raise RunError(str(error), Exit.USAGE) from None


def learner_with(
    settings: Settings, saved: checkpoint.Checkpoint, *, seed: int = 0
) -> NumpyLearner:
    """A learner of the settings' kind, with one environment, that plays with the saved model.

    Raises RunError: for an unknown environment, a missing extra, a model that does not fit.
    """
    from olaf.rl.learner import LearnerConfig, LearnerError, make_learner

    fields = settings.learner.model_dump()
    # One policy for a few observations: a GPU would not help, and may be missing here.
    fields.update(hidden=tuple(fields["hidden"]), environments=1, seed=seed, device="cpu")
    try:
        learner: Any = make_learner(LearnerConfig(**fields))
    except LearnerError as error:
        raise RunError(str(error), Exit.USAGE) from None
    put_into(learner, saved)
    made: NumpyLearner = learner
    return made


def put_into(learner: Any, saved: checkpoint.Checkpoint) -> None:
    """Write the saved model into a learner's weights. Raises RunError where it does not fit."""
    flat = saved.parameters
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
