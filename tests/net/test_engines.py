"""A switch with several engines: one process, and an address for each engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import message_of, olaf
from ports import free_port

from conftest import Network, stats, values, zeros
from olaf import _olaf
from olaf.jobs import words


@contextmanager
def switch(*options: str) -> Iterator[subprocess.Popen[str]]:
    """``olaf switch --json`` with these options."""
    argv = [sys.executable, "-m", "olaf", "switch", "--json", "--every", "100ms", *options]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def port(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_the_next_engine_takes_the_next_port() -> None:
    first = free_port()
    with switch("--engines", "queue,reduce", "--listen", f"127.0.0.1:{first}") as process:
        message = message_of(process, "listening")
        assert message["address"] == f"127.0.0.1:{first}"
        assert message["engines"] == {
            "queue": f"127.0.0.1:{first}",
            "reduce": f"127.0.0.1:{first + 1}",
        }
        counts = message_of(process, "stats")["stats"]
    assert counts["queue"]["slots"] == 8
    assert counts["address"] == f"127.0.0.1:{first}"
    assert counts["reduce"]["address"] == f"127.0.0.1:{first + 1}"
    assert counts["reduce"]["pieces"]["received"] == 0


def test_an_engine_listens_where_it_is_told_to() -> None:
    own = free_port()
    options = ("--engines", "queue,reduce", "--listen", f"reduce=127.0.0.1:{own}")
    with switch(*options, "--listen", "127.0.0.1:0") as process:
        engines = message_of(process, "listening")["engines"]
    assert engines["reduce"] == f"127.0.0.1:{own}"
    assert port(engines["queue"]) not in (0, own)


def test_a_switch_without_a_queue_needs_no_upstream() -> None:
    reduce = _olaf.Switch(json.dumps({"engines": ["reduce"], "listen": "127.0.0.1:0"}))
    assert reduce.addresses == {"reduce": reduce.address}
    counts = json.loads(reduce.stats())
    assert "queue" not in counts
    assert counts["role"] == "switch"
    assert counts["reduce"]["jobs"] == []
    assert not reduce.decide(1, 0, True)
    reduce.stop()
    with pytest.raises(ValueError, match="missing key `upstream`"):
        _olaf.Switch(json.dumps({"engines": ["queue", "reduce"], "listen": "127.0.0.1:0"}))


def test_the_queue_works_beside_another_engine(network: Network) -> None:
    server = network.server()
    both = network.switch(server.address, engines=["reduce", "queue"])
    assert list(both.addresses) == ["queue", "reduce"]
    client = network.client(both.addresses["queue"])
    client.join(zeros(3), 10.0)
    client.push(values(1, 2, 3), reward=0.0)
    assert client.wait(1, 10.0) is not None
    parts = zeros(3)
    client.pull(parts, 1)
    np.testing.assert_allclose(parts[0], [1, 2, 3])
    assert stats(both)["received"] == 1
    assert stats(both)["address"] == both.addresses["queue"]


def test_both_engines_are_in_the_line_for_people(network: Network) -> None:
    both = network.switch(network.server().address, engines=["queue", "reduce"])
    line = words.status_of_switch(stats(both))
    assert line.startswith("received 0,")
    assert "; reduce: no job yet, pieces received 0" in line
    listening = {
        "event": "listening",
        "address": "a:1",
        "engines": {"queue": "a:1", "reduce": "a:2"},
    }
    assert words.sentence(listening) == "queue listens on a:1, reduce listens on a:2"
    alone: dict[str, Any] = {**listening, "engines": {"queue": "a:1"}}
    assert words.sentence(alone) == "listens on a:1"
    assert words.sentence({"event": "listening", "address": "a:1"}) == "listens on a:1"
    watched = {**alone, "metrics": "http://a:9"}
    assert words.sentence(watched) == "listens on a:1, metrics on http://a:9"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--engines", "reduce,sharp"], "--engines: `switch.engines` = 'sharp'"),
        (["--engines", "reduce,atp"], "ATP needs a server: name it (--upstream atp=HOST:PORT)"),
        (["--engines", "reduce,reduce"], "engines names reduce twice"),
        (["--listen", "reduce=127.0.0.1:1"], "listen_at.reduce is set, but engines = ['queue']"),
        (["--listen", "reduce=here", "--engines", "reduce"], "write it HOST:PORT"),
        (["--set", "switch.reduce.slots=0"], "`switch.reduce.slots` = 0"),
        (["--set", "switch.reduce.slts=9"], "did you mean `switch.reduce.slots`?"),
        (
            ["--set", "switch.reduce.silence=3"],
            "`switch.reduce.silence` = 3: a time needs its unit",
        ),
    ],
)
def test_what_cannot_be_names_the_key_and_its_value(options: list[str], told: str) -> None:
    ended = olaf("switch", *options)
    assert ended.returncode == 2
    assert told in ended.stderr


def test_the_table_of_reduce_is_read_and_printed(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        '[switch]\nengines = ["reduce"]\n[switch.reduce]\nmemory = "64MiB"\nsilence_ms = 1500\n'
    )
    line = ("switch", "--config", str(file), "--set", "switch.reduce.silence=3s", "--print-config")
    printed = olaf(*line)
    assert printed.returncode == 0, printed.stderr
    for text in ('engines = ["reduce"]', "[switch.reduce]", 'memory = "64MiB"', 'silence = "3s"'):
        assert text in printed.stdout
    file.write_text(printed.stdout)
    assert olaf(*line[:3], "--print-config").stdout == printed.stdout


def test_a_training_refuses_a_switch_that_does_more(tmp_path: Path) -> None:
    options = ("--set", "switch.engines=['queue', 'reduce']", "--out", str(tmp_path / "run"))
    ended = olaf("train", "--env", "CartPole-v1", *options)
    assert ended.returncode == 2
    assert "start another switch with `olaf switch --engines reduce`" in ended.stderr
