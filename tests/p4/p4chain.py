"""The programs with filled tables: a worker, a server, the cluster of the vectors in a group."""

from __future__ import annotations

import struct

from p4check import V1Model, Vitis
from p4check.run import Entries
from p4frames import SERVER, WORKER, Frame, Status, ip, message, program

WORKERS = ((0x0200_0000_0001, "10.0.0.1", 40000), (0x0200_0000_0002, "10.0.0.2", 40001))
BYPASS, UPDATE, ANSWER = range(3)
GROUP = 5
UP, DOWN, QUEUE = 1, 0, 64
"""Ports: a worker's side, the server's side, the queue."""
SWITCH = (0x0200_0000_000A, "10.0.0.254", 5556)
SERVERS = {
    message("update")["job"]: ((0x0200_0000_0009, SERVER, 5555), 0),
    3: ((0x0200_0000_0008, "10.0.9.8", 5557), 2),
}
"""The server of each job, and the class of service of updates that depart."""
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
    for job in SERVERS:
        add_server(block.table("Behind.wrap.servers"), job)
    return block


def add_server(servers: Entries, job: int) -> None:
    """The entry of a job of SERVERS."""
    (mac, address, port), traffic_class = SERVERS[job]
    own_mac, own_address, own_port = SWITCH
    own = (own_mac, ip(own_address), own_port)
    servers.add((job,), "to_server", *own, mac, ip(address), port, traffic_class)


def departed(datagram: bytes) -> bytes:
    """The frame in which a departing update of a job of SERVERS leaves."""
    (mac, address, port), traffic_class = SERVERS[int.from_bytes(datagram[8:12], "big")]
    return Frame(
        datagram,
        source=SWITCH[1],
        destination=address,
        ports=(SWITCH[2], port),
        macs=(SWITCH[0], mac),
        with_checksum=False,
        traffic_class=traffic_class,
        identification=0,
        fragment=0x4000,
        time_to_live=64,
    ).emit()


def v1model() -> V1Model:
    switch = V1Model(program("olaf_v1model.p4"))
    switch.table("OlafIngress.wires").add((UP,), "wire", DOWN)
    switch.table("OlafIngress.wires").add((DOWN,), "wire", UP)
    switch.table("OlafIngress.wires").add((QUEUE,), "wire", DOWN)
    switch.table("OlafIngress.identify.senders").add((ip(WORKER),), "worker")
    switch.table("OlafIngress.identify.senders").add((ip(SERVER),), "server")
    ours = message("update")
    clusters = switch.table("OlafIngress.identify.clusters")
    clusters.add((ours["job"], ours["cluster"]), "in_group", GROUP)
    switch.groups[GROUP] = [(UP, 0), (2, 1)]
    for copy, (mac, address, port) in enumerate(WORKERS):
        switch.table("OlafEgress.readdress.receivers").add(
            (GROUP, copy), "to", mac, ip(address), port
        )
    for job in SERVERS:
        add_server(switch.table("OlafEgress.wrap.servers"), job)
    return switch


SIGNAL = struct.Struct("!BHIIIII3sHHIH")
NAMES = (
    "class", "group", "flow", "job", "cluster", "worker", "segment", "used",
    "active_clusters", "slots", "round_us", "copy",
)  # fmt: skip


def signal(frame: bytes) -> dict[str, int]:
    """The user signal in front of a frame at the queue's port."""
    values = SIGNAL.unpack(frame[: SIGNAL.size])
    return {
        name: int.from_bytes(value, "big") if isinstance(value, bytes) else value
        for name, value in zip(NAMES, values, strict=True)
    }


def packed(user: dict[str, int]) -> bytes:
    """The user signal as the bytes that `signal` reads."""
    values = [user[name] for name in NAMES]
    return SIGNAL.pack(*values[:7], user["used"].to_bytes(3, "big"), *values[8:])


def from_queue(frame: bytes, own: Status) -> bytes:
    """What the queue gives back for a frame that it passes on: its status is in the signal."""
    fields = list(SIGNAL.unpack(frame[: SIGNAL.size]))
    fields[7:11] = [own.used.to_bytes(3, "big"), own.active_clusters, own.slots, own.round_us]
    return SIGNAL.pack(*fields) + frame[SIGNAL.size :]
