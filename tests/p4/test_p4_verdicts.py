"""The verdicts of vectors/wire/native/verdicts.json: of the switch, and of the P4 program.

The RTL identifier is tested with the same file (rtl/tb/olaf_identifier). ``OLAF_FILL_VECTORS=1``
writes it anew, with the switch's verdicts.
"""

from __future__ import annotations

import json
import os
import random
import struct

import pytest
from p4check import Vitis
from p4frames import ROOT, SERVER, WORKER, Frame, edges, ip, message, messages, mutants, program

from olaf._olaf import Engine

PATH = ROOT / "vectors" / "wire" / "native" / "verdicts.json"
CLASSES = {0: "other", 1: "update", 2: "answer"}


def datagrams() -> list[bytes]:
    """The vectors, the edge cases of the parsers, and both changed, cut and lengthened."""
    chance = random.Random(37)
    made = [message["data"] for message in messages()]
    made += [data for _, data in edges()]
    for kind in ("update", "acknowledgement", "model"):
        made += mutants(message(kind)["data"], 150, chance)
    return made


def of_switch(data: bytes) -> str:
    """What the switch reads. It knows no job, so each message that it can read has one verdict."""
    engine = Engine("switch", json.dumps({"server": 1}))
    kind = data[5] if len(data) > 5 else 0
    if kind == 1 and engine.handle_packet(1, 7, data, 1) == "unknown_worker":
        return "update"
    if kind in {2, 3} and engine.handle_packet(1, 1, data, 0) == "unknown_job":
        return "answer"
    return "other"


def of_p4(data: bytes, block: Vitis) -> str:
    """What the P4 program says, whoever sent it, in a cluster that has a group."""
    key = struct.unpack("!II", data[8:16].ljust(8, b"\0"))
    clusters = block.table("Before.identify.clusters")
    clusters.add(key, "in_group", 1)
    said = {
        CLASSES[block.process(Frame(data, source=sender).emit())[0]["class"]]
        for sender in (WORKER, SERVER)
    }
    clusters.remove(key)
    said.discard("other")
    assert len(said) <= 1
    return said.pop() if said else "other"


def written(data: bytes) -> dict[str, str | int]:
    """A row of the file. The zeros at a long datagram's end are a number."""
    zeros = len(data) - len(data.rstrip(b"\0"))
    zeros = zeros if zeros > 64 else 0
    shown = data[: len(data) - zeros].hex()
    return {"verdict": of_switch(data), "zeros": zeros, "hex": shown}


def read(row: dict[str, str | int]) -> bytes:
    return bytes.fromhex(str(row["hex"])) + bytes(int(row["zeros"]))


@pytest.fixture(scope="module")
def rows() -> list[dict[str, str | int]]:
    if os.environ.get("OLAF_FILL_VECTORS"):
        lines = (json.dumps(written(data)) for data in datagrams())
        PATH.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    found: list[dict[str, str | int]] = json.loads(PATH.read_text())
    return found


def test_the_switch_gives_the_verdicts_of_the_file(rows: list[dict[str, str | int]]) -> None:
    for row in rows:
        assert of_switch(read(row)) == row["verdict"], row
    verdicts = [row["verdict"] for row in rows]
    assert min(verdicts.count(verdict) for verdict in CLASSES.values()) > 60


def test_the_p4_program_gives_the_verdicts_of_the_file(rows: list[dict[str, str | int]]) -> None:
    block = Vitis(program("olaf_vitis_in.p4"))
    block.table("Before.identify.senders").add((ip(WORKER),), "worker")
    block.table("Before.identify.senders").add((ip(SERVER),), "server")
    for row in rows:
        assert of_p4(read(row), block) == row["verdict"], row
