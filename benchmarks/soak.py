"""Does a switch or a server grow? Two jobs with workers that come and go, and the memory of both.

    make soak SECONDS=600

The switch and the server are processes of their own. Each of the two jobs has workers that push as
fast as they are answered; every `CHURN_S` seconds a worker of each job leaves and a new one joins,
with an id that was never there. The first third of the run is the warm-up. What follows is cut into
ten parts, and the resident memory of each process is compared: the median of the first part with
that of the last. Exit code 1: it grew by more than `FLAT`, or a job made no progress.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

import olaf
from olaf import _olaf

SIZES = {1: 30_000, 2: 5_000}
"""Parameters of each job's model."""
WORKERS, CLUSTERS = 4, 3
CHURN_S = 1.0
FLAT = 0.02


class Counts:
    """What the workers of a job did."""

    def __init__(self) -> None:
        self.pushed = 0
        self.joined = 0
        self.errors: list[str] = []


def role(kind: str, **config: object) -> tuple[subprocess.Popen[str], str]:
    """A switch or a server as a process, and its address."""
    argv = [sys.executable, __file__, kind, json.dumps(config)]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def serve(kind: str, config: str) -> None:
    """A switch or a server whose events are taken, as `olaf switch` does: untaken ones are kept."""
    role = _olaf.Switch(config) if kind == "switch" else _olaf.Server(config)
    role.start()
    print(role.address, flush=True)
    while True:
        role.events()
        threading.Event().wait(0.1)


def resident_bytes(process: subprocess.Popen[str]) -> int:
    """Resident memory of a process."""
    pages = Path(f"/proc/{process.pid}/statm").read_text(encoding="utf-8").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def work(address: str, job: int, worker: int, until: float, counts: Counts) -> None:
    """One worker's life: joins, pushes, leaves."""
    update = [np.full(SIZES[job], 1e-6, np.float32)]
    weights = [np.zeros(SIZES[job], np.float32)]
    try:
        with olaf.connect(address, job=job, cluster=worker % CLUSTERS, worker=worker) as connection:
            connection.join(weights, timeout_s=20.0)
            counts.joined += 1
            while time.monotonic() < until:
                connection.push(update, reward=1.0)
                counts.pushed += 1
                connection.wait(timeout_s=0.05)
                connection.pull(into=weights)
    except (olaf.OlafError, OSError) as error:
        counts.errors.append(f"job {job}, worker {worker}: {error}")


def churn(address: str, job: int, end: float, counts: Counts) -> None:
    """Keeps WORKERS workers of the job alive; each lives for as many turns as there are workers."""
    lives: list[threading.Thread] = []
    for worker in itertools.count(1):
        now = time.monotonic()
        if now >= end:
            break
        until = min(end, now + WORKERS * CHURN_S)
        life = threading.Thread(target=work, args=(address, job, worker, until, counts))
        life.start()
        lives = [one for one in lives if one.is_alive()] + [life]
        threading.Event().wait(CHURN_S)
    for life in lives:
        life.join(60.0)


def main() -> int:
    """Run for the seconds of the first argument, and print the table."""
    if len(sys.argv) > 2:
        serve(*sys.argv[1:])
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    logging.getLogger("olaf").setLevel(logging.WARNING)  # no line for each of the workers
    server, upstream = role("server", listen="127.0.0.1:0")
    switch, address = role("switch", listen="127.0.0.1:0", upstream=upstream, slots=32)
    began = time.monotonic()
    end = began + seconds
    counts = {job: Counts() for job in SIZES}
    jobs = [threading.Thread(target=churn, args=(address, job, end, counts[job])) for job in SIZES]
    memory: dict[str, list[int]] = {"switch": [], "server": []}
    try:
        for job in jobs:
            job.start()
        while time.monotonic() < end:
            for name, process in (("switch", switch), ("server", server)):
                assert process.poll() is None, f"the {name} ended"
                memory[name].append(resident_bytes(process))
            if len(memory["switch"]) % 60 == 0:
                joined = sum(count.joined for count in counts.values())
                print(f"{time.monotonic() - began:.0f} s: {joined} workers", file=sys.stderr)
            threading.Event().wait(1.0)
        for job in jobs:
            job.join(90.0)
    finally:
        switch.kill()
        server.kill()
    return report(seconds, counts, memory)


def report(seconds: float, counts: dict[int, Counts], memory: dict[str, list[int]]) -> int:
    """Print what was measured; the exit code."""
    good = True
    print(f"{seconds:.0f} s, two jobs, a worker of each leaves and one joins every {CHURN_S:.0f} s")
    print("| job | workers that joined | pushes | errors |\n|---|--:|--:|--:|")
    for job, count in counts.items():
        print(f"| {job} | {count.joined:,} | {count.pushed:,} | {len(count.errors)} |")
        good &= count.joined > seconds / CHURN_S / 2 and not count.errors
    print("| process | after the warm-up | at the end | growth |\n|---|--:|--:|--:|")
    for name, samples in memory.items():
        after = samples[len(samples) // 3 :]
        part = max(len(after) // 10, 1)
        first, last = statistics.median(after[:part]), statistics.median(after[-part:])
        growth = last / first - 1
        print(f"| {name} | {first / 2**20:.2f} MiB | {last / 2**20:.2f} MiB | {growth:+.2%} |")
        good &= growth <= FLAT
    for error in [error for count in counts.values() for error in count.errors][:10]:
        print(error)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
