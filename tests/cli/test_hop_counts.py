"""Both ends of each hop count; a count that is wrong at either end makes the sums not match."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from olaf.jobs.accounts import Accounts, settle
from olaf.jobs.incarnation import Incarnation

Parties = dict[str, Incarnation]


def arrivals(*hops: dict[str, Any], unnumbered: int = 0, forgotten: int = 0) -> dict[str, Any]:
    return {
        "unnumbered": unnumbered,
        "forgotten": forgotten,
        "forgotten_contributions": 0,
        "hops": list(hops),
    }


def hop(
    life: int, worker: int | None, came: int, contributions: int, newest: int
) -> dict[str, Any]:
    return {
        "job": 1,
        "life": life,
        "worker": worker,
        "first": 1,
        "newest": newest,
        "datagrams": came,
        "contributions": contributions,
        "missing": newest - came,
        "late": 0,
        "repeated": 0,
    }


def run() -> Parties:
    """Two workers of 10 datagrams. 3 and 1 are lost. 6 departures hold 16; 1 is lost with 3."""
    worker = {"replaced_unsent": 0, "unsent": 0, "held": 0, "discarded": 0, "carried": 0}
    sent = {"contributions": 10, "sent": 10, "datagrams": 10, "hop_sequence": 10}
    fates = {"sent_alone": 0, "merged": 16, "replaced": 0, "filtered": 0, "waiting": 0}
    served = {
        "delivered_alone": 0,
        "delivered_merged": 13,
        "gated": 0,
        "waiting": 0,
        "rejected": {},
    }
    left = {"job": 1, "hop_sequence": 6, "left_out": 0, "datagrams": 6, "contributions": 16}
    return {
        "worker 0": Incarnation("worker 0", 1, {"worker": 0, "session": 70} | worker | sent, True),
        "worker 1": Incarnation("worker 1", 1, {"worker": 1, "session": 71} | worker | sent, True),
        "switch": Incarnation(
            "switch",
            1,
            {
                "epoch": 5,
                "received": 16,
                "departures": 6,
                "fates": fates | {"dropped": {}, "rejected": {}},
                "departed": [left],
                "arrivals": arrivals(hop(70, 0, 7, 7, 9), hop(71, 1, 9, 9, 10)),
            },
            True,
        ),
        "server": Incarnation(
            "server",
            1,
            {
                "jobs": [{"job": 1, "received": 13, "fates": served}],
                "arrivals": arrivals(hop(5, None, 5, 13, 6)),
            },
            True,
        ),
    }


def settled(parties: Parties) -> Accounts:
    def of(role: str) -> list[Incarnation]:
        return [one for name, one in parties.items() if name.split()[0] == role]

    return settle(of("worker"), of("switch"), of("server"))


def test_numbers_that_never_came_explain_what_was_lost() -> None:
    accounts = settled(run())
    assert accounts.matches, accounts.discrepancies
    up, down = (row for row in accounts.rows if row.fate.startswith("lost"))
    assert (up.fate, up.count) == ("lost worker to switch", 4)
    assert up.note == "numbers that never came: 3 skipped, 1 after the last that came"
    assert (down.fate, down.count) == ("lost switch to server", 3)
    assert down.note == "numbers that never came: 1 skipped, 0 after the last that came"


def change(path: list[Any], by: int) -> Callable[[dict[str, Any]], None]:
    def apply(stats: dict[str, Any]) -> None:
        for key in path[:-1]:
            stats = stats[key]
        stats[path[-1]] += by

    return apply


WRONG: list[tuple[str, list[list[Any]], str]] = [
    # A worker that forgets to count a datagram, a contribution, or to use a number.
    ("worker 0", [["datagrams"]], "worker 0 #1"),
    ("worker 1", [["hop_sequence"]], "worker 1 #1"),
    ("worker 0", [["sent"], ["contributions"]], "worker 0 #1"),
    # A switch that counts an arrival by fate or by number alone, or at neither place.
    ("switch", [["received"], ["fates", "merged"]], "switch #1"),
    ("switch", [["arrivals", "hops", 0, "contributions"]], "switch #1"),
    (
        "switch",
        [["received"], ["fates", "replaced"], ["arrivals", "hops", 1, "contributions"]],
        "worker 1 #1 to switch",
    ),
    ("switch", [["arrivals", "hops", 0, "datagrams"]], "worker 0 #1 to switch"),
    ("switch", [["arrivals", "hops", 0, "missing"]], "worker 0 #1 to switch"),
    # A switch that miscounts what leaves.
    ("switch", [["departures"]], "switch #1"),
    ("switch", [["departed", 0, "contributions"]], "switch #1"),
    ("switch", [["departed", 0, "datagrams"]], "switch #1"),
    ("switch", [["departed", 0, "hop_sequence"]], "switch #1"),
    # A server that miscounts.
    ("server", [["jobs", 0, "received"], ["jobs", 0, "fates", "delivered_merged"]], "server #1"),
    ("server", [["arrivals", "hops", 0, "datagrams"]], "switch #1 to server"),
]


@pytest.mark.parametrize("by", [-1, 1])
@pytest.mark.parametrize(("who", "paths", "named"), WRONG)
def test_a_planted_miscount_at_either_end_is_named(
    who: str, paths: list[list[Any]], named: str, by: int
) -> None:
    parties = run()
    stats = copy.deepcopy(dict(parties[who].stats))
    for path in paths:
        change(path, by)(stats)
    parties[who] = Incarnation(who, 1, stats, True)
    accounts = settled(parties)
    assert not accounts.matches
    assert any(named in text for text in accounts.discrepancies), accounts.discrepancies


def test_both_counts_stand_in_the_text() -> None:
    parties = run()
    stats = copy.deepcopy(dict(parties["worker 0"].stats))
    stats["sent"], stats["contributions"], stats["carried"] = 9, 9, 1
    stats["datagrams"], stats["hop_sequence"] = 9, 9
    parties["worker 0"] = Incarnation("worker 0", 1, stats, True)
    stats["sent"], stats["contributions"] = 8, 8
    texts = settled(parties).discrepancies
    assert "worker 0 #1 to switch: 1 of 8 contributions are lost, but 2 of 9 datagrams" in texts


def test_with_a_killed_party_only_what_must_hold_is_compared() -> None:
    parties = run()
    switch = copy.deepcopy(dict(parties["switch"].stats))
    # Its last report is old: fewer came by then.
    switch["arrivals"]["hops"][0] |= {"datagrams": 2, "contributions": 2, "newest": 3, "missing": 1}
    switch["received"], switch["fates"]["merged"] = 11, 11
    switch["departed"][0]["contributions"] = 11
    parties["switch"] = Incarnation("switch", 1, switch, False)
    assert settled(parties).matches, settled(parties).discrepancies
    # More than was sent cannot have come.
    switch["arrivals"]["hops"][0] |= {"newest": 12, "missing": 10}
    assert "number 12 came" in settled(parties).discrepancies[0]


def test_two_lives_of_a_receiver_are_one_hop() -> None:
    parties = run()
    first = copy.deepcopy(dict(parties["switch"].stats))
    second = copy.deepcopy(first)
    first["arrivals"]["hops"] = [hop(70, 0, 3, 3, 4)]
    later = hop(70, 0, 4, 4, 9) | {"first": 6, "missing": 0}
    second["arrivals"]["hops"] = [later, hop(71, 1, 9, 9, 10)]
    second["epoch"], first["departed"] = 6, []
    first["received"] = first["fates"]["replaced"] = 3
    first["fates"]["merged"] = 0
    second["received"] = second["fates"]["merged"] = 13
    second["departed"][0] |= {"contributions": 13}
    first["departures"] = 0
    server = copy.deepcopy(dict(parties["server"].stats))
    server["arrivals"]["hops"] = [hop(6, None, 6, 13, 6)]
    accounts = settle(
        [parties["worker 0"], parties["worker 1"]],
        [Incarnation("switch", 1, first, True), Incarnation("switch", 2, second, True)],
        [Incarnation("server", 1, server, True)],
    )
    assert not [text for text in accounts.discrepancies if "to switch" in text], accounts


def test_where_counts_were_forgotten_the_account_says_so_and_compares_nothing() -> None:
    parties = run()
    switch = copy.deepcopy(dict(parties["switch"].stats))
    gone = switch["arrivals"]["hops"].pop()
    switch["arrivals"] |= {"forgotten": 1, "forgotten_contributions": gone["contributions"]}
    parties["switch"] = Incarnation("switch", 1, switch, True)
    accounts = settled(parties)
    assert accounts.matches, accounts.discrepancies
    assert "1 lives of senders were forgotten" in accounts.note


def test_datagrams_that_came_while_the_sender_was_not_known_are_not_lost() -> None:
    parties = run()
    switch = copy.deepcopy(dict(parties["switch"].stats))
    switch["received"] += 1
    switch["fates"]["rejected"] = {"unknown_worker": 1}
    switch["arrivals"]["unnumbered"] = 1
    parties["switch"] = Incarnation("switch", 1, switch, True)
    assert settled(parties).matches, settled(parties).discrepancies
