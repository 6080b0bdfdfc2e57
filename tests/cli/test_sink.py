"""A log on a full disk, or one that nobody reads: the role goes on and counts what is lost."""

import array
import contextlib
import errno
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import pytest
from waiting import until

from olaf.processes import sink
from olaf.processes.lines import Reporter
from olaf.processes.sink import Sink


def lost(lines: int, why: str) -> str:
    return json.dumps({"lost": lines, "why": why})


def test_a_full_disk_loses_lines_and_the_log_says_so_when_it_has_room_again(tmp_path: Path) -> None:
    # A file size limit stops a write in the middle of a line, as a full disk does.
    program = f"""
import resource, sys
from olaf.processes.lines import Reporter
out = open({str(tmp_path / "log")!r}, "w")
told = Reporter(as_json=True, out=out, human=str)
told.say("before")
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (30, hard))
for number in range(5):
    told.say("update", number=number)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
told.say("after")
told.say("stopped")
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    lines = (tmp_path / "log").read_text().splitlines()
    whole = [json.loads(line) for line in lines if line.endswith("}")]
    assert [line["event"] for line in whole] == ["before", "log_lost", "after", "stopped"]
    assert (whole[1]["lines"], whole[1]["why"]) == (5, "File too large")
    assert len(lines) == len(whole) + 1, "the torn line ends"


def test_a_full_device_is_no_reason_to_fail() -> None:
    with open("/dev/full", "w") as out:
        told = Reporter(as_json=True, out=out, human=str)
        for _ in range(3):
            told.say("update")
        told.say("stopped")


def test_a_reader_that_stops_makes_nobody_wait_and_gets_what_there_is_room_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sink, "ROOM_BYTES", 10_000)
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    with os.fdopen(write, "w") as stream:
        to = Sink(stream, lost)
        began = time.monotonic()
        for number in range(1000):
            to.write(json.dumps({"number": number, "text": "x" * 50}))
        assert time.monotonic() - began < 1
        got: list[dict[str, int]] = []

        def read_all() -> None:
            got.extend(json.loads(line) for line in os.fdopen(read))

        reader = threading.Thread(target=read_all)
        reader.start()
        to.drain(10)
        until(lambda: to._thread is None, what="the lines to leave")
        to.write(json.dumps({"number": 1000}))
        to.drain(10)
    reader.join(10)
    numbers = [line["number"] for line in got if "number" in line]
    missing = 1001 - len(numbers)
    assert numbers == sorted(set(numbers)), "in order"
    assert numbers[-1] == 1000
    assert missing > 0
    assert sum(line["lost"] for line in got if "lost" in line) == missing


def test_a_line_longer_than_a_pipe_arrives_whole() -> None:
    read, write = os.pipe()
    with os.fdopen(write, "w") as stream:
        to = Sink(stream, lost)
        texts = ["a" * 200_000, "b", "c" * 200_000]
        got: list[str] = []
        reader = threading.Thread(target=lambda: got.extend(os.fdopen(read)))
        reader.start()
        for text in texts:
            to.write(text)
        to.drain(20)
    reader.join(20)
    assert [line.rstrip("\n") for line in got] == texts


def test_a_stream_without_a_descriptor_gets_the_lines() -> None:
    out = io.StringIO()
    to = Sink(out, lost)
    to.write("one")
    to.write("two")
    assert out.getvalue() == "one\ntwo\n"


def test_a_stream_without_a_descriptor_counts_what_it_loses() -> None:
    class Full(io.StringIO):
        has_room = False

        def write(self, text: str) -> int:
            if not self.has_room:
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(text)

    out = Full()
    to = Sink(out, lost)
    to.write("one")
    to.write("two")
    out.has_room = True
    to.write("three")
    to.write("four")
    assert out.getvalue().splitlines() == [lost(2, "No space left on device"), "three", "four"]


@pytest.mark.parametrize("role", ["switch", "server"])
@pytest.mark.parametrize("disk", ["full", "unread"])
def test_a_role_lives_and_stops_in_order(role: str, disk: str) -> None:
    command = [sys.executable, "-m", "olaf", role, "--listen", "127.0.0.1:0", "--json"]
    read, write = os.pipe()
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    with open("/dev/full", "w") as full:
        process = subprocess.Popen(
            [*command, "--every", "0.01s"],
            stdout=full if disk == "full" else write,
            stderr=subprocess.PIPE,
        )
    os.close(write)
    try:
        if disk == "unread":
            # Two lines of statistics fill the pipe within moments, and nobody reads them.
            until(lambda: _unread(read) > 2000, what="the pipe to fill")
        else:
            until(lambda: _has_sockets(process.pid), what="the role to listen")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=20)
    finally:
        process.kill()
        os.close(read)
    assert (process.returncode, errors.decode()) == (0, "")


def _unread(pipe: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def _has_sockets(pid: int) -> bool:
    names = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            names.append(os.readlink(link))
    return any(name.startswith("socket:") for name in names)
