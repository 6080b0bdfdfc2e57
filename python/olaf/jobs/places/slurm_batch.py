"""A training run as a Slurm batch job: its script, its configuration, and the submission.

The script only runs ``olaf train --on srun`` on the first node. That is the ordinary driver, so
display, accounts, restarts and report are those of every other run.
"""

from __future__ import annotations

import math
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.places.slurm_place import deal, role_names
from olaf.jobs.reading import write_toml
from olaf.jobs.run_keys import absolute
from olaf.jobs.settings import Settings

SUBMIT_S = 60.0
"""Time limit for ``sbatch``, in seconds."""


SCRIPT, CONFIGURATION = "job.sbatch", "job.toml"
"""Names of the files in the run's folder."""

WRITTEN = "# Written by `olaf train --on slurm`"
"""Files with a line that begins with `WRITTEN` are ours."""

JOURNAL = "history.jsonl"
"""See `olaf.runs.journal`: a folder with this file holds a run that can be resumed."""


@dataclass(frozen=True)
class Batch:
    """The files that `olaf train --on slurm` wrote."""

    script: Path
    configuration: Path
    log: Path
    """File that the job prints to; ``%j`` is its number."""


def write_batch(settings: Settings, folder: Path, script: Path | None = None) -> Batch:
    """Write the script of a run to this folder, and its configuration beside it."""
    folder = folder.absolute()
    script = (script or folder / SCRIPT).absolute()
    # Never beside a script at a path of the user: a file of theirs may have that name.
    batch = Batch(script, folder / CONFIGURATION, folder / "slurm-%j.out")
    for path in (batch.script, batch.log, Path.cwd()):
        if re.search(r"[\x00-\x1f\"'\\]", str(path)):
            raise RunError(f"{path!s}: sbatch cannot read a path with such characters", Exit.USAGE)
    if "%" in str(folder):
        raise RunError(f"--out {folder}: sbatch gives % a special meaning", Exit.USAGE)
    settings = absolute(settings)
    train = settings.train.model_copy(update={"on": "srun", "out": str(folder)})
    told = settings.model_copy(update={"train": train})
    for path in (batch.script, batch.configuration):
        refuse_strangers(path)
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
        batch.configuration.write_text(
            f"{WRITTEN}, read by the script of the job.\n"
            + write_toml(told, comments=False, given=True),
            encoding="utf-8",
        )
        script.write_text(batch_script(settings, batch, folder), encoding="utf-8")
    except OSError as error:
        raise RunError(f"{error.filename}: cannot be written ({error.strerror})") from None
    return batch


def refuse_strangers(path: Path) -> None:
    """Raise RunError if the path is a file that `olaf train --on slurm` did not write."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror})", Exit.USAGE) from None
    if not any(line.startswith(WRITTEN) for line in text.splitlines()):
        raise RunError(
            f"{path}: this file is there already, and `olaf train` did not write it; nothing was "
            "overwritten. Move it away, or choose another place with --script or --out",
            Exit.USAGE,
        )


def batch_script(settings: Settings, batch: Batch, folder: Path) -> str:
    """The text of the script of a run in this folder."""
    olaf = shlex.join([sys.executable, "-m", "olaf", "train"])
    begun = shlex.quote(str(folder / JOURNAL))
    lines = [
        "#!/bin/bash",
        *(f"#SBATCH {option}" for option in sbatch_options(settings, batch)),
        f"{WRITTEN}. Submit it again with: sbatch {shlex.quote(str(batch.script))}",
        "set -euo pipefail",
        f"cd {shlex.quote(str(Path.cwd()))}",
        *settings.slurm.setup,
        "# A job that was put back into the queue goes on where it was.",
        f"how=(--config {shlex.quote(str(batch.configuration))})",
        f"if [ -e {begun} ]; then how=(--resume {shlex.quote(str(folder))} --trust); fi",
        f'{olaf} "${{how[@]}}" &',
        "driver=$!",
        "# Slurm tells this script alone that time is nearly up: the run is to end in order.",
        "trap 'kill -TERM \"$driver\"' TERM INT",
        "# A signal ends the wait, not the driver.",
        "code=0",
        'wait "$driver" || code=$?',
        'while kill -0 "$driver" 2>/dev/null; do',
        "  code=0",
        '  wait "$driver" || code=$?',
        "done",
        'exit "$code"',
    ]
    return "\n".join(lines) + "\n"


def sbatch_options(settings: Settings, batch: Batch) -> list[str]:
    """The sbatch options of the job."""
    slurm, train = settings.slurm, settings.train
    nodes = [str(number) for number in range(slurm.nodes)]
    load = Counter(deal(role_names(train), nodes).values())
    name = re.sub(r"[^\w.-]+", "-", settings.learner.environment)
    log = str(batch.log)
    options = [
        f"--job-name=olaf-{name}",
        f"--nodes={slurm.nodes}",
        f"--ntasks-per-node={max(load.values())}",
        f"--cpus-per-task={slurm.cpus_per_worker}",
        f"--time={slurm.time}",
        f"--signal=B:TERM@{slurm.stop_before_s}",
        f"--output={shlex.quote(log) if ' ' in log else log}",
        "--open-mode=append",
        "--requeue" if slurm.requeue else "--no-requeue",
    ]
    if slurm.memory_per_cpu is not None:
        options.append(f"--mem-per-cpu={slurm.memory_per_cpu}")
    if slurm.gpus_per_worker:
        workers = math.ceil(train.workers / slurm.nodes)
        options.append(f"--gres=gpu:{workers * slurm.gpus_per_worker}")
    if slurm.partition is not None:
        options.append(f"--partition={slurm.partition}")
    if slurm.account is not None:
        options.append(f"--account={slurm.account}")
    return options + slurm.options


def submit(batch: Batch) -> str:
    """Submit the script to Slurm; return the number of the job."""
    if not shutil.which("sbatch"):
        raise RunError(
            f"this machine has no sbatch: nothing was submitted. The script is {batch.script}: "
            f"run `sbatch {shlex.quote(str(batch.script))}` where Slurm is",
            Exit.USAGE,
        )
    command = ["sbatch", "--parsable", str(batch.script)]
    try:
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=SUBMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise RunError(
            f"sbatch did not answer within {SUBMIT_S:g} s; `squeue --me` shows whether the job "
            f"was taken. The script is {batch.script}",
            Exit.UNREACHABLE,
        ) from None
    if said.returncode:
        # Nothing depends on these files: delete them, so that a corrected command can write again.
        batch.script.unlink(missing_ok=True)
        batch.configuration.unlink(missing_ok=True)
        reason = said.stderr.strip() or f"it exited with {said.returncode}"
        raise RunError(f"sbatch did not take the job: {reason}")
    return said.stdout.strip().partition(";")[0]
