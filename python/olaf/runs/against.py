"""``olaf train --against local``: the run's baseline in one process, and a comparison of both.

The baseline has the same learner, seed and stop conditions, and its own folder inside the run's. It
runs after the run, so that each has the whole machine.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.files.writing import write_text
from olaf.jobs.settings import Settings
from olaf.processes.lines import Control
from olaf.runs import folder as folders
from olaf.runs.folder import Hold
from olaf.runs.journal import read_journal
from olaf.runs.session import (
    ORPHANS_S,
    Observe,
    Run,
    Session,
    begin,
    go_on,
    learnt_nothing,
    nothing_left,
)
from olaf.values.parsed import json_of

FOLDER = "against-local"
"""Name of the baseline's folder inside the run's."""

SKIPPED = ("interrupted", "failed", "stopped")
"""A run that ended like this is not compared."""


def add_baseline(run: Run, settings: Settings, observe: Observe, control: Control) -> Run:
    """Run the baseline of a run that has ended, and add ``against`` to its result and files.

    The baseline of an earlier session continues if the run's limits are higher now, and otherwise
    keeps its result. Raises the errors of `begin` and `go_on`.
    """
    from olaf.report.page import run_page

    result = dict(run.result)
    if run.outcome.kind in SKIPPED or control.stopping:
        result["against"] = {"kind": "local", "skipped": f"the run was {run.outcome.kind}"}
        found = None
    else:
        found = _train(run.folder / FOLDER, settings, observe, control)
        result["against"] = side_by_side(result, found)
    record = {**run.record, "result": result}
    write_text(run.folder / "run.json", json.dumps(record, indent=1) + "\n")
    write_text(run.folder / "report.html", run_page(record))
    outcome = run.outcome
    if found is not None and found["outcome"] == "interrupted":
        # The user asked for both and still gets one of them.
        outcome = dataclasses.replace(
            outcome, kind="interrupted", reason=found["reason"], code=Exit.INTERRUPTED
        )
    return Run(run.folder, outcome, result, record)


def _train(folder: Path, settings: Settings, observe: Observe, control: Control) -> dict[str, Any]:
    """Start the baseline, or continue it; return its result."""
    own = _alone(folder, settings)
    if learnt_nothing(folder):
        if folder.exists():
            folders.forget(folder, made=False)
        return begin(own, observe, control).result
    with Hold(folder).take(patience_s=ORPHANS_S) as hold:
        earlier = read_journal(folder)
        try:
            nothing_left(own, earlier)
        except RunError:
            record: dict[str, Any] = json_of((folder / "run.json").read_text(encoding="utf-8"))
            result: dict[str, Any] = record["result"]
            return result
        return go_on(Session(folder, hold, earlier, control), own, observe).result


def _alone(folder: Path, settings: Settings) -> Settings:
    train = settings.train.model_copy(
        update={
            "local": True,
            "transport": "udp",
            "against": None,
            "on": "local",
            "out": str(folder),
            "record": None,
            "wandb": None,
            "evaluate_every": None,
        }
    )
    return settings.model_copy(update={"train": train})


MEASURES = (
    "to_the_mark_s",
    "env_steps",
    "env_steps_per_machine",
    "env_steps_per_worker",
    "cpu_s",
    "reward",
)


def measures_of(result: Mapping[str, Any]) -> dict[str, float | None]:
    """The measures of the comparison; None if unknown.

    ``to_the_mark_s`` counts from the launch of the processes; ``cpu_s`` is that of all processes,
    for a run with one session.
    """
    whole = result["session"]["number"] == 1
    return {
        "to_the_mark_s": result["reached_s"],
        "env_steps": result["env_steps"],
        "env_steps_per_machine": result["env_steps"] / max(result["machines"], 1),
        "env_steps_per_worker": result["env_steps"] / result["workers"],
        "cpu_s": result["cpu_s"] if whole else None,
        "reward": result["reward"]["mean"],
    }


def side_by_side(run: Mapping[str, Any], alone: Mapping[str, Any]) -> dict[str, Any]:
    """``against`` of a result: both measures, and the run divided by the baseline if both are above
    0."""
    ours, theirs = measures_of(run), measures_of(alone)
    ratios = {name: _ratio(ours[name], theirs[name]) for name in MEASURES}
    return {
        "kind": "local",
        "folder": FOLDER,
        "outcome": alone["outcome"],
        "reason": alone["reason"],
        "run": ours,
        "local": theirs,
        "ratios": ratios,
    }


def _ratio(one: float | None, other: float | None) -> float | None:
    if one is None or other is None or one <= 0 or other <= 0:
        return None
    return one / other
