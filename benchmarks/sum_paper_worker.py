"""One worker of `benchmarks/sum_papers.py`: sums with `olaf.connect_sum`, and prints its times.

The plan is the first argument, as JSON. With `stop` one worker sleeps before some of its calls;
the calls begin together, because each follows a sum of one value that everybody is in.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

import olaf

WARM_UP = 2
"""Calls before those that are measured."""


def main() -> None:
    """Measure the calls of the plan."""
    plan: dict[str, Any] = json.loads(sys.argv[1])
    stop = plan.get("stop", {"rank": -1, "every": 1, "s": 0.0})
    values = np.random.default_rng(plan["seed"]).random(plan["bytes"] // 4, dtype=np.float32)
    told: dict[str, list[Any]] = {"seconds": [], "stopped": [], "late": []}
    operations = 0
    with olaf.connect_sum(
        plan["switch"],
        job=plan["job"],
        workers=plan["workers"],
        rank=plan["rank"],
        protocol=plan["protocol"],
        timeout_s=plan["timeout_s"],
        deadline_s=plan.get("deadline_s"),
        **plan.get("connection", {}),
    ) as job:
        for at in range(-WARM_UP, plan["calls"]):
            if "stop" in plan:
                together(job)
            stopped = "stop" in plan and at >= 0 and at % stop["every"] == 0
            if stopped and job.rank == stop["rank"]:
                time.sleep(stop["s"])
            mine = values.copy()
            began = time.perf_counter()
            future = job.all_reduce_async(mine, partial="stop" in plan)
            future.wait()
            took = time.perf_counter() - began
            operations += 1
            counts = future.counts
            assert counts is not None
            if counts.contributors == plan["workers"]:
                np.testing.assert_allclose(mine, values * plan["workers"], rtol=1e-5, atol=1e-5)
            if at >= 0:
                told["seconds"].append(took)
                told["stopped"].append(stopped)
                told["late"] += [counts.contributors] if stopped else []
    print(json.dumps(told | {"operations": operations}))


def together(job: olaf.SumConnection) -> None:
    """Wait until every worker is here: sums of one value, until one of them has everybody in it."""
    while True:
        future = job.all_reduce_async(np.ones(1, np.float32), partial=True)
        future.wait()
        assert future.counts is not None
        if future.counts.contributors == job.workers:
            return


if __name__ == "__main__":
    main()
