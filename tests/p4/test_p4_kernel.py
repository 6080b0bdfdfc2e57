"""Frames of departing updates reach a socket of Linux: the kernel accepts headers and checksums."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack

import pytest
from namespaces import namespaces
from p4chain import UPDATE, behind
from p4frames import ip, message, put

RECEIVER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
s.bind(("10.77.0.2", 5555))
s.settimeout(20)
print(open("/sys/class/net/r/address").read().strip(), flush=True)
for _ in range(COUNT):
    data, control, _, source = s.recvmsg(65536, 64)
    print(data.hex(), control[0][2][0], *source, flush=True)
"""
SENDER = """
import json, socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("l", 0))
for frame in json.loads(FRAMES):
    s.send(bytes.fromhex(frame))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="raw frames are sent as on Linux")
def test_linux_delivers_departing_updates() -> None:
    block = behind()
    servers = block.table("Behind.wrap.servers")
    job = message("update")["job"]
    sent = [(put(message("update")["data"], 68, "I", lanes)[:96] + bytes(range(4)) * lanes, tos)
            for lanes, tos in ((1, 0), (3, 2), (366, 0xB8), (2208, 2))]  # fmt: skip
    with ExitStack() as stack:
        network = namespaces(stack, [9000])
        count = str(len(sent))
        receiver = network.run(1, "python3", "-c", RECEIVER.replace("COUNT", count))
        stack.callback(receiver.kill)
        assert receiver.stdout is not None
        mac = int(receiver.stdout.readline().strip().replace(":", ""), 16)
        frames = []
        for datagram, tos in sent:
            source = (0x0200_0000_000A, ip("10.77.0.1"), 5556)
            servers.add((job,), "to_server", *source, mac, ip("10.77.0.2"), 5555, tos)
            _, out = block.process(datagram, **{"class": UPDATE})
            assert out is not None
            frames.append(out.hex())
        program = SENDER.replace("FRAMES", repr(json.dumps(frames)))
        assert network.run(0, "python3", "-c", program).wait() == 0
        lines = [receiver.stdout.readline().split() for _ in sent]
    assert lines == [[datagram.hex(), str(tos), "10.77.0.1", "5556"] for datagram, tos in sent]
