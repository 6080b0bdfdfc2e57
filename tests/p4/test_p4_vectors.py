"""vectors/p4/board.json: the same frames for the P4 blocks and for the board between them.

rtl/tb/olaf_u55c plays the board's half to the Verilog. ``OLAF_FILL_VECTORS=1`` writes the file
anew, with what the blocks do, and what the queue of the engine does between them.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from p4board import UPDATE_HEADER, Board
from p4chain import NAMES, OWN, SERVERS, SIGNAL, SWITCH, UPDATE, WORKERS, packed, signal
from p4check import Vitis
from p4frames import ROOT, SERVER, WORKER, Frame, down, ip, message, program, put

PATH = ROOT / "vectors" / "p4" / "board.json"
BOARD = {"slots": OWN.slots, "session": 77, "active_clusters": OWN.active_clusters,
         "round_us": OWN.round_us}  # fmt: skip
LONG = 60
"""Lanes of the update that holds the link: four beats of 64 bytes and more."""

Rows = list[dict[str, Any]]


def tables() -> dict[str, Rows]:
    """Entries as they stand in the file, by the end of the table's path."""
    job = message("update")["job"]
    own_mac, own_ip, own_port = SWITCH
    return {
        "identify.senders": [
            {"key": [ip(WORKER)], "action": "worker", "arguments": []},
            {"key": [ip(WORKERS[1][1])], "action": "worker", "arguments": []},
            {"key": [ip(SERVER)], "action": "server", "arguments": []},
        ],
        "identify.clusters": [
            {"key": [of, cluster], "action": "in_group", "arguments": [group]}
            for of, cluster, group in ((3, 1, 8), (3, 2, 9), (4, 1, 7), (job, 9, 6),
                                       (job, message("update")["cluster"], 5))
        ],
        "readdress.receivers": [
            {"key": [5, 0], "action": "to", "arguments": [mac, ip(address), port]}
            for mac, address, port in WORKERS[:1]
        ],
        "wrap.servers": [
            {"key": [of], "action": "to_server",
             "arguments": [own_mac, ip(own_ip), own_port, mac, ip(address), port, traffic_class]}
            for of, ((mac, address, port), traffic_class) in SERVERS.items()
        ],
    }  # fmt: skip


def filled(top: str, wanted: dict[str, Rows]) -> Vitis:
    """A block with those of the entries that are its own."""
    block = Vitis(program(top))
    name = "Before" if top == "olaf_vitis_in.p4" else "Behind"
    for path, rows in wanted.items():
        if path.startswith("identify") == (name == "Before"):
            for row in rows:
                block.table(f"{name}.{path}").add(
                    tuple(row["key"]), row["action"], *row["arguments"]
                )
    return block


# What is in the file


def update(
    cluster: int = 1, worker: int = 1, segment: int = 0, lanes: int = 8, *, job: int = 3,
    value: float = 1.0, contributors: int = 1, reward: float = 0.0, hops: int = 0,
) -> bytes:  # fmt: skip
    header = UPDATE_HEADER.pack(
        *(b"OLAF", 3, 1, 0, job, cluster, worker, 900 + worker, 5 + worker, 6, segment, 2),
        *(1000 + worker, 2000 + worker, 3, 3 + worker, contributors, lanes, contributors + 0.5),
        *(reward, hops, 11),
    )
    return header + (np.arange(1, lanes + 1) * value).astype("<f4").tobytes()


def sent(datagram: bytes, source: str = WORKER) -> bytes:
    return Frame(datagram, source=source, destination=SERVERS[3][0][1]).emit()


def bursts() -> dict[str, list[bytes]]:
    """The first update of each holds the link. Frames that go around the queue come last."""
    holds = sent(update(cluster=2, lanes=LONG))
    chance = random.Random(55)
    ours, ours_job = message("update")["data"], message("update")["job"]
    answers = [down(message(kind)["data"]).emit() for kind in ("acknowledgement", "model")]
    return {
        "an update alone": [sent(update(lanes=43, reward=-2.5, hops=255))],
        "updates of a cluster merge while another departs": [
            holds, *(sent(update(worker=worker, lanes=20, value=0.1 * worker, reward=worker))
                     for worker in (1, 2, 3)),
        ],
        "a newer update replaces that of its worker": [
            holds, sent(update(value=1.0)), sent(update(value=2.0)),
        ],
        "the departing update takes nothing in": [holds, sent(update(cluster=2, lanes=LONG))],
        "segments and jobs do not merge": [
            holds, sent(update(segment=0)), sent(update(segment=1)), sent(update(job=4)),
            sent(ours),
        ],
        "a merged update merges on": [
            holds, sent(update(contributors=7, hops=1)), sent(update(worker=2, hops=4)),
        ],
        "all sizes": [holds, sent(update(lanes=300, value=-0.5)), sent(update(segment=1)),
                      sent(update(cluster=9, job=ours_job, lanes=1))],
        "no slot is free": [
            holds, *(sent(update(job=job, cluster=cluster, segment=segment))
                     for job, cluster in ((3, 1), (4, 1)) for segment in (0, 1)),
            *(sent(put(ours, 32, "II", segment, 9)) for segment in range(5)),
        ],
        "answers and strangers go around": [
            holds, sent(update(), WORKERS[1][1]), *answers, sent(update(), "10.0.0.77"),
            sent(update(cluster=5)), Frame(chance.randbytes(300), source=WORKER).emit(),
            chance.randbytes(60), *answers,
        ],
    }  # fmt: skip


