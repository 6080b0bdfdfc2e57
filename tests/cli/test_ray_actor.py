"""The far end of an actor, without Ray: a role in a thread, heard and told; files that travel."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from olaf.errors.outcome import Exit
from olaf.jobs.places import ray_actor
from olaf.jobs.places.ray_actor import Copy, RoleActor
from olaf.jobs.server_settings import ServerSettings


@pytest.fixture
def actor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RoleActor:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ray_actor, "_node", lambda: ("127.0.0.5", "n1"))
    return RoleActor()


def told(listen: str) -> str:
    core = ServerSettings().model_copy(update={"listen": listen}).to_core()
    return json.dumps({"core": core, "every_s": 0.05, "model_file": None, "job": 1})


def heard(actor: RoleActor, wanted: str) -> tuple[dict[str, Any], int | None]:
    """Hear until an event is said, or the end; acknowledge what was heard, as a driver does."""
    upto, deadline = 0, time.monotonic() + 30
    while time.monotonic() < deadline:
        answer = actor.hear(upto, 1.0)
        upto = answer.upto
        for kind, text in answer.lines:
            if kind == "said" and json.loads(text)["event"] == wanted:
                return json.loads(text), answer.code
            if kind == "printed" and wanted == "printed":
                return {"text": text}, answer.code
    pytest.fail(f"never heard {wanted}")


def test_a_role_listens_where_its_machine_is_and_stops_when_told(
    actor: RoleActor, tmp_path: Path
) -> None:
    where = actor.begin("server", told("<here>:0"), str(tmp_path))
    assert (where.address, where.node, where.pid) == ("127.0.0.5", "n1", os.getpid())
    said, _ = heard(actor, "listening")
    assert said["address"].startswith("127.0.0.5:")
    # Begun again it goes on: the driver had only lost sight of it.
    assert actor.begin("server", told("<here>:0"), str(tmp_path)) == where
    actor.tell("stop")
    stopped, _ = heard(actor, "stopped")
    assert stopped["why"] == "asked to"
    assert actor.hear(10_000, 5.0).code == Exit.OK


def test_a_role_that_fails_says_why_and_with_which_code(actor: RoleActor, tmp_path: Path) -> None:
    actor.begin("server", told("not an address"), str(tmp_path))
    said, _ = heard(actor, "printed")
    assert said["text"].startswith("olaf: ")
    assert "not an address" in said["text"]
    assert actor.hear(10_000, 5.0).code == Exit.USAGE


def test_lines_that_were_not_acknowledged_are_said_again(actor: RoleActor) -> None:
    for number in range(3):
        actor.write(json.dumps({"event": number}) + "\n")
    first = actor.hear(0, 0)
    assert [json.loads(text)["event"] for _, text in first.lines] == [0, 1, 2]
    assert actor.hear(1, 0).lines == first.lines[1:]
    assert actor.hear(first.upto, 0).lines == []


def test_what_a_role_prints_is_heard_and_never_parsed(
    actor: RoleActor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps({"event": "listening"})
    monkeypatch.setattr(ray_actor, "run_told", lambda *_: print(line))
    actor.begin("worker", "{}", str(tmp_path))
    said, _ = heard(actor, "printed")
    assert said["text"] == line


def test_lines_that_are_printed_too_fast_are_counted(actor: RoleActor) -> None:
    for number in range(ray_actor.MOST_PRINTED + 500):
        actor.printed(str(number))
    kept = actor.hear(0, 0)
    assert [text for _, text in kept.lines] == [str(n) for n in range(ray_actor.MOST_PRINTED)]
    actor.hear(kept.upto, 0)
    actor.printed("later")
    told = [text for _, text in actor.hear(kept.upto, 0).lines]
    assert told == ["(500 lines were left out here)", "later"]


def test_a_file_goes_there_and_back_and_never_over_a_newer_one(
    actor: RoleActor, tmp_path: Path
) -> None:
    here = tmp_path / "here.npz"
    here.write_bytes(b"learnt")
    copy = Copy.of(here)
    assert copy is not None
    there = Copy(str(tmp_path / "deep" / "there.npz"), copy.content, copy.written_ns)
    actor.begin("server", told("127.0.0.1:0"), str(tmp_path), [there])
    assert Path(there.file).read_bytes() == b"learnt"
    assert actor.read(there.file, unless=copy.digest) is None  # the driver has it already
    back = actor.read(there.file, unless="")
    assert back is not None
    assert (back.content, back.written_ns) == (b"learnt", copy.written_ns)
    assert actor.read(str(tmp_path / "nothing"), unless="") is None
    os.utime(here, ns=(copy.written_ns + 1, copy.written_ns + 1))
    Copy(str(here), b"older", copy.written_ns).unfold()
    assert here.read_bytes() == b"learnt"
    Copy(str(here), b"newer", copy.written_ns + 2).unfold()
    assert here.read_bytes() == b"newer"
    actor.tell("stop")
    heard(actor, "stopped")
