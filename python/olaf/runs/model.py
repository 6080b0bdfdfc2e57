"""The model of a run: named arrays in a file, and a learner that plays with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from olaf import checkpoint
from olaf.modelfile import CHECKPOINT, MODEL, put_into
from olaf.outcome import Exit, RunError

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings
    from olaf.rl.ppo_numpy import NumpyLearner


@dataclass(frozen=True)
class Found:
    """A model file, and the settings of its run."""

    file: Path
    tables: Mapping[str, Mapping[str, Any]]
    """Tables for `read_settings`; empty if the file is in no run's folder."""


def find_model(named: Path) -> Found:
    """The model that a name means: a file, or the newest model in a run's folder.

    Raises RunError if there is none.
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
    from olaf.rl.learner import LearnerConfig, LearnerError
    from olaf.rl.making import make_learner

    fields = settings.learner.model_dump()
    # One policy for a few observations: a GPU would not help, and may be missing here.
    fields.update(hidden=tuple(fields["hidden"]), environments=1, seed=seed, device="cpu")
    try:
        learner: Any = make_learner(LearnerConfig(**fields))
    except LearnerError as error:
        raise RunError(str(error), Exit.USAGE) from None
    try:
        put_into(learner, saved)
    except BaseException:
        learner.close()
        raise
    made: NumpyLearner = learner
    return made
