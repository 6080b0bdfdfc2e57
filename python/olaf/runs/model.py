"""The model of a run: named arrays in a file, and a learner that plays with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from olaf import checkpoint
from olaf.errors.outcome import Exit, RunError
from olaf.files.modelfile import BEST, CHECKPOINT, MODEL, normalises, put_into

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings
    from olaf.rl.ppo_numpy import NumpyLearner


@dataclass(frozen=True)
class Found:
    """A model file, and the settings of its run."""

    file: Path
    tables: Mapping[str, Mapping[str, Any]]
    """Tables for `read_settings`; empty if the file is in no run's folder."""


def find_model(named: Path, *, best: bool = False) -> Found:
    """The model that a name means: a file, or the newest model in a run's folder.

    best: the folder's model with the best evaluation instead. Raises RunError if there is none.
    """
    from olaf.runs.folder import find_folder
    from olaf.runs.settings import settings_of, tables_of_settings

    if named.is_file() and named.suffix == ".npz":
        if best:
            raise RunError(f"--best: {named} is a file; name the folder of its run", Exit.USAGE)
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
    return Found(best_model(folder) if best else newest_model(folder), tables)


def best_model(folder: Path) -> Path:
    """The model with the best evaluation of a run. Raises RunError if there is none."""
    if not (folder / BEST).exists():
        raise RunError(
            f"--best: {folder} has no {BEST}: olaf train --evaluate-every N keeps one",
            Exit.USAGE,
        )
    return folder / BEST


def newest_model(folder: Path) -> Path:
    """The file with the newest model of a run: model.npz after its end, before it the checkpoint.

    Raises RunError if there is neither.
    """
    found = [folder / name for name in (MODEL, CHECKPOINT) if (folder / name).exists()]
    if not found:
        raise RunError(
            f"{folder}: no model: neither {MODEL} nor {CHECKPOINT} exists. A run writes its first "
            "checkpoint some seconds after its first update",
            Exit.USAGE,
        )
    return max(found, key=lambda file: file.stat().st_mtime)


def learner_with(
    settings: Settings, saved: checkpoint.Checkpoint, *, seed: int = 0
) -> NumpyLearner:
    """A learner with these settings and one environment, which plays with the saved model.

    Raises RunError for an unknown environment, a missing extra, or a model that does not fit.
    """
    from olaf.rl.learner import LearnerError

    try:
        learner = learner_of({**settings.learner.model_dump(), **normalises(saved)}, seed=seed)
    except LearnerError as error:
        raise RunError(str(error), Exit.USAGE) from None
    try:
        put_into(learner, saved)
    except BaseException:
        learner.close()
        raise
    return learner


def learner_of(fields: Mapping[str, Any], *, seed: int = 0, worker: int = 0) -> NumpyLearner:
    """A learner with one environment, for playing. Raises LearnerError.

    fields: those of `olaf.rl.LearnerConfig`, without the seed. worker: see `make_learner`.
    """
    from olaf.rl.learner import LearnerConfig
    from olaf.rl.making import make_learner

    # One policy for a few observations: a GPU would not help, and may be missing here.
    changes = {
        "hidden": tuple(fields["hidden"]),
        "environments": 1,
        "device": "cpu",
        "parallel": "off",
        "seed": seed,
    }
    learner: Any = make_learner(LearnerConfig(**{**fields, **changes}), worker)
    made: NumpyLearner = learner
    return made
