"""The same learners in the same processes without a network.

``python -m olaf.rl.baseline --workers 8 --updates 20`` prints environment steps per second as
JSON. A benchmark compares the networked run with it.
"""

import argparse
import json
import multiprocessing
import os
import time
from contextlib import closing
from dataclasses import asdict, dataclass

from olaf.rl import process_environment
from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.making import make_learner


@dataclass(frozen=True)
class Baseline:
    """The result of a run without a network. Seconds are wall time unless the name says cpu."""

    environment: str
    learner: str
    workers: int
    updates: int
    steps: int
    wall_s: float
    """Seconds from the moment all workers are ready to the last worker's last update."""
    cpu_s: float
    """CPU seconds of all workers over that time."""
    steps_per_s: float
    steps_per_cpu_s: float


def measure(config: LearnerConfig, workers: int, updates: int) -> Baseline:
    """Run ``workers`` processes of ``updates`` turns each; return their sums."""
    for name, value in process_environment().items():
        os.environ.setdefault(name, value)
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(workers + 1)
    results = context.SimpleQueue()
    processes = [
        context.Process(target=one_worker, args=(config, index, updates, ready, results))
        for index in range(workers)
    ]
    for process in processes:
        process.start()
    ready.wait(timeout=120)
    begin = time.perf_counter()
    done = [results.get() for _ in processes]
    wall = time.perf_counter() - begin
    for process in processes:
        process.join()
    steps, cpu = sum(d[0] for d in done), sum(d[1] for d in done)
    return Baseline(
        environment=config.environment,
        learner=config.learner,
        workers=workers,
        updates=updates,
        steps=steps,
        wall_s=wall,
        cpu_s=cpu,
        steps_per_s=steps / wall,
        steps_per_cpu_s=steps / cpu,
    )


def one_worker(
    config: LearnerConfig,
    worker: int,
    updates: int,
    ready: "multiprocessing.synchronize.Barrier",
    results: "multiprocessing.queues.SimpleQueue[tuple[int, float]]",
) -> None:
    """Run one worker's process: wait for the others, learn alone, report steps and CPU seconds."""
    with closing(make_learner(config, worker)) as learner:
        ready.wait(timeout=120)
        begin = time.process_time()
        steps = sum(learner.iterate().steps for _ in range(updates))
        results.put((steps, time.process_time() - begin))


def main() -> None:
    """Measure by the command line's arguments and print one line of JSON."""
    defaults = LearnerConfig()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env", default=defaults.environment)
    parser.add_argument("--learner", default=defaults.learner)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--updates", type=int, default=20, help="number of turns per worker")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    config = LearnerConfig(environment=given.env, learner=given.learner, seed=given.seed)
    try:
        make_learner(config).close()  # report an unknown environment once, not once per worker
        print(json.dumps(asdict(measure(config, given.workers, given.updates))))
    except LearnerError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
