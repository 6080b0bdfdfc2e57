"""``olaf schedule record``: measure the all-reduces of a model's training step here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf.cli import options
from olaf.schedule.shapes import SHAPES

if TYPE_CHECKING:
    from olaf.schedule.recording import Pattern


@click.command()
@click.option(
    "--model", "name", type=click.Choice(list(SHAPES)), help="Record this model; or use --all."
)
@click.option("--all", "every", is_flag=True, help="Record every model; --out is then a folder.")
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    metavar="N",
    help="Samples per step. Default: "
    + ", ".join(f"{name} {shape.batch}" for name, shape in SHAPES.items())
    + ".",
)
@click.option("--steps", type=click.IntRange(min=1), default=20, show_default=True, metavar="N")
@click.option(
    "--warmup",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    metavar="N",
    help="Steps to skip first; DDP arranges its buckets again after the first step.",
)
@click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of threads that torch computes with. Default: torch's own choice.",
)
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="cpu: count only the CPU time of the training thread, which other programs on the same "
    "cores do not lengthen. Requires --threads 1.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Random seed of weights and data."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="Pattern file to write; with --all, a folder with one file per model.",
)
@options.as_json
def record(
    *,
    name: str | None,
    every: bool,
    batch: int | None,
    steps: int,
    warmup: int,
    threads: int | None,
    clock: str,
    seed: int,
    out: Path,
    json_out: bool,
) -> None:
    """Train a model on this machine's CPU for some steps and record its all-reduces.

    One process trains alone, through PyTorch's DistributedDataParallel. The times are therefore
    compute times, without any network. The scheduler and the simulator read the written file. Needs
    the extra `torch`. docs/patterns.md explains how to record a program of your own.

    \b
    Examples:
      olaf schedule record --model resnet18 --batch 8 --out resnet18.json
      olaf schedule record --all --steps 40 --threads 1 --clock cpu --out patterns

    \b
    Exit codes: 0: written; 1: the steps differ; 2: invalid options; 130: interrupted.
    """
    if every == (name is not None):
        raise click.UsageError("give either --model NAME or --all")
    if clock == "cpu" and threads != 1:
        raise click.UsageError("--clock cpu counts one thread: add --threads 1")
    _ready_to_write(out, folder=every)
    _torch(threads)
    told: list[dict[str, Any]] = []
    for each in SHAPES if name is None else [name]:
        pattern, about = _recorded(
            each,
            batch=batch or SHAPES[each].batch,
            steps=steps,
            warmup=warmup,
            seed=seed,
            clock=clock,
        )
        file = out / f"{each}.json" if every else out
        pattern.write(file, **about)
        told.append({"file": str(file), **pattern.document(**about)})
        if not json_out:
            click.echo(_line(each, pattern))
        click.echo(f"wrote {file}", err=json_out)
    if json_out:
        click.echo(json.dumps(told if every else told[0]))


def _ready_to_write(out: Path, *, folder: bool) -> None:
    """Check before the work that its result can be written."""
    try:
        (out if folder else out.parent).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{out}: {error.strerror}", param_hint="--out") from None
    if not folder and out.is_dir():
        raise click.BadParameter(f"{out} is a folder; name a file", param_hint="--out")
    if not os.access(out if folder else out.parent, os.W_OK):
        raise click.BadParameter(f"{out}: not writable", param_hint="--out")


def _torch(threads: int | None) -> None:
    from olaf import extras

    extras.need("torch", "torch", "torchvision", what="recording")
    import torch

    if threads is not None:
        torch.set_num_threads(threads)


def _recorded(
    name: str, *, batch: int, steps: int, warmup: int, seed: int, clock: str
) -> tuple[Pattern, dict[str, object]]:
    # Import rich now: progress would otherwise load it in the middle of a measured step.
    import rich.console as _  # noqa: F401

    from olaf.cli.asking import Thinking
    from olaf.errors.outcome import RunError
    from olaf.schedule.recording import RecordingError
    from olaf.torch.recording_models import record

    with Thinking() as thinking:

        def say(count: int) -> None:
            thinking.say(f"{name}: step {count} of {warmup + steps}")

        try:
            return record(
                name, batch=batch, steps=steps, warmup=warmup, seed=seed, clock=clock, say=say
            )
        except RecordingError as error:
            raise RunError(f"{name}: {error}") from None


def _line(name: str, pattern: Pattern) -> str:
    spread = pattern.recorded["spread"]["duration"]
    first_ns = pattern.operations[0][0]
    return (
        f"{name:12} step {pattern.duration_ns / 1e6:8.2f} ms "
        f"(half of them {spread['quarter'] * 1e3:.2f} to {spread['three_quarters'] * 1e3:.2f}), "
        f"{len(pattern.operations):3} all-reduces of {pattern.size / 1e6:7.2f} MB, "
        f"the first after {first_ns / 1e6:.2f} ms"
    )
