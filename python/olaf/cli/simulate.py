"""``olaf simulate``: simulations in virtual time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf.cli import options
from olaf.cli.simulate_mina import mina
from olaf.cli.simulate_sums import sums
from olaf.cli.simulate_training import training
from olaf.values.numbers import counted

if TYPE_CHECKING:
    from olaf.scenarios import Outcome, Scenario, Summary

SEEDS = 5


@click.group()
def simulate() -> None:
    """Simulate training, sums, a network of updates, or a cluster of jobs, in virtual time.

    \b
    Examples:
      olaf simulate training --env CartPole-v1 --workers 1,4
      olaf simulate sums examples/sums/rack.toml
      olaf simulate network examples/scenarios/table3.toml
      olaf simulate mina --help
    """


simulate.add_command(mina)
simulate.add_command(sums)
simulate.add_command(training)


@simulate.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Run N seeds, starting with the file's seed. Default: {SEEDS}.",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="S", help="Run only this seed.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the scenario, as in --set control.kind=fair. Repeatable.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write scenario.toml, as it was run, and results.json to this folder.",
)
@options.as_json
def network(
    *,
    file: Path,
    seeds: int | None,
    seed: int | None,
    overrides: tuple[str, ...],
    out: Path | None,
    json_out: bool,
) -> None:
    """Run the scenario of FILE.toml: many workers, a tree of queues, one server.

    The queues, pacers, sender control and ages are those of the real switch and hosts. A seed gives
    the same numbers on every machine. docs/reference/scenarios.md explains every key. --set names
    a switch or group by its name.

    \b
    Examples:
      olaf simulate network examples/scenarios/table3.toml
      olaf simulate network examples/scenarios/table3.toml --set control.kind=fair
      olaf simulate network mine.toml --set switches.SW1.rate_bps=190000 --seeds 20
      olaf simulate network mine.toml --seed 7 --json > seed7.json

    \b
    Exit codes: 0: simulated; 2: an invalid file, key or value; 130: interrupted.
    """
    from olaf import scenarios
    from olaf.scenarios.tables import tables

    if seed is not None and seeds is not None:
        raise click.UsageError("give --seed for one seed or --seeds for several, not both")
    scenario = scenarios.with_overrides(scenarios.read(file), overrides)
    chosen = _seeds(file, scenario, seeds or SEEDS) if seed is None else [seed]
    scenario["seed"] = chosen[0]
    outcomes = _run(file, scenario, chosen)
    summary = scenarios.summarize(chosen, outcomes)
    written = [] if out is None else _write(out, scenario, summary, outcomes)
    if json_out:
        click.echo(json.dumps(_record(scenario, summary, outcomes)))
    else:
        console = options.console(json_out=False)
        console.print(_title(file, scenario, chosen), soft_wrap=True)
        for title, table in tables(summary):
            console.print(f"\n{title}" if title else "")
            console.print(table)
    for path in written:
        click.echo(f"wrote {path}", err=json_out)


def _seeds(file: Path, scenario: Scenario, count: int) -> list[int]:
    """The file's seed and the following ones."""
    from olaf.errors.usage import ConfigurationError

    first = scenario.get("seed")
    if not isinstance(first, int) or first < 0:
        given = "is missing" if first is None else f"= {first!r} is invalid"
        raise ConfigurationError(
            f"{file}: `seed` {given}: write a whole number of 0 or more, or give --seed"
        )
    return [first + n for n in range(count)]


def _run(file: Path, scenario: Scenario, seeds: Sequence[int]) -> list[Outcome]:
    from olaf import scenarios
    from olaf.errors.usage import ConfigurationError
    from olaf.scenarios.running import watched

    outcomes: list[Outcome] = []

    def work() -> None:
        for seed in seeds:
            outcomes.append(scenarios.run(scenario, seed))

    def say(elapsed_s: float) -> None:
        done = len(outcomes)
        click.echo(
            f"{elapsed_s:7.1f} s  {done} of {counted(len(seeds), 'seed')} simulated", err=True
        )

    try:
        watched(work, say)
    except ConfigurationError as error:
        raise ConfigurationError(f"{file}: {error}") from None
    return outcomes


def _title(file: Path, scenario: Scenario, seeds: Sequence[int]) -> str:
    groups = scenario["groups"]
    clusters = sum(group["clusters"] for group in groups)
    workers = sum(group["clusters"] * group["workers"] for group in groups)
    which = f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"
    control = scenario.get("control", {}).get("kind", "off")
    queues = ", ".join(f"{switch['name']} {switch['queue']}" for switch in scenario["switches"])
    return (
        f"{file}: {counted(workers, 'worker')} in {counted(clusters, 'cluster')}, "
        f"{queues}; control {control}; {scenario['duration_ns'] / 1e9:g} s, {which}"
    )


def _record(scenario: Scenario, summary: Summary, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "scenario": scenario,
        "summary": summary.model_dump(mode="json"),
        "outcomes": [outcome.model_dump(mode="json") for outcome in outcomes],
    }


def _write(
    out: Path, scenario: Scenario, summary: Summary, outcomes: Sequence[Outcome]
) -> list[Path]:
    import tomlkit

    from olaf.errors.outcome import Exit, RunError

    texts = {
        "scenario.toml": tomlkit.dumps(scenario),
        "results.json": json.dumps(_record(scenario, summary, outcomes), indent=1) + "\n",
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"--out {out}: {error.strerror}; name a folder that you can write to"
        raise RunError(reason, Exit.USAGE) from None
    return [out / name for name in texts]
