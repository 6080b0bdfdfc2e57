"""Programs that speak like the roles, without the core: one UDP datagram is one contribution.

``fake_roles.py switch|server|worker`` is started like the real thing: the configuration comes as
the first line of standard input. Counters are honest; the network is real; nothing is learnt.
"""

import contextlib
import json
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Stats = dict[str, Any]
Take = Callable[[socket.socket, bytes], None]

LOSSES = {
    "policy": -0.012,
    "value": 0.31,
    "entropy": 1.21,
    "kl": 0.0081,
    "clipped": 0.12,
    "explained_variance": 0.85,
    "gradient_norm": 0.43,
    "learning_rate": 0.002,
}

FATES: Stats = {
    "sent_alone": 0,
    "merged": 0,
    "replaced": 0,
    "filtered": 0,
    "dropped": {"queue_full": 0},
    "rejected": {},
    "waiting": 0,
}


def say(event: str, **fields: Any) -> None:
    sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
    sys.stdout.flush()


class Told:
    def __init__(self) -> None:
        self.config = json.loads(sys.stdin.readline())
        self.stopping = threading.Event()
        self.finishing = threading.Event()
        self.stats = threading.Event()
        self.updates = 0
        self.orders: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.why = "asked to"
        signal.signal(signal.SIGTERM, self._terminated)

    def _terminated(self, *_: object) -> None:
        self.why = "SIGTERM"
        self.stopping.set()

    def _read(self) -> None:
        for line in sys.stdin:
            if line.strip() == "stats":
                self.stats.set()
            elif line.startswith(("save ", "evaluate ")):
                self.orders.put(line.split()[1])
            elif line.startswith("updates "):
                self.updates = max(self.updates, int(line[8:]))
            elif line.strip() == "finish":
                self.finishing.set()
            elif line.strip() == "stop":
                self.stopping.set()
        self.stopping.set()


def bound(listen: str) -> tuple[socket.socket, str]:
    host, _, port = listen.rpartition(":")
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.bind((host, int(port)))
    except OSError as error:
        sys.stderr.write(f"olaf: cannot listen on {listen}: {error.strerror}\n")
        sys.exit(4)
    sock.settimeout(0.02)
    return sock, f"{host}:{sock.getsockname()[1]}"


def serve(
    told: Told,
    take: Take,
    stats: Callable[[str], Stats],
    save: Callable[[str], None] = lambda job: None,
) -> None:
    core = json.loads(told.config["core"])
    sock, address = bound(core["listen"])
    say("listening", address=address, pid=os.getpid())
    due = time.monotonic() + told.config["every_s"]
    while not told.stopping.is_set():
        with contextlib.suppress(TimeoutError):
            take(sock, sock.recv(2048))
        while not told.orders.empty():
            save(told.orders.get())
        if told.stats.is_set() or time.monotonic() >= due:
            told.stats.clear()
            due = time.monotonic() + told.config["every_s"]
            say("stats", stats=stats(address))
    say("stopped", why=told.why, stats=stats(address))


def switch(told: Told) -> None:
    count = {"received": 0}
    fates = json.loads(json.dumps(FATES))
    upstream = json.loads(told.config["core"])["upstream"].rpartition(":")

    def take(sock: socket.socket, data: bytes) -> None:
        count["received"] += 1
        if count["received"] % 10 == 0:
            fates["dropped"]["queue_full"] += 1
        else:
            fates["sent_alone"] += 1
            sock.sendto(data, (upstream[0], int(upstream[2])))

    def stats(address: str) -> Stats:
        return {
            "role": "switch",
            "address": address,
            "received": count["received"],
            "departures": fates["sent_alone"],
            "queue": {"used": count["received"] % 5, "slots": 8},
            "fates": fates,
        }

    serve(told, take, stats)


