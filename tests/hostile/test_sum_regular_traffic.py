"""`iswitch` and datagrams of another class of service: they go up for listed senders alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from parties import Party
from sum_formats import Datagram, Iswitch, Name
from sum_parties import Stranger, refused
from waiting import until

MANY = 50
FORM = Iswitch()


def place(one: Stranger) -> str:
    host, port = one.socket.getsockname()
    return f"{host}:{port}"


def test_regular_traffic_goes_up_for_listed_senders_alone_one_out_for_one_in(
    party: Callable[..., Party], stranger: Callable[..., Stranger]
) -> None:
    nobody = ("127.0.0.1", 9)
    above, listed, other = stranger(nobody), stranger(nobody), stranger(nobody)
    switch = party(
        "switch",
        engines=["iswitch"],
        iswitch={"upstream": place(above)},
        pass_from=[place(listed)],
    )
    listed.target = other.target = switch.place
    # As its own packets look, but for their class.
    own = FORM.piece(Name(generation=1)).data
    texts = [b"regular %d" % number for number in range(MANY - 1)]
    for text in [*texts, own]:
        other.say(Datagram(text))
    until(lambda: refused(switch, "iswitch").get("foreign", 0) == MANY, "refusals")
    assert switch.stats()["iswitch"]["passed_on"] == 0
    assert above.listen() == []
    for text in [*texts, own]:
        listed.say(Datagram(text, tos=8))
    until(lambda: len(above.listen()) >= MANY, "what goes up")
    assert above.heard == [*texts, own], "each once, in order, and as it was"
    assert switch.stats()["iswitch"]["passed_on"] == MANY
    assert refused(switch, "iswitch") == {"foreign": MANY}
    assert listed.listen() == other.listen() == [], "nothing goes down"
    # Its own class is no regular traffic, whoever sends it.
    listed.say(replace(Datagram(own), tos=FORM.DATA))
    until(lambda: sum(refused(switch, "iswitch").values()) == MANY + 1, "a refusal")
    assert above.listen() == above.heard[:MANY]


def test_without_a_list_no_regular_traffic_passes(
    party: Callable[..., Party], stranger: Callable[..., Stranger]
) -> None:
    above = stranger(("127.0.0.1", 9))
    switch = party("switch", engines=["iswitch"], iswitch={"upstream": place(above)})
    sender = stranger(switch.place)
    for number in range(MANY):
        sender.say(Datagram(b"regular %d" % number))
    until(lambda: refused(switch, "iswitch").get("foreign", 0) == MANY, "refusals")
    assert switch.stats()["iswitch"]["passed_on"] == 0
    assert above.listen() == []
