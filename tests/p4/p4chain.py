"""The programs with filled tables: a worker, a server, the cluster of the vectors in a group."""

from __future__ import annotations

import struct

from p4check import V1Model, Vitis
from p4frames import SERVER, WORKER, Status, ip, message, program

WORKERS = ((0x0200_0000_0001, "10.0.0.1", 40000), (0x0200_0000_0002, "10.0.0.2", 40001))
BYPASS, UPDATE, ANSWER = range(3)
GROUP = 5
UP, DOWN, QUEUE = 1, 0, 64
"""Ports: a worker's side, the server's side, the queue."""
OWN = Status(active_clusters=9, slots=8, used=3, round_us=70_000)


def before() -> Vitis:
    """The first block, with a worker, a server, and the cluster of the vectors in GROUP."""
    block = Vitis(program("olaf_vitis_in.p4"))
    block.table("Before.identify.senders").add((ip(WORKER),), "worker")
    block.table("Before.identify.senders").add((ip(SERVER),), "server")
    ours = message("update")
    block.table("Before.identify.clusters").add((ours["job"], ours["cluster"]), "in_group", GROUP)
    return block


def behind() -> Vitis:
    block = Vitis(program("olaf_vitis_out.p4"))
    for copy, (mac, address, port) in enumerate(WORKERS):
        block.table("Behind.readdress.receivers").add((GROUP, copy), "to", mac, ip(address), port)
    return block


def v1model() -> V1Model:
    switch = V1Model(program("olaf_v1model.p4"))
    switch.table("Ingress.wires").add((UP,), "wire", DOWN)
    switch.table("Ingress.wires").add((DOWN,), "wire", UP)
    switch.table("Ingress.identify.senders").add((ip(WORKER),), "worker")
    switch.table("Ingress.identify.senders").add((ip(SERVER),), "server")
    ours = message("update")
    clusters = switch.table("Ingress.identify.clusters")
    clusters.add((ours["job"], ours["cluster"]), "in_group", GROUP)
    switch.groups[GROUP] = [(UP, 0), (2, 1)]
    for copy, (mac, address, port) in enumerate(WORKERS):
        switch.table("Egress.readdress.receivers").add((GROUP, copy), "to", mac, ip(address), port)
    return switch


SIGNAL = struct.Struct("!BHIIIII3sHHIH")


def signal(frame: bytes) -> dict[str, int]:
    """The user signal in front of a frame at the queue's port."""
    names = (
        "class", "group", "flow", "job", "cluster", "worker", "segment", "used",
        "active_clusters", "slots", "round_us", "egress",
    )  # fmt: skip
    values = SIGNAL.unpack(frame[: SIGNAL.size])
    return {
        name: int.from_bytes(value, "big") if isinstance(value, bytes) else value
        for name, value in zip(names, values, strict=True)
    }


def from_queue(frame: bytes, own: Status) -> bytes:
    """What the queue gives back for a frame that it passes on: its status is in the signal."""
    fields = list(SIGNAL.unpack(frame[: SIGNAL.size]))
    fields[7:11] = [own.used.to_bytes(3, "big"), own.active_clusters, own.slots, own.round_us]
    return SIGNAL.pack(*fields) + frame[SIGNAL.size :]
