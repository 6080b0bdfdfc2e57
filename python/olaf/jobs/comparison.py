"""The same training once with each discipline and seed, and what that says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from olaf.jobs.settings import Settings


@dataclass(frozen=True)
class Planned:
    """One run of a comparison."""

    name: str
    settings: Settings


def plan(settings: Settings) -> Iterator[Planned]:
    """All runs, seed by seed, so that a comparison cut short still compares."""
    compare = settings.compare
    for seed in compare.seeds:
        for queue in compare.queues:
            name = f"{queue}-seed{seed}"
            train = {
                "seed": seed,
                "clusters": compare.clusters,
                "out": str(Path(compare.out) / name),
            }
            switch: dict[str, Any] = {"queue": queue, "slots": compare.slots}
            if settings.switch.credits is None:
                switch["uplink"] = compare.uplink
            yield Planned(
                name,
                settings.model_copy(
                    update={
                        "train": settings.train.model_copy(update=train),
                        "switch": settings.switch.model_copy(update=switch),
                    }
                ),
            )


def summarize(results: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Means over the runs of each discipline; of the time to the reward, over those it reached."""
    by_queue: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        by_queue.setdefault(result["queue"], []).append(result)
    return {
        queue: {
            "runs": len(runs),
            "reached": sum(run["reached_s"] is not None for run in runs),
            "reached_s": _mean([run["reached_s"] for run in runs]),
            "reward": _mean([run["reward"]["mean"] for run in runs]),
            "wall_s": _mean([run["wall_s"] for run in runs]),
            "updates": _mean([run["updates"] for run in runs]),
            "loss": _mean([run["loss"] for run in runs]),
            "aom_mean_s": _mean([run["age_of_model"]["mean_s"] for run in runs]),
            "aom_peak_mean_s": _mean([run["age_of_model"]["peak_mean_s"] for run in runs]),
            "staleness": _mean([run["staleness"]["mean"] for run in runs]),
            "fairness": _mean([run["fairness"] for run in runs]),
            "env_steps_per_s": _mean([run["env_steps_per_s"] for run in runs]),
        }
        for queue, runs in by_queue.items()
    }


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
