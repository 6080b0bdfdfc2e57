"""Runs a planned figure and writes its results.json, README.md and plots."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from olaf.drawing.charts import draw
from olaf.errors.outcome import RunError
from olaf.experiments.catalog import Plan, Says, Task
from olaf.experiments.overview import overview_page
from olaf.experiments.rendering import figure_page
from olaf.experiments.result import Machine, Record
from olaf.experiments.writing import record_text
from olaf.processes import machine


def run(plan: Plan, say: Says) -> Record:
    """Measure a figure. Raises RunError if it cannot be measured here."""
    figure = plan.figure
    before, begin = _load(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="olaf-") as scratch:
        task = Task(
            plan.parameters, figure.paper, tuple(plan.seeds), Path(scratch), say, plan.quick
        )
        result = figure.module().run(task)
    run_s = time.monotonic() - begin
    return Record(
        figure=figure.name,
        title=figure.title,
        source=figure.source,
        shows=figure.shows,
        olaf=_version(),
        commit=_commit(),
        written_at=datetime.now(UTC).isoformat(timespec="seconds"),
        quick=plan.quick,
        seeds=plan.seeds,
        run_s=round(run_s, 3),
        expected_s=figure.expected_s,
        machine=Machine(
            processor=machine.processor(),
            cores=machine.cores(),
            load_before=before,
            load_after=_load(),
        ),
        parameters=plan.parameters.model_dump(mode="json"),
        paper=figure.paper,
        data=result.data,
        rows=result.rows,
        charts=result.charts,
        tables=result.tables,
        differences=[*figure.differences, *result.differences],
        notes=result.notes,
        bounds=result.bounds,
    )


def write(record: Record, out: Path) -> Path:
    """Write a figure's folder below ``out``; return the folder."""
    folder = out / record.figure
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(record_text(record), encoding="utf-8")
    render(record, folder)
    return folder


def render(record: Record, folder: Path) -> None:
    """Write README.md and plots of an existing record."""
    (folder / "README.md").write_text(figure_page(record), encoding="utf-8")
    for index, chart in enumerate(record.charts):
        draw(chart, folder / f"{plot_stem(index, chart.name)}.svg")


def plot_stem(index: int, name: str) -> str:
    """The file name of a chart, without its kind."""
    return "plot" if index == 0 else f"plot-{name or index}"


def records(out: Path) -> Iterator[tuple[Path, Record]]:
    """The records below ``out`` with their folders, by name. Raises RunError for a broken one."""
    for file in sorted(out.glob("*/*/results.json")):
        try:
            yield file.parent, Record.model_validate_json(file.read_text(encoding="utf-8"))
        except ValidationError as error:
            raise RunError(f"{file}: not a record of this version of olaf: {error}") from None


def overview(out: Path) -> Path:
    """Write the table over all figures below ``out``; return its file."""
    known = [record for _, record in records(out)]
    page = out / "README.md"
    page.write_text(overview_page(known, out), encoding="utf-8")
    return page


def _load() -> float:
    return round(os.getloadavg()[0], 2)


def _commit() -> str:
    """The commit of the checkout that this package lies in; empty without one."""
    git = shutil.which("git")
    if git is None:
        return ""

    def told(*arguments: str) -> str:
        # `--no-optional-locks`: other work in the checkout is not disturbed.
        command = [git, "--no-optional-locks", "-C", str(Path(__file__).parent), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    # A package that was installed into some other project's checkout is no file of it.
    if not told("ls-files", Path(__file__).name):
        return ""
    changed = told("status", "--porcelain", "--untracked-files=no", "--", ":/", ":!/experiments")
    return told("rev-parse", "--short=10", "HEAD") + ("+changes" if changed else "")


def _version() -> str:
    from olaf._olaf import __version__

    return __version__
