"""``olaf export``: write the policy of a run as a file for other programs."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import click

from olaf import extras
from olaf.cli import options

KEYS = {"env": "learner.environment", "learner": "learner.learner"}


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--to",
    "kind",
    type=click.Choice(["onnx", "torchscript", "npz"]),
    required=True,
    help="onnx needs the extra `onnx`, torchscript the extra `torch`.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File to write. Default: policy.onnx, policy.pt or policy.npz in the folder of RUN.",
)
@click.option(
    "--best", is_flag=True, help="Export best.npz, the model with the run's best evaluation."
)
@click.option("--env", metavar="ID", help="The environment. Default: the run's environment.")
@click.option(
    "--learner", metavar="numpy|torch", help="Learner whose network to export. Default: the run's."
)
@options.trust
@options.as_json
@options.configuration
@click.pass_context
def export(ctx: click.Context, /, **given: Any) -> int:
    """Write the policy of RUN for other programs, and check the written file.

    RUN is the folder of a run, or a model.npz or checkpoint.npz. ONNX and TorchScript files take
    observations and return the action, the policy's outputs and the value. An npz file holds the
    named arrays. The command loads the file again, compares it with the learner on random
    observations, and prints the largest difference. It deletes a file that differs.

    \b
    Examples:
      olaf export runs/latest --to onnx
      olaf export runs/latest --to torchscript --out lander.pt
      olaf export checkpoint.npz --env CartPole-v1 --to npz --out cartpole.npz

    \b
    Exit codes:
      0: written and checked   1: the file differs   2: invalid options, or a missing extra
    """
    extras.need("train", "gymnasium", what="olaf export")
    from olaf.files.modelfile import read_model
    from olaf.runs import exporting
    from olaf.runs.model import find_model, learner_with
    from olaf.runs.trust import need_trust

    out = options.apart_from_user_code(ctx, json_out=given["json_out"])
    found = find_model(given["run"], best=given["best"])
    theirs = {"learner.environment": given["env"]}
    need_trust(found.file.parent, found.tables, trusts=given["trust"], given=theirs)
    saved = read_model(found.file)
    settings = options.settings(ctx, KEYS, base=found.tables)
    kind = given["kind"]
    file = given["out"] or found.file.with_name(f"policy{exporting.KINDS[kind]}")
    if file.exists() and file.samefile(found.file):
        raise click.UsageError(f"--out {file}: that is the model itself; name another file")
    with contextlib.chdir("."):  # an environment may go elsewhere
        learner: Any = learner_with(settings, saved)
        learner.close()
    about = {
        "environment": settings.learner.environment,
        "learner": settings.learner.learner,
        "model_version": saved.version,
    }
    exported = exporting.export(learner, saved, kind, file, about)
    click.echo(
        f"{exported.file}: {exported.bytes:,} bytes, model version {saved.version:,} of "
        f"{found.file}\nchecked on {exported.observations} random observations: largest "
        f"difference from the learner {exported.difference:.2g}",
        err=out is not None,
    )
    if out is not None:
        fields = dataclasses.asdict(exported)
        result = {**fields, "file": str(exported.file), "model": str(found.file)}
        click.echo(json.dumps(result), file=out)
    return 0
