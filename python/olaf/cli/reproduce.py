"""``olaf reproduce``: measure a paper's figures again."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from olaf.cli import options
from olaf.values.numbers import counted

if TYPE_CHECKING:
    from olaf.errors.outcome import RunError
    from olaf.experiments.catalog import Plan
    from olaf.experiments.result import Record


def _seeds(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    try:
        seeds = [int(seed) for seed in value.split(",")]
    except ValueError:
        raise click.BadParameter(
            f"{value!r}: write a number of seeds (5) or a list (3,7,8)"
        ) from None
    if len(seeds) == 1:
        seeds = list(range(seeds[0])) if "," not in value else seeds
    if not seeds or min(seeds) < 0 or len(set(seeds)) != len(seeds):
        raise click.BadParameter(f"{value!r}: give at least one seed, each once, none below 0")
    return seeds


@click.command()
@click.argument("names", nargs=-1, metavar="[PAPER/NAME]...")
@click.option("--list", "list_only", is_flag=True, help="List the figures and their durations.")
@click.option("--all", "everything", is_flag=True, help="Measure all figures, one by one.")
@click.option("--seeds", callback=_seeds, metavar="N|A,B,..", help="Number or list of seeds.")
@click.option("--quick", is_flag=True, help="Use tiny inputs: only tests that a figure runs.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a parameter of the figure, as in --set updates=200. Repeatable.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/reproduce"),
    metavar="DIR",
    help="Output folder for PAPER/NAME/ and the summary table. Default: runs/reproduce.",
)
@click.option("--render", is_flag=True, help="Only write all pages below --out again.")
@options.as_json
def reproduce(
    *,
    names: tuple[str, ...],
    list_only: bool,
    everything: bool,
    seeds: list[int] | None,
    quick: bool,
    overrides: tuple[str, ...],
    out: Path,
    render: bool,
    json_out: bool,
) -> int:
    """Measure a figure of a paper here, and show our numbers beside the paper's.

    The command writes one folder per figure to --out, with results.json, the plots and README.md.
    That page has the table, the numbered differences from the paper and the parameters. README.md
    in --out lists all figures.

    \b
    Examples:
      olaf reproduce --list
      olaf reproduce olaf/latency
      olaf reproduce olaf/fig8 --seeds 3 --set iterations=30
      olaf reproduce --all --quick --out /tmp/figures

    \b
    Exit codes: 0: measured, whatever the verdict; 1: a figure could not be measured;
    2: no such figure or parameter; 130: interrupted.
    """
    if list_only:
        return _list(json_out=json_out)
    if render:
        return _render(out, json_out=json_out)
    if bool(names) == everything:
        raise click.UsageError("name a figure, or --all; `olaf reproduce --list` shows them")
    if everything and overrides:
        raise click.UsageError("--set changes one figure: name it instead of --all")
    return _reproduce(names, seeds, quick, overrides, out, json_out=json_out)


def _list(*, json_out: bool) -> int:
    from olaf.experiments.catalog import figures
    from olaf.experiments.rendering import list_table

    known = figures()
    if json_out:
        import json

        keys = {"name", "title", "source", "shows", "expected_s", "seeds"}
        click.echo(json.dumps([figure.model_dump(mode="json", include=keys) for figure in known]))
    else:
        options.console(json_out=False).print(list_table(known))
    return 0


def _render(out: Path, *, json_out: bool) -> int:
    from olaf.errors.outcome import Exit, RunError
    from olaf.experiments.running import overview, records, render

    known = list(records(out)) if out.is_dir() else []
    if not known:
        raise RunError(f"--out {out}: no results.json below it to render", Exit.USAGE)
    for folder, record in known:
        render(record, folder)
        click.echo(f"wrote {folder / 'README.md'}", err=json_out)
    click.echo(f"wrote {overview(out)}", err=json_out)
    return 0


def _reproduce(
    names: tuple[str, ...],
    seeds: list[int] | None,
    quick: bool,
    overrides: tuple[str, ...],
    out: Path,
    *,
    json_out: bool,
) -> int:
    from olaf.errors.outcome import Exit, RunError
    from olaf.experiments.catalog import figures, find, plan
    from olaf.experiments.running import overview

    chosen = [find(name) for name in names] or figures()
    # Check all figures before the first of them takes its time.
    plans = [plan(one, seeds=seeds, quick=quick, overrides=overrides) for one in chosen]
    done: list[Record] = []
    failures: list[RunError] = []
    for index, planned in enumerate(plans):
        try:
            done.append(_measure(planned, out, json_out=json_out))
        except RunError as failure:
            if failure.code == Exit.INTERRUPTED or len(plans) == 1:
                raise
            failures.append(failure)
            click.echo(f"olaf: {planned.figure.name}: {failure}", err=True)
        if index == len(plans) - 1 and done:
            click.echo(f"wrote {overview(out)}", err=json_out)
    if json_out:
        texts = [record.model_dump_json() for record in done]
        click.echo(texts[0] if len(plans) == 1 else f"[{','.join(texts)}]")
    return int(Exit.FAILED if failures else Exit.OK)


def _measure(planned: Plan, out: Path, *, json_out: bool) -> Record:
    from olaf.experiments.rendering import about, result_table
    from olaf.experiments.running import run, write

    figure = planned.figure
    seeds = counted(figure.seeds, "seed")
    usual = "" if planned.quick else f", about {about(figure.expected_s)} with {seeds}"
    click.echo(f"{figure.name}: {figure.title} ({figure.source}){usual}", err=True)
    begin = time.monotonic()

    def say(text: str, share: float | None = None) -> None:
        part = "    " if share is None else f"{share:4.0%}"
        click.echo(f"{time.monotonic() - begin:7.1f} s {part}  {text}", err=True)
        sys.stderr.flush()

    record = run(planned, say)
    folder = write(record, out)
    console = options.console(json_out=json_out)
    console.print(result_table(record))
    console.print(f"page  {folder / 'README.md'}   record  {folder / 'results.json'}\n")
    return record
