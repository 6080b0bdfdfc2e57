"""Measures and draws how each choice of training options learns: ``make curves``.

``curves.json`` beside this file has the configurations, ``experiments/training`` in the checkout
the results.
"""

import argparse
import json
import os
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from olaf.rl import process_environment

PLAN = Path(__file__).with_name("curves.json")


def one_run(task: tuple[str, dict[str, Any], int]) -> dict[str, Any]:
    """Run one configuration with one seed; return the measurements."""
    from olaf.rl.compute import Steady
    from olaf.rl.learner import LearnerConfig
    from olaf.rl.virtual_job import JobConfig, LocalJob
    from olaf.rl.worker_loop import LoopConfig

    name, options, seed = task
    config = JobConfig(
        learner=LearnerConfig(seed=seed).replaced(**options.get("learner", {})),
        loop=LoopConfig(**options.get("loop", {})),
        server=options.get("server", {}),
        switch=options.get("switch", {}),
        compute=Steady(),
        **options.get("job", {}),
    )
    begin = time.process_time()
    job = LocalJob(config)
    outcome = job.run(options["updates"], until_reward=options["until_reward"], stop=False)
    cpu = time.process_time() - begin
    every = max(1, len(outcome.curve) // 100)
    return {
        "name": name,
        "seed": seed,
        "steps": outcome.steps,
        "steps_to": outcome.steps_to,
        "cpu_s": round(cpu, 1),
        "cpu_s_to": round(cpu * outcome.steps_to / outcome.steps, 1) if outcome.steps_to else None,
        "reward": round(outcome.reward, 1),
        "best": round(max(point[2] for point in outcome.curve[10:]), 1),
        "updates": outcome.updates,
        "applied": outcome.applied,
        "refused": outcome.refused,
        "fates": outcome.fates,
        "staleness_mean": round(outcome.staleness_mean, 2),
        "curve": [[steps, round(reward, 1)] for steps, _, reward in outcome.curve[::every]],
    }


def merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Return ``base`` with ``changes``, one table deep."""
    result = {key: dict(value) if isinstance(value, dict) else value for key, value in base.items()}
    for key, value in changes.items():
        if isinstance(value, dict):
            result[key] = {**result.get(key, {}), **value}
        else:
            result[key] = value
    return result


def draw(results: list[dict[str, Any]], figures: dict[str, list[str]], images: Path) -> None:
    """One picture per figure: each configuration's mean over seeds, with lowest and highest."""
    import matplotlib as mpl

    mpl.use("Agg")
    import numpy as np
    from matplotlib import pyplot as plt

    images.mkdir(parents=True, exist_ok=True)
    for figure, names in figures.items():
        plot, axes = plt.subplots(figsize=(7, 3.6))
        for name in names:
            curves = [np.array(r["curve"]).T for r in results if r["name"] == name]
            if not curves:
                continue
            end = min(curve[0][-1] for curve in curves)
            grid = np.linspace(max(curve[0][0] for curve in curves), end, 100)
            rewards = np.array([np.interp(grid, *curve) for curve in curves])
            (line,) = axes.plot(
                grid / 1000, rewards.mean(0), label=f"{name} ({len(curves)} seeds)", linewidth=1.3
            )
            axes.fill_between(
                grid / 1000, rewards.min(0), rewards.max(0), color=line.get_color(), alpha=0.15
            )
        axes.axhline(200, color="grey", linewidth=0.6, linestyle="--")
        axes.set(xlabel="environment steps of all workers, thousands", ylabel="mean reward")
        axes.set_ylim(bottom=max(axes.get_ylim()[0], -600))
        axes.legend(fontsize=7, loc="lower right")
        plot.tight_layout()
        plot.savefig(images / f"training-{figure}.png", dpi=110)
        plt.close(plot)


def table(results: list[dict[str, Any]]) -> str:
    """Markdown: a row per configuration, with the values of all its seeds."""
    lines = [
        "| configuration | reward at 250 k steps, by seed | at the end | steps to 200 (k) "
        "| CPU s to 200 | applied / delivered | staleness |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in dict.fromkeys(r["name"] for r in results):
        runs = sorted((r for r in results if r["name"] == name), key=lambda r: r["seed"])
        early = ", ".join(f"{reward_at(r['curve'], 250_000):.0f}" for r in runs)
        ends = ", ".join(f"{r['reward']:.0f}" for r in runs)
        steps = ", ".join(f"{r['steps_to'] / 1000:.0f}" if r["steps_to"] else "-" for r in runs)
        cpu = ", ".join(f"{r['cpu_s_to']:.0f}" if r["steps_to"] else "-" for r in runs)
        applied = ", ".join(f"{r['applied']}/{r['applied'] + r['refused']}" for r in runs)
        stale = sum(r["staleness_mean"] for r in runs) / len(runs)
        lines.append(f"| `{name}` | {early} | {ends} | {steps} | {cpu} | {applied} | {stale:.1f} |")
    return "\n".join(lines)


def reward_at(curve: list[list[float]], steps: int) -> float:
    """Return the mean reward at the last stored point up to ``steps``."""
    return [reward for seen, reward in curve if seen <= steps][-1]


def main() -> None:
    """Run the configurations that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of configurations")
    parser.add_argument("--seeds", nargs="*", type=int)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--draw", action="store_true", help="only draw and print results.json")
    parser.add_argument("--out", type=Path, default="experiments/training")
    parser.add_argument("--images", type=Path, default="docs/img")
    given = parser.parse_args()
    plan = json.loads(PLAN.read_text())
    given.out.mkdir(parents=True, exist_ok=True)
    stored = given.out / "results.json"
    results: list[dict[str, Any]] = json.loads(stored.read_text()) if stored.exists() else []
    if not given.draw:
        os.environ.update(process_environment())
        tasks = [
            (name, merged(plan["base"], changes), seed)
            for name, changes in plan["configurations"].items()
            if not given.only or name in given.only
            for seed in (given.seeds or changes.get("seeds", plan["base"]["seeds"]))
        ]
        with get_context("spawn").Pool(given.processes) as pool:
            for result in pool.imap_unordered(one_run, tasks):
                key = (result["name"], result["seed"])
                results = [r for r in results if (r["name"], r["seed"]) != key] + [result]
                order = list(plan["configurations"])
                results.sort(key=lambda r: (order.index(r["name"]), r["seed"]))
                lines = ",\n".join(json.dumps(r) for r in results)
                stored.write_text(f"[\n{lines}\n]\n")
                shown = {k: v for k, v in result.items() if k != "curve"}
                print(json.dumps(shown), flush=True)
    draw(results, plan["figures"], given.images)
    print(table(results))


if __name__ == "__main__":
    main()
