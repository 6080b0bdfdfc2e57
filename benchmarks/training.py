"""Environment steps per second of `olaf train`, against the same learners without any network.

Both run with the same workers and turns, in turn (A B A B ..), on this machine; the ratio is taken
pair by pair. Steps are counted by the workers; time runs from the first update to the last.

    python benchmarks/training.py [--pairs 3] [--updates 25]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def networked(workers: int, updates: int) -> float:
    """Steps per second of a training run through server and switch."""
    with tempfile.TemporaryDirectory() as out:
        command = [
            *(sys.executable, "-m", "olaf", "train", "--json", "--out", out),
            *("--workers", str(workers), "--updates", str(workers * updates)),
            *("--until-reward", "off", "--seed", "0"),
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            sys.exit(f"olaf train failed with {done.returncode}:\n{done.stderr[-2000:]}")
        record = json.loads((Path(out) / "run.json").read_text())
        return float(record["result"]["env_steps_per_s"])


def alone(workers: int, updates: int) -> float:
    """Steps per second of the same learners with nothing between them."""
    command = [
        *(sys.executable, "-m", "olaf.rl.baseline", "--workers", str(workers)),
        *("--updates", str(updates)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return float(json.loads(done.stdout)["steps_per_s"])


def main() -> None:
    """Measure the pairs and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--updates", type=int, default=25, help="turns of each worker")
    given = parser.parse_args()
    ratios = []
    for pair in range(given.pairs):
        with_network = networked(given.workers, given.updates)
        without = alone(given.workers, given.updates)
        ratios.append(with_network / without)
        print(
            f"pair {pair + 1}: {with_network:,.0f} steps/s through the switch, "
            f"{without:,.0f} without a network, ratio {ratios[-1]:.3f}",
            flush=True,
        )
    print(
        f"training: median ratio {statistics.median(ratios):.3f} "
        f"(from {min(ratios):.3f} to {max(ratios):.3f}; goal at least 0.90)"
    )


if __name__ == "__main__":
    main()
