"""``olaf schedule mix``: draw a random list of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from olaf.schedule.mixes import Mix


def _mix(ctx: click.Context, parameter: click.Parameter, value: str) -> Mix:
    from olaf.schedule.mixes import Mix

    try:
        return Mix.parse(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def _steps(ctx: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    try:
        steps = [int(each) for each in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r}: write whole numbers, as in 10,20,30") from None
    if min(steps) < 1:
        raise click.BadParameter(f"{value!r}: each job needs at least one step")
    return steps


@click.command()
@click.option(
    "--hosts",
    "mix",
    required=True,
    callback=_mix,
    metavar="HOSTS:WEIGHT,..",
    help="Numbers of hosts and their weights: 1:10,2:5 draws one host twice as often as two.",
)
@click.option(
    "--patterns",
    metavar="NAME,..",
    help="Patterns, all equally likely. Default: the patterns that come with Olaf.",
)
@click.option(
    "--jobs", "count", type=click.IntRange(1, 10_000_000), default=2000, show_default=True
)
@click.option(
    "--steps",
    callback=_steps,
    default="10,20,30,40,50,60,70,80,90,100",
    show_default=True,
    metavar="N,..",
    help="Numbers of steps, all equally likely.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
def mix(*, mix: Mix, patterns: str | None, count: int, steps: list[int], seed: int) -> None:
    """Draw a random list of jobs, as `olaf simulate mina --jobs` reads it, and print it.

    \b
    Examples:
      olaf schedule mix --hosts 1:2,8:1 > jobs.txt
      olaf schedule mix --hosts 4:1 --patterns mlp,resnet18 --jobs 500 --seed 7
    """
    from olaf.schedule.mixes import draw, text
    from olaf.schedule.reading import BUNDLED

    names = (
        patterns.split(",") if patterns else sorted(file.stem for file in BUNDLED.glob("*.json"))
    )
    if not all(name.split() == [name] for name in names):
        raise click.BadParameter(f"{patterns!r}: use names, as in mlp,cnn", param_hint="--patterns")
    click.echo(text(draw(mix, names, count, seed, steps=steps)), nl=False)
