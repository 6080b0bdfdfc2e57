"""``olaf evaluate``: play greedily with the model of a run and report its reward."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from olaf import extras
from olaf.cli import options
from olaf.cli.consoles import plain_console
from olaf.rl.packed import shown
from olaf.values.numbers import counted, score

if TYPE_CHECKING:
    from olaf.runs.evaluation import Episode, Score
    from olaf.runs.filming import Camera, Film

KEYS = {
    "env": "learner.environment",
    "env_options": "learner.environment_options",
    "learner": "learner.learner",
}

EPISODES = 100
EPISODES_DRAWN = 5

MOST_STEPS = 100_000

SAY_EVERY_S = 2.0


def _at_least(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> float | str | None:
    if value is None or value == "solved":
        return value
    try:
        return float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r}: write a reward, or solved") from None


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--episodes",
    type=click.IntRange(min=1),
    help=f"Number of episodes. Default: {EPISODES}, with --render or --video {EPISODES_DRAWN}.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, help="Random seed; episode i has SEED + i."
)
@click.option(
    "--max-steps",
    type=click.IntRange(min=1),
    default=MOST_STEPS,
    help=f"Cut an episode after this number of steps. Default: {MOST_STEPS:,}.",
)
@click.option("--render", is_flag=True, help="Show the episodes in a window.")
@click.option(
    "--video",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.mp4",
    help="Record the episodes as a video; needs the extra `video`.",
)
@click.option(
    "--at-least",
    callback=_at_least,
    metavar="R|solved",
    help="Exit with 1 if the mean reward is lower.",
)
@click.option(
    "--best", is_flag=True, help="Play best.npz, the model with the run's best evaluation."
)
@click.option("--env", metavar="ID", help="Environment to play. Default: the run's environment.")
@options.env_option
@click.option(
    "--learner", metavar="numpy|torch", help="Learner whose network plays. Default: the run's."
)
@options.trust
@options.as_json
@options.configuration
@click.pass_context
def evaluate(ctx: click.Context, /, **given: Any) -> int:
    """Play episodes with the model of RUN, greedily, and print the mean reward.

    RUN is the folder of a run, or a model.npz or checkpoint.npz. The policy always takes its most
    likely action. Only the environment draws random numbers, and the same seed gives the same
    episodes. The interval contains the expected reward with 95 % confidence (bootstrap).

    \b
    Examples:
      olaf evaluate runs/latest
      olaf evaluate runs/latest --episodes 300 --seed 1000 --at-least solved
      olaf evaluate runs/latest --video lander.mp4 --episodes 3
      olaf evaluate runs/latest --best
      olaf evaluate checkpoint.npz --env CartPole-v1 --json

    \b
    Exit codes:
      0: evaluated   1: below --at-least   2: invalid options, or a model that does not fit
    """
    extras.need("train", "gymnasium", what="olaf evaluate")
    if given["render"] and given["video"]:
        raise click.UsageError("--render and --video exclude each other: use one at a time")
    from olaf.files.modelfile import read_model
    from olaf.runs.evaluation import score, verdict
    from olaf.runs.filming import Camera, open_display
    from olaf.runs.model import find_model, learner_with
    from olaf.runs.trust import need_trust

    out = options.apart_from_user_code(ctx, json_out=given["json_out"])
    found = find_model(given["run"], best=given["best"])
    theirs = {"learner.environment": given["env"]}
    need_trust(found.file.parent, found.tables, trusts=given["trust"], given=theirs)
    saved = read_model(found.file)
    settings = options.settings(ctx, KEYS, base=found.tables)
    camera = Camera(given["video"]) if given["video"] else None
    try:
        learner: Any = learner_with(settings, saved)
        learner.close()
        if given["render"]:
            open_display()
        name = settings.learner.environment
        played, film = _played(learner, name, given, camera)
    finally:
        if camera is not None:
            camera.drop()
    result = score(played, seed=given["seed"])
    threshold = _threshold(name, given["at_least"])
    judged = verdict(result, threshold)
    about = {
        "model": str(found.file),
        "version": saved.version,
        "environment": name,
        "seed": given["seed"],
        **result.to_json(),
        **judged,
        "rewards": [episode.reward for episode in played],
        "max_steps": given["max_steps"],
        "cut": sum(episode.is_cut for episode in played),
        "video": None if film is None else str(film.file),
    }
    _show(about, result, film, out)
    return int(given["at_least"] is not None and judged["reached"] is False)


def _played(
    learner: Any, name: str, given: dict[str, Any], camera: Camera | None
) -> tuple[list[Episode], Film | None]:
    from olaf.errors.outcome import Exit, RunError
    from olaf.rl.learner import LearnerError
    from olaf.runs.evaluation import play, watch

    drawn = given["render"] or camera is not None
    count = given["episodes"] or (EPISODES_DRAWN if drawn else EPISODES)
    seed, most = given["seed"], given["max_steps"]
    try:
        with _progress(count) as seen:
            if drawn:
                ended = watch(
                    learner, name, episodes=count, seed=seed, camera=camera, most_steps=most
                )
            else:
                ended = play(learner, name, episodes=count, seed=seed, most_steps=most)
            played = sorted(seen(ended), key=lambda episode: episode.seed)
    except LearnerError as error:
        raise RunError(str(error), Exit.USAGE) from None
    except Exception as error:
        if not type(error).__module__.startswith("pygame"):
            raise
        raise RunError(f"--render: no window could be opened: {error}", Exit.USAGE) from None
    return played, None if camera is None else camera.finish()


def _threshold(name: str, at_least: float | str | None) -> float | None:
    from olaf.rl.environments import reward_threshold

    if isinstance(at_least, float):
        return at_least
    threshold = reward_threshold(name)
    if threshold is None and at_least == "solved":
        raise click.UsageError(
            f"--at-least solved: environment {name!r} declares no threshold; write a reward"
        )
    return threshold


@contextmanager
def _progress(count: int) -> Iterator[Any]:
    """Pass episodes on, and print their number when playing takes long."""
    if sys.stderr.isatty():
        from rich.progress import track

        def shown(episodes: Iterable[Episode]) -> Iterator[Episode]:
            console = plain_console(stderr=True)
            yield from track(episodes, "playing", count, console=console, transient=True)

        yield shown
        return

    def said(episodes: Iterable[Episode]) -> Iterator[Episode]:
        due = time.monotonic() + SAY_EVERY_S
        for number, episode in enumerate(episodes, 1):
            yield episode
            if number < count and time.monotonic() >= due:
                due = time.monotonic() + SAY_EVERY_S
                click.echo(f"{number} of {counted(count, 'episode')} played", err=True)

    yield said


def _interval(found: Score) -> str:
    from olaf.runs.evaluation import ENOUGH

    if found.low is None or found.high is None:
        return f"too few episodes for an interval (at least {ENOUGH})"
    return f"between {score(found.low)} and {score(found.high)} with 95 % confidence"


def _show(about: dict[str, Any], found: Score, film: Film | None, out: IO[str] | None) -> None:
    """Print the result; ``out`` takes it as JSON."""
    lines = [
        f"{shown(about['environment'])}, model version {about['version']:,} of {about['model']}",
        f"mean reward   {score(found.mean)}, {_interval(found)}",
        f"episodes      {found.episodes}: standard deviation {score(found.std)}, lowest "
        f"{score(found.min)}, highest {score(found.max)}, {found.steps_mean:,.0f} steps each",
        f"threshold     {about['verdict']}",
    ]
    if about["cut"]:
        lines.insert(
            3,
            f"              {counted(about['cut'], 'episode')} had not ended after "
            f"{about['max_steps']:,} steps and counted as far as that (--max-steps)",
        )
    if film is not None:
        lines.append(f"video         {film.file}: {film.frames} frames, {film.seconds:.1f} s")
    for line in lines:
        click.echo(line, err=out is not None)
    if out is not None:
        click.echo(json.dumps(about), file=out)