def written() -> dict[str, Any]:
    first, second = (filled(top, tables()) for top in ("olaf_vitis_in.p4", "olaf_vitis_out.p4"))
    board = Board(slots=BOARD["slots"], session=BOARD["session"])
    made = []
    for what, frames in bursts().items():
        arrivals, departures = [], []
        holding = None
        for frame in frames:
            user, body = first.process(frame)
            assert body is not None
            arrivals.append((packed(user), body, frame))
            if user["class"] == UPDATE:
                board.arrive(user, body)
                holding = holding or board.begin_departure()
            else:
                departures.append(board.around(user, body))
        assert holding is not None
        board.end_departure()
        departures = [holding, *board.drain(), *departures]
        made.append({
            "what": what,
            "arrive": [
                {"frame": frame.hex(), "user": user.hex(), "to_board": body.hex()}
                for user, body, frame in arrivals
            ],
            "depart": [
                {"user": packed(user).hex(), "from_board": body.hex(),
                 "frame": out.hex() if out is not None else None}
                for user, body in departures
                for out in [second.process(body, **user)[1]]
            ],
        })  # fmt: skip
    assert set(board.fates) == {"appended", "merged", "replaced", "dropped"}
    return {"tables": tables(), "board": BOARD, "bursts": made}


def as_text(file: dict[str, Any]) -> str:
    """A line for each entry and each frame."""

    def rows(name: str, found: Rows) -> str:
        return f'"{name}": [\n' + ",\n".join(json.dumps(row) for row in found) + "\n]"

    entries = ",\n".join(rows(path, found) for path, found in file["tables"].items())
    made = ",\n".join(
        f'{{"what": {json.dumps(burst["what"])},\n'
        f"{rows('arrive', burst['arrive'])},\n{rows('depart', burst['depart'])}}}"
        for burst in file["bursts"]
    )
    board = json.dumps(file["board"])
    return f'{{"tables": {{\n{entries}}},\n"board": {board},\n"bursts": [\n{made}]}}\n'


@pytest.fixture(scope="module")
def file() -> dict[str, Any]:
    if os.environ.get("OLAF_FILL_VECTORS"):
        PATH.write_text(as_text(written()))
    found: dict[str, Any] = json.loads(Path(PATH).read_text())
    return found


def test_the_first_block_gives_the_board_what_the_file_says(file: dict[str, Any]) -> None:
    block = filled("olaf_vitis_in.p4", file["tables"])
    classes = set()
    for burst in file["bursts"]:
        for row in burst["arrive"]:
            user, body = block.process(bytes.fromhex(row["frame"]))
            assert body is not None
            assert (packed(user).hex(), body.hex()) == (row["user"], row["to_board"]), burst["what"]
            classes.add(user["class"])
    assert classes == {0, 1, 2}


def test_the_second_block_sends_what_the_file_says(file: dict[str, Any]) -> None:
    block = filled("olaf_vitis_out.p4", file["tables"])
    dropped = 0
    for burst in file["bursts"]:
        for row in burst["depart"]:
            user, body = signal(bytes.fromhex(row["user"])), bytes.fromhex(row["from_board"])
            _, out = block.process(body, **user)
            assert (out.hex() if out is not None else None) == row["frame"], burst["what"]
            dropped += out is None
    assert dropped == 3, "updates of the job without a server"


def test_the_queue_of_the_engine_sends_what_the_file_says(file: dict[str, Any]) -> None:
    assert file == json.loads(as_text(written()))
    assert SIGNAL.size * 8 == 288, "the width of the user signal of olaf_u55c"
    for burst in file["bursts"]:
        for row in burst["depart"]:
            user = signal(bytes.fromhex(row["user"]))
            if user["class"] == UPDATE:
                told = {"class", "used", "active_clusters", "slots", "round_us"}
                assert not any(user[name] for name in set(NAMES) - told)
