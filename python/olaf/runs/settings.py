"""What a run was told: written when it starts, read when it is resumed or looked at again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from olaf.jobs.progress import Earlier
from olaf.jobs.reading import FOLLOWING, read_settings, write_toml
from olaf.jobs.settings import Settings
from olaf.outcome import Exit, RunError
from olaf.runs.journal import FILE, read_journal

TOML = "settings.toml"

Tables = dict[str, dict[str, Any]]

FIXED = ("learner.environment", "learner.module", "learner.hidden", "worker.job", "train.local")
"""What cannot change from session to session: the model would fit no longer."""


def described(settings: Settings) -> dict[str, Any]:
    """The settings for a journal: all values, and which of them somebody gave.

    Keys that nobody gave may follow others (`learner.gamma` does), and must do so again.
    """
    given = {name: sorted(section.model_fields_set) for name, section in _sections(settings)}
    return {"settings": settings.model_dump(mode="json"), "given": given}


def write_settings(folder: Path, settings: Settings) -> None:
    """Write ``settings.toml`` for people and for ``--config``: what was given, not the defaults."""
    (folder / TOML).write_text(write_toml(settings, comments=False, given=True), encoding="utf-8")


def tables_of(line: Mapping[str, Any]) -> Tables:
    """Tables for `read_settings` from what `described` wrote.

    What was given, and what was a default then and is another one now. `train.out` is left out:
    the folder may have been moved.
    """
    now = Settings().model_dump(mode="json")
    tables: Tables = {}
    for name, values in line["settings"].items():
        given = line.get("given", {}).get(name, ())
        follows = [key for key in values if "given" in line and f"{name}.{key}" in FOLLOWING]
        known = now.get(name, {})
        tables[name] = {
            key: value
            for key, value in values.items()
            if key in given or (key in known and known[key] != value and key not in follows)
        }
    tables.get("train", {}).pop("out", None)
    if "push_every" not in line["settings"].get("worker", {"push_every": ""}):
        # A run of before there were updates of passes goes on as it was.
        tables["worker"] |= {"push_every": "turn", "waiting_share": 1.0}
        tables["server"]["staleness_power"] = line["settings"]["server"]["staleness_power"]
    return tables


def settings_of(folder: Path) -> Settings:
    """What the run in a folder was told last. Raises RunError where the folder holds no run."""
    if (folder / FILE).exists():
        return read_settings(base=tables_of(_last_session(folder, read_journal(folder))))
    record = folder / "run.json"
    if record.exists():  # a run of before there were journals
        try:
            written = json.loads(record.read_text(encoding="utf-8"))
            return read_settings(base=tables_of({"settings": written["settings"]}))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{record}: not the record of a run: {error}", Exit.USAGE) from None
    raise RunError(f"{folder}: holds no run: neither {FILE} nor run.json is there", Exit.USAGE)


def tables_of_settings(settings: Settings) -> Tables:
    """Tables for `read_settings` that give these settings."""
    return tables_of(described(settings))


def resumed(folder: Path, earlier: Earlier) -> Tables:
    """Tables below everything that a resumed run is told."""
    tables = tables_of(_last_session(folder, earlier))
    tables.get("server", {}).pop("fresh", None)  # it was for the start that it was said at
    return tables


def changes(before: Settings, now: Settings) -> list[str]:
    """What a resumed run is told otherwise, a line each. Raises RunError for what cannot change."""
    lines: list[str] = []
    for name, section in _sections(now):
        old = getattr(before, name)
        for key in type(section).model_fields:
            was, is_now = getattr(old, key), getattr(section, key)
            if was == is_now or f"{name}.{key}" == "train.out":
                continue
            if f"{name}.{key}" in FIXED:
                raise RunError(
                    f"--resume: {name}.{key} cannot change from {_word(was)} to {_word(is_now)}: "
                    "the model would fit no longer; start a new run",
                    Exit.USAGE,
                )
            lines.append(f"{name}.{key}: {_word(was)} -> {_word(is_now)}")
    return lines


def _sections(settings: Settings) -> list[tuple[str, BaseModel]]:
    return [(name, section) for name, section in settings if isinstance(section, BaseModel)]


def _word(value: Any) -> str:
    return "off" if value is None else str(value)


def _last_session(folder: Path, earlier: Earlier) -> Mapping[str, Any]:
    if not earlier.sessions or "settings" not in earlier.sessions[-1]:
        raise RunError(f"{folder / FILE}: does not say the settings of the run", Exit.USAGE)
    return earlier.sessions[-1]
