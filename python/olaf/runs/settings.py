"""The settings of a run: written at its start, read when it is resumed or evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.progress import Earlier
from olaf.jobs.reading import FOLLOWING, read_settings, write_toml
from olaf.jobs.settings import Settings
from olaf.runs.journal import FILE, read_journal
from olaf.runs.kept_environment import moved_environment
from olaf.values.parsed import json_of

TOML = "settings.toml"

Tables = dict[str, dict[str, Any]]

FIXED = (
    "learner.environment",
    "learner.module",
    "learner.hidden",
    "learner.normalise",
    "worker.job",
    "train.local",
)
"""Keys that cannot change from session to session: the model would no longer fit."""


def described(settings: Settings) -> dict[str, Any]:
    """The settings for a journal: all values, and the keys that the user gave.

    Other keys may follow from these (`learner.gamma` does), and must do so again.
    """
    given = {name: sorted(section.model_fields_set) for name, section in _sections(settings)}
    return {"settings": settings.model_dump(mode="json"), "given": given}


def write_settings(folder: Path, settings: Settings) -> None:
    """Write ``settings.toml`` for people and for ``--config``: the given keys, not the defaults."""
    (folder / TOML).write_text(write_toml(settings, comments=False, given=True), encoding="utf-8")


def tables_of(line: Mapping[str, Any]) -> Tables:
    """Tables for `read_settings` from the output of `described`.

    They hold the given keys, and defaults that have changed since. `train.out` is left out, since
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
        # A run from before updates of passes existed continues unchanged.
        tables["worker"] |= {"push_every": "turn", "waiting_share": 1.0}
        tables["server"]["staleness_power"] = line["settings"]["server"]["staleness_power"]
    return tables


def settings_of(folder: Path) -> Settings:
    """The newest settings of the run in a folder. Raises RunError if it holds no run."""
    if (folder / FILE).exists():
        tables = tables_of(_last_session(folder, read_journal(folder)))
        moved_environment(folder, tables)
        return read_settings(base=tables)
    record = folder / "run.json"
    if record.exists():  # a run from before journals existed
        try:
            written = json_of(record.read_text(encoding="utf-8"))
            return read_settings(base=tables_of({"settings": written["settings"]}))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{record}: not the record of a run: {error}", Exit.USAGE) from None
    raise RunError(f"{folder}: holds no run: neither {FILE} nor run.json exists", Exit.USAGE)


def tables_of_settings(settings: Settings) -> Tables:
    """Tables for `read_settings` that produce these settings."""
    return tables_of(described(settings))


def resumed(folder: Path, earlier: Earlier) -> Tables:
    """Tables with lower precedence than everything given at a resumption."""
    tables = tables_of(_last_session(folder, earlier))
    moved_environment(folder, tables)
    tables.get("server", {}).pop("fresh", None)  # it applied to its own start only
    return tables


def changes(before: Settings, now: Settings) -> list[str]:
    """The changed settings of a resumed run, a line each. Raises RunError for a fixed one."""
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
                    "the model would no longer fit; start a new run",
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
        raise RunError(f"{folder / FILE}: does not contain the settings of the run", Exit.USAGE)
    return earlier.sessions[-1]
