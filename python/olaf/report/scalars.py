"""TensorBoard scalars of a run, written at its end from what stands in run.json."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any


def write_scalars(folder: Path, record: Mapping[str, Any]) -> None:
    """Write one event file into ``folder``; an earlier run's is removed."""
    from tensorboardX import SummaryWriter  # type: ignore[import-untyped]

    for old in folder.glob("events.out.tfevents.*"):
        old.unlink()
    ended = datetime.fromisoformat(record["written_at"]).timestamp()
    began = ended - record["result"]["wall_s"]
    with SummaryWriter(str(folder)) as writer:
        for sample in record["history"]:
            step, at = sample["steps"], began + sample["at_s"]
            values = {
                "train/reward": sample["reward"],
                "train/updates": sample["updates"],
                "train/version": sample["version"],
                "queue/used": sample["queue_used"],
            }
            values |= {f"age_s/cluster_{c}": age for c, age in sample["ages_s"].items()}
            values |= {f"fates/{fate}": count for fate, count in sample["counts"].items()}
            for name, value in values.items():
                if value is not None:
                    writer.add_scalar(name, value, step, walltime=at)
        for at_s, worker, reward in record["episodes"]:
            writer.add_scalar(f"episode/worker_{worker}", reward, round(at_s * 1e3), began + at_s)
