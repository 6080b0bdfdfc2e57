"""``olaf simulate sums``: jobs that sum their gradients, and what they are compared with."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf.cli import options
from olaf.values.numbers import counted

if TYPE_CHECKING:
    from olaf.scenarios.sums import Outcome, Scenario

PLOTS = (".svg", ".png")


@click.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run N seeds, starting with the file's seed. Default: 1.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="S", help="Run only this seed.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the scenario, as in --set network.rate=10gbit. Repeatable.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the parts of each job's iteration to this file, .svg or .png.",
)
@options.as_json
def sums(
    *,
    file: Path,
    seeds: int | None,
    seed: int | None,
    overrides: tuple[str, ...],
    plot: Path | None,
    json_out: bool,
) -> None:
    """Run the jobs of FILE.toml, which sum their gradients, in virtual time.

    A job's engine is reduce, iswitch, atp or trio, with the real workers, switches and servers, or
    what they are compared with: ps (parameter servers), ring (ring all-reduce), ideal (bytes over
    bandwidth). A seed gives the same numbers on every machine. docs/simulate-sums.md explains every
    key. --set names a job by its name.

    \b
    Examples:
      olaf simulate sums examples/sums/rack.toml
      olaf simulate sums examples/sums/rack.toml --set network.loss=0.001 --seeds 5
      olaf simulate sums examples/sums/rack.toml --set jobs.ring.workers=2 --json > ring.json

    \b
    Exit codes: 0: simulated; 1: a job failed; 2: an invalid file, key or value; 130: interrupted.
    """
    from olaf.errors.outcome import Exit, RunError
    from olaf.scenarios.reading import with_overrides
    from olaf.scenarios.sums import plain, read
    from olaf.scenarios.sums.reading import AMOUNTS
    from olaf.scenarios.sums.tables import jobs, links

    if seed is not None and seeds is not None:
        raise click.UsageError("give --seed for one seed or --seeds for several, not both")
    if plot is not None and plot.suffix not in PLOTS:
        raise click.UsageError(f"--plot {plot}: the name must end in .svg or .png")
    scenario = read(file)
    if overrides:
        scenario = with_overrides(scenario, overrides, plain, AMOUNTS)
    chosen = _seeds(file, scenario, seeds or 1) if seed is None else [seed]
    scenario["seed"] = chosen[0]
    begin = time.monotonic()
    outcomes = _run(file, scenario, chosen, overrides)
    took_s = time.monotonic() - begin
    if plot is not None:
        from olaf.scenarios.sums.drawing import draw_parts

        draw_parts(outcomes, file.stem, plot)
    if json_out:
        runs = [outcome.model_dump(mode="json") for outcome in outcomes]
        click.echo(json.dumps({"scenario": scenario, "outcomes": runs}))
    else:
        console = options.console(json_out=False)
        console.print(_title(file, outcomes, chosen), soft_wrap=True)
        console.print()
        console.print(jobs(outcomes))
        title, table = links(outcomes[0])
        console.print(f"\n{title}")
        console.print(table)
        events = sum(outcome.events for outcome in outcomes)
        click.echo(f"\n{events:,} events in {took_s:.1f} s", err=True)
    if plot is not None:
        click.echo(f"wrote {plot}", err=json_out)
    failed = [
        f"{file}: job {job.name!r}, seed {outcome.seed}: {job.failed}"
        for outcome in outcomes
        for job in outcome.jobs
        if job.failed is not None
    ]
    if failed:
        raise RunError("\n".join(failed), Exit.FAILED)


def _seeds(file: Path, scenario: Scenario, count: int) -> list[int]:
    """The file's seed, 0 if it has none, and the following ones."""
    from olaf.scenarios.sums.reading import located

    first = scenario.get("seed", 0)
    if not isinstance(first, int) or isinstance(first, bool) or first < 0:
        raise located(file, f"seed: {first!r} is no whole number of 0 or more")
    return [first + n for n in range(count)]


def _run(
    file: Path, scenario: Scenario, seeds: Sequence[int], overrides: Sequence[str]
) -> list[Outcome]:
    from olaf.errors.usage import ConfigurationError
    from olaf.scenarios.running import watched
    from olaf.scenarios.sums import run
    from olaf.scenarios.sums.reading import located
    from olaf.scenarios.sums.running import iterations

    outcomes: list[Outcome] = []
    all_of_them = iterations(scenario)
    ended = 0

    def tell(count: int) -> None:
        nonlocal ended
        ended = count

    def work() -> None:
        nonlocal ended
        for seed in seeds:
            ended = 0
            outcomes.append(run(scenario, seed, tell))

    def say(elapsed_s: float) -> None:
        done = f"{ended:,} of {all_of_them:,} iterations of workers"
        which = f"seed {len(outcomes) + 1} of {len(seeds)}: " if len(seeds) > 1 else ""
        click.echo(f"{elapsed_s:7.1f} s  {which}{done}", err=True)

    try:
        watched(work, say)
    except ConfigurationError as error:
        if overrides:  # the line may say something else
            changed = " ".join(f"--set {override}" for override in overrides)
            raise ConfigurationError(f"{file} {changed}: {error}") from None
        raise located(file, str(error)) from None
    return outcomes


def _title(file: Path, outcomes: Sequence[Outcome], seeds: Sequence[int]) -> str:
    jobs: list[Any] = outcomes[0].jobs
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    workers = sum(job.workers for job in jobs)
    end_s = max(outcome.end_ns for outcome in outcomes) / 1e9
    count = f"{counted(len(jobs), 'job')}, {counted(workers, 'worker')}"
    return f"{file}: {count}; {end_s:g} virtual s, {which}"
