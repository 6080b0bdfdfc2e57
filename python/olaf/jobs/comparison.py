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


def plan(settings: Settings, out: Path) -> Iterator[Planned]:
    """All runs, seed by seed, so that a comparison cut short still compares; folders in ``out``."""
    compare = settings.compare
    for seed in compare.seeds:
        for queue in compare.queues:
            name = f"{queue}-seed{seed}"
            train: dict[str, Any] = {
                "seed": seed,
                "clusters": _clusters(settings),
                "time_limit_s": compare.time_limit_s,
                "out": str(out / name),
            }
            if "updates" not in settings.train.model_fields_set:
                # Time ends a run, not the number of updates: the two disciplines push alike.
                train["updates"] = None
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


def _clusters(settings: Settings) -> int:
    """As many as were asked for; where nobody asked, no more than there are workers."""
    clusters = settings.compare.clusters
    if "clusters" in settings.compare.model_fields_set:
        return clusters
    return min(clusters, settings.train.workers)


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


def verdict(summary: Mapping[str, Mapping[str, Any]], results: Sequence[Mapping[str, Any]]) -> str:
    """What the comparison says, in a few lines; what the uplink carried comes first."""
    fifo, olaf = summary.get("fifo"), summary.get("olaf")
    if fifo is None or olaf is None:
        return ""
    lines = []
    first = next(result for result in results if result["queue"] == "fifo")
    if fifo["loss"] is not None:
        lines.append(
            f"With an uplink of {first['uplink']} and {first['slots']} slots, FIFO lost "
            f"{fifo['loss']:.0%} of the updates, OLAF {olaf['loss'] or 0:.0%}."
        )
    if fifo["aom_mean_s"] and olaf["aom_mean_s"]:
        lines.append(f"FIFO's models were {fifo['aom_mean_s'] / olaf['aom_mean_s']:.1f}x as old.")
    freshest = summary.get("freshest")
    if freshest is not None and freshest["aom_mean_s"] and olaf["aom_mean_s"]:
        lines.append(f"OLAF's were {olaf['aom_mean_s'] / freshest['aom_mean_s']:.2f}x freshest's.")
    if fifo["reward"] is not None and olaf["reward"] is not None:
        ahead = olaf["reward"] - fifo["reward"]
        share = f" ({ahead / fifo['reward']:+.0%})" if fifo["reward"] > 0 else ""
        lines.append(
            f"OLAF ended at {olaf['reward']:.1f}, FIFO at {fifo['reward']:.1f}{share}; the paper's "
            "Figure 8 has OLAF 82 to 86.5 % above, in a setting it does not give in full."
        )
    return " ".join(lines)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
