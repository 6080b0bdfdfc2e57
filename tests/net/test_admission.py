"""A switch that asks before a cluster joins, over real sockets."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from waiting import until

from conftest import Events, Network, stats, values, zeros
from olaf import _olaf


@contextmanager
def answering(switch: _olaf.Switch, events: Events, says: dict[int, bool]) -> Iterator[list[int]]:
    """Answer what the switch asks, each question once; yields the clusters asked about so far."""
    asked: list[int] = []
    over = threading.Event()

    def answer() -> None:
        while not over.wait(0.002):
            for wanted in events.named("admission_wanted")[len(asked) :]:
                asked.append(wanted["cluster"])
                if wanted["cluster"] in says:
                    assert switch.decide(wanted["job"], wanted["cluster"], says[wanted["cluster"]])

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield asked
    finally:
        over.set()
        thread.join()


def test_a_cluster_joins_or_is_refused_as_it_was_answered(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address, admission_timeout_ms=20_000)
    events = Events(switch)
    with answering(switch, events, {3: True, 4: False}) as asked:
        assert network.client(switch.address, cluster=3).join(values(1, 2), 10.0) == 1
        assert network.client(switch.address, cluster=3).join(values(1, 2), 10.0) == 1
        refused = network.client(switch.address, cluster=4)
        began = time.monotonic()
        with pytest.raises(
            _olaf.RefusedError, match=r"admission policy refused cluster 4 of job 1"
        ):
            refused.join(values(1, 2), 10.0)
        assert time.monotonic() - began < 5.0
        # It may try again, and is refused without another question.
        with pytest.raises(_olaf.RefusedError, match="admission policy"):
            refused.join(values(1, 2), 10.0)
    assert asked == [3, 4]
    [_, second] = events.named("admission_wanted")
    assert second["running"] == [{"job": 1, "cluster": 3}]
    seen = stats(switch)
    assert (seen["admission"]["admitted"], seen["admission"]["refused"]) == (1, 1)
    assert seen["refused"]["not_admitted"] == 2
    assert not switch.decide(1, 4, True), "nothing is open"


@pytest.mark.parametrize("unanswered", ["admit", "refuse"])
def test_without_an_answer_the_stated_one_is_given(network: Network, unanswered: str) -> None:
    server = network.server()
    switch = network.switch(
        server.address, admission_timeout_ms=150, admission_unanswered=unanswered
    )
    events = Events(switch)
    client = network.client(switch.address, cluster=5)
    if unanswered == "admit":
        assert client.join(values(1, 2), 10.0) == 1
    else:
        with pytest.raises(_olaf.RefusedError, match="admission policy"):
            client.join(values(1, 2), 10.0)
    [told] = until(lambda: events.named("admission_unanswered"), "that nobody answered")
    assert (told["cluster"], told["answer"]) == (5, unanswered)


def test_who_gives_up_before_the_answer_hears_what_it_waited_for(network: Network) -> None:
    server = network.server()
    switch = network.switch(server.address, admission_timeout_ms=60_000, silent_after_ms=200)
    client = network.client(switch.address, cluster=6, silent_after_ms=200)
    with pytest.raises(
        _olaf.UnreachableError, match=r"has not decided .* whether cluster 6 of job 1"
    ):
        client.join(zeros(), 1.0)
    said = {json.loads(event)["event"] for event in client.events()}
    assert not said & {"switch_silent", "server_silent"}, "both may well be alive"


@pytest.mark.parametrize(
    ("key", "value"), [("admission_unanswered", "perhaps"), ("admission_timeout_ms", 0)]
)
def test_what_cannot_be_is_named(key: str, value: object) -> None:
    config = {"listen": "127.0.0.1:0", "upstream": "127.0.0.1:1", "admission_timeout_ms": 5}
    with pytest.raises(ValueError, match=key.removesuffix("_ms")):
        _olaf.Switch(json.dumps({**config, key: value}))
