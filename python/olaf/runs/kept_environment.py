"""An environment that was given as an object: its file is kept in the run's folder."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from olaf.jobs.settings import Settings
from olaf.rl.packed import FILE, is_packed


def keep_environment(folder: Path, settings: Settings) -> Settings:
    """Copy the environment's file to the folder, if it has one; return settings that name it."""
    name = settings.learner.environment
    if not is_packed(name):
        return settings
    file, _, rest = name.rpartition(":")
    kept = (folder / FILE).resolve()
    if Path(file).resolve() != kept:
        shutil.copyfile(file, kept)
    learner = settings.learner.model_copy(update={"environment": f"{kept}:{rest}"})
    return settings.model_copy(update={"learner": learner})


def moved_environment(folder: Path, tables: dict[str, dict[str, Any]]) -> None:
    """Let the tables of a run's settings name the file where the folder is now."""
    learner = tables.get("learner", {})
    name = str(learner.get("environment", ""))
    kept = (folder / FILE).resolve()
    if is_packed(name) and kept.exists():
        learner["environment"] = f"{kept}:{name.rpartition(':')[2]}"
