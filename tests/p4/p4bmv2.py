"""BMv2's `simple_switch` with a compiled program, and the tables of a switch of the checker.

Frames go in and out through pcap files. BMv2's own command line fills the tables.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from p4check import V1Model
from p4check.run import Entries, Running
from ports import free_port
from waiting import until

TOOLS = ("p4c-bm2-ss", "simple_switch", "simple_switch_CLI")
LEFT_OUT = "left out: p4c and BMv2 ran no P4, because this machine lacks"
"""How the reason begins. `tests/conftest.py` then says it at the end of a run."""
DEADLINE_S = 60.0
FILE_HEADER = struct.pack("<IHHiIII", 0xA1B2_C3D4, 2, 4, 0, 0, 1 << 18, 1)
"""Of a pcap file in this machine's order, with Ethernet frames."""
RECORD = struct.Struct("<IIII")


def missing() -> list[str]:
    """The tools that this machine lacks."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def compiled(source: Path, folder: Path) -> Path:
    """The program as BMv2 reads it. Raises CalledProcessError with what the compiler said."""
    to = folder / source.with_suffix(".json").name
    command = ["p4c-bm2-ss", "--std", "p4-16", "-o", str(to), str(source)]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=DEADLINE_S)
    return to


def tables(running: Running, path: str) -> Iterator[tuple[str, Entries]]:
    """All tables of a block and of the blocks inside it, with their paths."""
    for name, entries in running.tables.items():
        yield f"{path}.{name}", entries
    for name, inner in running.inner.items():
        yield from tables(inner, f"{path}.{name}")


def commands(switch: V1Model) -> list[str]:
    """Lines for `simple_switch_CLI` that give BMv2 the entries and groups of this switch."""
    lines = []
    for block in switch.blocks:
        for path, entries in tables(block, block.block.name):
            owner = path.rpartition(".")[0]
            for key, (action, values) in entries.rows.items():
                shown = " ".join(map(hex, key)), " ".join(map(hex, values))
                lines.append(f"table_add {path} {owner}.{action} {shown[0]} => {shown[1]}".rstrip())
    node = 0
    for group, copies in switch.groups.items():
        lines.append(f"mc_mgrp_create {group}")
        for port, copy in copies:
            lines += [f"mc_node_create {copy} {port}", f"mc_node_associate {group} {node}"]
            node += 1  # BMv2 numbers nodes in the order in which they are made
    return lines


def frames_of(pcap: bytes) -> list[bytes]:
    """The whole frames of a pcap file that may still grow."""
    at, found = len(FILE_HEADER), []
    while len(pcap) >= at + RECORD.size:
        _, _, size, _ = RECORD.unpack_from(pcap, at)
        at += RECORD.size + size
        if len(pcap) < at:
            break
        found.append(pcap[at - size : at])
    return found


def replay(
    program: Path, switch: V1Model, events: list[tuple[int, bytes]], counts: dict[int, int]
) -> dict[int, list[bytes]]:
    """What BMv2 sends at each port, once it has sent ``counts`` frames there.

    ``events`` are frames with the ports at which they come in. BMv2 keeps the order of frames that
    leave by one port.
    """
    folder = program.parent
    with ExitStack() as stack:
        writers = [
            stack.enter_context(_Writer(folder / f"{port}_in.pcap", port, events))
            for port in counts
        ]
        thrift = str(free_port(socket.SOCK_STREAM))
        command = ["simple_switch", "--use-files", "0", "--thrift-port", thrift]
        command += [part for port in counts for part in ("-i", f"{port}@{folder / str(port)}")]
        process = subprocess.Popen([*command, str(program)])
        stack.callback(process.wait, DEADLINE_S)
        stack.callback(process.terminate)
        lines = commands(switch)

        def filled() -> str:
            cli = ["simple_switch_CLI", "--thrift-port", thrift]
            text = "\n".join(lines) + "\n"
            done = subprocess.run(
                cli, check=False, input=text, capture_output=True, text=True, timeout=DEADLINE_S
            )
            return done.stdout if "has been added" in done.stdout else ""

        said = until(filled, "BMv2 and its tables", DEADLINE_S)
        wanted = sum(line.startswith("table_add") for line in lines)
        assert said.count("Entry has been added") == wanted, said
        for writer in writers:
            writer.start()

        def sent() -> dict[int, list[bytes]]:
            assert process.poll() is None, f"simple_switch ended with {process.returncode}"
            files = {port: folder / f"{port}_out.pcap" for port in counts}
            found = {port: frames_of(path.read_bytes()) for port, path in files.items()}
            enough = all(len(found[port]) >= count for port, count in counts.items())
            return found if enough else {}

        return until(sent, f"{counts} frames", DEADLINE_S)


class _Writer:
    """A pipe from which BMv2 reads the frames of a port, in the order of all ports."""

    def __init__(self, path: Path, port: int, events: list[tuple[int, bytes]]) -> None:
        os.mkfifo(path)
        # Open for reading, too: it does not wait for BMv2 then, and BMv2 does not wait for us.
        self.pipe = os.fdopen(os.open(path, os.O_RDWR), "wb", buffering=0)
        self.pipe.write(FILE_HEADER)
        self.records = b"".join(
            RECORD.pack(second, 0, len(frame), len(frame)) + frame
            for second, (at, frame) in enumerate(events)
            if at == port
        )

    def start(self) -> None:
        """A pipe holds 64 KiB, so that each has a thread. It ends with the pipe at the latest."""
        threading.Thread(target=self._write, daemon=True).start()

    def _write(self) -> None:
        self.pipe.write(self.records)
        self.pipe.close()

    def __enter__(self) -> _Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.pipe.close()
