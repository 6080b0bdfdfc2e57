"""What `Client.push` of a large gradient costs, against copying it once and sending it.

`python benchmarks/push.py`. The baseline copies the gradient into a buffer and sends that buffer
with the same segmentation-offload calls (7 datagrams of 8,928 bytes each). Both go over loopback
to one process that swallows what comes, in turns; the ratio is what counts.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import multiprocessing.connection
import socket
import statistics
import struct
import time
from collections.abc import Callable

import numpy as np

from olaf import _olaf

UDP, SEGMENT_OFFLOAD, RECEIVE_OFFLOAD = 17, 103, 104
RECEIVE_BUFFER_FORCE = 33
LANES = 2208
SEGMENT = 96 + LANES * 4
BURST = 7 * SEGMENT


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=1_600_000, help="float32 values to push")
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    far_end = context.Process(target=swallow, args=(theirs,), daemon=True)
    far_end.start()
    address: tuple[str, int] = ours.recv()

    gradient = np.random.default_rng(1).standard_normal(arguments.values).astype(np.float32)
    client = _olaf.Client(f"{address[0]}:{address[1]}", job=1, cluster=0)
    client.join([gradient], 60.0)
    ours.send("swallow")
    ours.recv()

    plain = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    plain.connect(address)
    copied = np.empty_like(gradient)
    bytes_of_copy = memoryview(copied).cast("B")
    offload = [(UDP, SEGMENT_OFFLOAD, struct.pack("=H", SEGMENT))]

    def copy() -> None:
        np.copyto(copied, gradient)

    def copy_and_send() -> None:
        np.copyto(copied, gradient)
        for start in range(0, len(bytes_of_copy), BURST):
            plain.sendmsg([bytes_of_copy[start : start + BURST]], offload)

    def push() -> None:
        push_and_wait(client, gradient)

    times: dict[str, list[float]] = {"copy alone": [], "copy and send (baseline)": [], "push": []}
    calls: list[Callable[[], None]] = [copy, copy_and_send, push]
    for step in range(arguments.rounds + 5):
        for name, call in zip(times, calls, strict=True):
            began = time.perf_counter()
            call()
            took = time.perf_counter() - began
            if step >= 5:
                times[name].append(took)
            # The far end takes in what came, so that each starts with empty buffers.
            ours.send("drained?")
            ours.recv()
    print(f"push of {gradient.nbytes / 1e6:.1f} MB, {arguments.rounds} rounds in turns")
    base = statistics.median(times["copy and send (baseline)"])
    for name, taken in times.items():
        low, *_, high = statistics.quantiles(taken, n=10)
        middle = statistics.median(taken)
        print(
            f"  {name:26} {middle * 1e3:6.2f} ms (p10 {low * 1e3:.2f}, p90 {high * 1e3:.2f}), "
            f"ratio {middle / base:.2f}"
        )
    io = json.loads(client.stats())["io"]
    in_each = io["sent_datagrams"] / io["send_calls"]
    print(f"  {in_each:.1f} datagrams in each send; goal: at most 1.20")
    ours.send("stop")
    far_end.join()


def push_and_wait(client: _olaf.Client, gradient: np.ndarray) -> None:
    """Push, and wait until each segment has left. The far end gives no answer to wait for."""
    before, deadline = sent_datagrams(client), time.monotonic() + 10
    client.push([gradient], reward=0.0)
    while (left := sent_datagrams(client) - before) < -(-gradient.size // LANES):
        assert time.monotonic() < deadline, f"only {left} segments left within 10 s"


def sent_datagrams(client: _olaf.Client) -> int:
    """Datagrams that the client has sent."""
    count: int = json.loads(client.stats())["io"]["sent_datagrams"]
    return count


def swallow(control: multiprocessing.connection.Connection) -> None:
    """Be a server until the worker is in; from then on, only take datagrams in."""
    server = _olaf.Server(json.dumps({"listen": "127.0.0.1:0"}))
    server.start()
    host, port = server.address.rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as front:
        front.bind(("127.0.0.1", 0))
        front.settimeout(0.01)
        with contextlib.suppress(OSError):
            front.setsockopt(socket.SOL_SOCKET, RECEIVE_BUFFER_FORCE, 64 << 20)
        control.send(front.getsockname())
        _relay(front, (host, int(port)), control)
        server.stop()
        with contextlib.suppress(OSError):
            front.setsockopt(UDP, RECEIVE_OFFLOAD, 1)
        control.send("swallowing")
        front.setblocking(False)
        buffer = bytearray(1 << 16)
        while True:
            if _take_all(front, buffer) == 0 and control.poll(0):
                if control.recv() == "stop":
                    return
                while _take_all(front, buffer):
                    pass
                control.send("drained")


def _take_all(front: socket.socket, buffer: bytearray) -> int:
    taken = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            taken += front.recv_into(buffer)
    return taken


def _relay(
    front: socket.socket,
    server: tuple[str, int],
    control: multiprocessing.connection.Connection,
) -> None:
    worker: tuple[str, int] | None = None
    while not control.poll(0):
        with contextlib.suppress(TimeoutError):
            datagram, source = front.recvfrom(1 << 16)
            if source != server:
                worker = source
                front.sendto(datagram, server)
            elif worker is not None:
                front.sendto(datagram, worker)
    control.recv()


if __name__ == "__main__":
    main()
