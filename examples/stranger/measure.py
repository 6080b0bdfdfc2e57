"""One process against four workers: `python measure.py [SEEDS] [CURVE.png]`.

Runs `ppo_before.py` alone, then four of `ppo_with_olaf.py` through `olaf.local`, for each seed.
A run has learnt CartPole when the mean of its last 100 episodes, of all its workers, is 200. Prints
seconds and environment steps until then, and draws the curves.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import IO, NamedTuple

import olaf

HERE = Path(__file__).parent
LINE = re.compile(r"([\d.]+) s  (\d+) steps  reward [\d.]+  episodes ([\d ]*)")
WORKERS, GOAL, WINDOW = 4, 200.0, 100


class Point(NamedTuple):
    """Where a run stands: all its workers together."""

    seconds: float
    steps: int
    reward: float


def start(script: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a script of this folder."""
    argv = [sys.executable, str(HERE / script), *map(str, arguments)]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)


def curve_of(runs: list[subprocess.Popen[str]]) -> list[Point]:
    """The curve of the workers of one job, from what they printed; waits until they end."""
    turns: list[tuple[float, int, int, list[float]]] = []
    for worker, run in enumerate(runs):
        output: IO[str] | None = run.stdout
        assert output is not None
        for seconds, steps, episodes in LINE.findall(output.read()):
            turns.append((float(seconds), worker, int(steps), [*map(float, episodes.split())]))
        if run.wait() != 0:
            raise SystemExit(f"{run.args}: exit code {run.returncode}")
    window: deque[float] = deque(maxlen=WINDOW)
    steps_of, points = [0] * len(runs), []
    for seconds, worker, steps, rewards in sorted(turns):
        steps_of[worker] = steps
        window.extend(rewards)
        if window:
            points.append(Point(seconds, sum(steps_of), sum(window) / len(window)))
        if len(window) == WINDOW and points[-1].reward >= GOAL:
            break
    return points


def measure(seed: int) -> tuple[list[Point], list[Point], float]:
    """The curves of one process and of four workers, and the mean staleness of their updates."""
    alone = curve_of([start("ppo_before.py", seed)])
    with olaf.local(queue="olaf", slots=8) as job:
        seeds = [WORKERS * seed + worker for worker in range(WORKERS)]
        together = curve_of([start("ppo_with_olaf.py", seed, job.address) for seed in seeds])
        (served,) = job.stats()["server"]["jobs"]
    return alone, together, served["staleness_mean"]


def draw(alone: list[list[Point]], together: list[list[Point]], file: Path) -> None:
    """Reward over seconds, and over the environment steps of each worker."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (by_time, by_steps) = pyplot.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    kinds = (
        ("one process", "#888888", 1, alone),
        (f"{WORKERS} workers, Olaf", "#1f6feb", WORKERS, together),
    )
    for name, colour, workers, curves in kinds:
        for number, curve in enumerate(curves):
            label = None if number else name
            rewards = [point.reward for point in curve]
            by_time.plot([p.seconds for p in curve], rewards, color=colour, label=label)
            by_steps.plot([p.steps / workers for p in curve], rewards, color=colour)
    for axes, text in ((by_time, "seconds"), (by_steps, "environment steps of each worker")):
        axes.axhline(GOAL, color="#cccccc", linewidth=0.8, zorder=0)
        axes.set_xlabel(text)
    by_time.set_ylabel(f"mean reward of {WINDOW} episodes")
    by_time.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file, dpi=110)


def main() -> None:
    """Measure each seed, print a table, draw."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(f"| seed | one process | {WORKERS} workers | staleness |\n|---|--:|--:|--:|")
    alone, together = [], []
    for seed in range(seeds):
        one, several, staleness = measure(seed)
        alone.append(one)
        together.append(several)
        cells = [f"{c[-1].seconds:.1f} s, {c[-1].steps:,} steps" for c in (one, several)]
        print(f"| {seed} | {cells[0]} | {cells[1]} | {staleness:.1f} |", flush=True)
    if len(sys.argv) > 2:
        draw(alone, together, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