def server(told: Told) -> None:
    clusters: dict[int, int] = {}

    def take(sock: socket.socket, data: bytes) -> None:
        cluster = json.loads(data)["cluster"]
        clusters[cluster] = clusters.get(cluster, 0) + 1

    def stats(address: str) -> Stats:
        received = sum(clusters.values())
        job = {
            "job": 1,
            "version": received,
            "parameters": 6,
            "segments": 1,
            "received": received,
            "deliveries": received,
            "staleness_mean": 1.5,
            "staleness_max": 4,
            "fairness": 0.99,
            "fates": {
                "delivered_alone": received,
                "delivered_merged": 0,
                "gated": 0,
                "rejected": {},
            },
            "clusters": [
                {
                    "cluster": number,
                    "aom_now_ns": 20e6 + 1e6 * (count % 30),
                    "aom_mean_ns": 30e6,
                    "aom_peak_mean_ns": 50e6,
                    "deliveries": count,
                    "contributions": count,
                    "staleness_mean": 1.5,
                    "staleness_max": 4,
                    "clock_error_ns": 1000,
                }
                for number, count in sorted(clusters.items())
            ],
        }
        return {"role": "server", "address": address, "jobs": [job] if received else []}

    def save(job: str) -> None:
        import numpy as np

        file = Path(told.config["save_folder"], f"model-{job}.npz")
        file.parent.mkdir(exist_ok=True)
        version = sum(clusters.values())
        np.savez(file, version=version, parameters=np.full(6, version, np.float32))
        say("saved", job=int(job), file=str(file))

    serve(told, take, stats, save)


def evaluator(told: Told) -> None:
    """Scores each model by its first parameter; FAKE_EVALUATOR says what goes wrong."""
    import numpy as np

    fault = os.environ.get("FAKE_EVALUATOR", "")
    say("ready", pid=os.getpid())
    while not told.stopping.is_set():
        try:
            file = told.orders.get(timeout=0.02)
        except queue.Empty:
            continue
        if fault == "dies":
            sys.stderr.write("simulator: out of licences\n")
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "hangs":
            told.stopping.wait(60)
        version = int(np.load(file)["version"])
        score = {"episodes": 10, "std": 1.0, "min": 0.0, "max": 2.0, "steps_mean": 5.0, "cut": 0}
        mean = -abs(version - 80.0)
        scores = {"greedy": {**score, "mean": mean}, "sampled": {**score, "mean": mean - 1}}
        say("evaluated", version=version, seconds=0.1, **scores)


def worker(told: Told) -> None:
    task = told.config
    if task["learner"]["environment"] == "Nowhere-v0":
        sys.stderr.write("olaf: unknown environment 'Nowhere-v0'\n")
        sys.exit(2)
    host, _, port = task["switch"].rpartition(":")
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    me = task["id"]
    say(
        "ready",
        worker=me,
        cluster=task["cluster"],
        environment=task["learner"]["environment"],
        parameters=6,
        shapes=[[2, 2], [2]],
        reward_threshold=200.0,
    )
    say("joined", worker=me, version=1)
    updates = 0
    # Worker 1 hangs once, and leaves this file.
    hang = Path(os.environ["FAKE_HANG"]) if "FAKE_HANG" in os.environ else None

    def stats() -> Stats:
        return {
            "role": "worker",
            "worker": me,
            "contributions": updates,
            "sent": updates,
            "replaced_unsent": 0,
            "unsent": 0,
            "held": 0,
            "discarded": 0,
        }

    def ending() -> bool:
        done = task["updates"] is not None and updates >= task["updates"]
        return done or told.finishing.wait(0.02) or told.stopping.is_set()

    while not ending():
        if task["rationed"] and updates >= told.updates:
            continue
        if hang is not None and me == 1 and updates == 20 and not hang.exists():
            hang.touch()
            told.stopping.wait(60)
        sock.sendto(json.dumps({"cluster": task["cluster"]}).encode(), (host, int(port)))
        updates += 1
        say(
            "update",
            worker=me,
            updates=updates,
            steps=updates * 100,
            episodes=updates,
            episode_rewards=[-200.0 + 4.0 * updates],
            episode_steps=[100],
            episode_numbers=[{"success": updates % 2, "energy": 0.25}],
            losses=LOSSES,
            reward=-200.0 + 4.0 * updates,
            model_version=updates,
            stats=stats(),
        )
    if told.finishing.is_set():
        say("finished", worker=me, stats=stats())
        told.stopping.wait(60)
    say("stopped", why=told.why, worker=me, flushed=True, stats=stats())


if __name__ == "__main__":
    roles = {"switch": switch, "server": server, "worker": worker, "evaluator": evaluator}
    roles[sys.argv[1]](Told())
