"""BMv2 and the checker's interpreter do the same with every frame, where BMv2 is installed.

No package registry has `p4c` and BMv2. A machine without them leaves these tests out, and says so.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import p4bmv2
import pytest
from p4chain import ANSWER, DOWN, GROUP, NAMES, OWN, QUEUE, UP, packed, v1model
from p4check import V1Model
from p4frames import P4, ROOT, SERVER, WORKER, Frame, down, message
from test_p4_verdicts import PATH as VERDICTS
from test_p4_verdicts import read

BOARD = ROOT / "vectors" / "p4" / "board.json"
BLOCKS = {"identify": "OlafIngress", "readdress": "OlafEgress", "wrap": "OlafEgress"}

needs_bmv2 = pytest.mark.skipif(
    bool(p4bmv2.missing()), reason=f"{p4bmv2.LEFT_OUT}: {', '.join(p4bmv2.missing())}"
)


def filled(verdicts: list[bytes]) -> V1Model:
    """The switch of the other tests, with the board's entries and all clusters of the verdicts."""
    made = v1model()
    for path, rows in json.loads(BOARD.read_text())["tables"].items():
        entries = made.table(f"{BLOCKS[path.partition('.')[0]]}.{path}")
        for row in rows:
            entries.add(tuple(row["key"]), row["action"], *row["arguments"])
    clusters = made.table("OlafIngress.identify.clusters")
    for data in verdicts:
        key = struct.unpack("!II", data[8:16].ljust(8, b"\0"))
        if key not in clusters.rows:
            clusters.add(key, "in_group", 1)
    return made


def events(verdicts: list[bytes]) -> list[tuple[int, bytes]]:
    """Frames and the ports where they come in: the board's vectors, the verdicts from both sides.

    The last frames leave by each port, so that BMv2 has done all when it has sent them.
    """
    made = []
    for burst in json.loads(BOARD.read_text())["bursts"]:
        made += [(UP, bytes.fromhex(row["frame"])) for row in burst["arrive"]]
        made += [(QUEUE, bytes.fromhex(row["user"] + row["from_board"])) for row in burst["depart"]]
    for data in verdicts:
        for port, source in ((UP, WORKER), (DOWN, SERVER)):
            made.append((port, Frame(data, source=source).emit()))
    at_queue = signal_of_an_answer()
    made += [(UP, b"last" * 20), (UP, Frame(message("update")["data"]).emit())]
    return [*made, (QUEUE, at_queue + down(message("model")["data"]).emit())]


def signal_of_an_answer() -> bytes:
    told = {name: value for name, value in vars(OWN).items() if name != "switches"}
    return packed({**dict.fromkeys(NAMES, 0), "class": ANSWER, "group": GROUP, **told})


def sent(switch: V1Model, frames: list[tuple[int, bytes]]) -> dict[int, list[bytes]]:
    """What the checker's interpreter sends at each port."""
    left: dict[int, list[bytes]] = {port: [] for port in (DOWN, UP, 2, QUEUE)}
    for port, frame in frames:
        for to, out in switch.process(port, frame):
            left[to].append(out)
    return left


@pytest.fixture(scope="module")
def verdicts() -> list[bytes]:
    return [read(row) for row in json.loads(VERDICTS.read_text())]


def test_the_frames_leave_by_every_port(verdicts: list[bytes]) -> None:
    """Without BMv2: the comparison below compares much, and its last frames are the last ones."""
    frames = events(verdicts)
    left = sent(filled(verdicts), frames)
    assert sum(map(len, left.values())) > 1000
    assert min(map(len, left.values())) > 4
    for port, ends in sent(filled(verdicts), frames[-3:]).items():
        assert ends == left[port][-1:], f"the last frame of port {port}"


@needs_bmv2
def test_p4c_accepts_the_chain(tmp_path: Path) -> None:
    assert p4bmv2.compiled(P4 / "olaf_v1model.p4", tmp_path).stat().st_size > 0


@needs_bmv2
def test_bmv2_does_what_the_checker_does(tmp_path: Path, verdicts: list[bytes]) -> None:
    program = p4bmv2.compiled(P4 / "olaf_v1model.p4", tmp_path)
    switch, frames = filled(verdicts), events(verdicts)
    expected = sent(switch, frames)
    counts = {port: len(frames) for port, frames in expected.items()}
    found = p4bmv2.replay(program, switch, frames, counts)
    for port, frames_there in expected.items():
        assert found[port] == frames_there, f"port {port}"
