from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olaf.jobs.accounts import Accounts, nothing, settle
from olaf.jobs.incarnation import Incarnation
from olaf.jobs.progress import Progress
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Ended, Said


def worker(
    number: int = 1,
    *,
    name: str = "worker 0",
    sent: int = 0,
    replaced: int = 0,
    unsent: int = 0,
    held: int = 0,
    discarded: int = 0,
    final: bool = True,
) -> Incarnation:
    stats = {
        "contributions": sent + replaced + unsent + held + discarded,
        "sent": sent,
        "replaced_unsent": replaced,
        "unsent": unsent,
        "held": held,
        "discarded": discarded,
    }
    return Incarnation(name, number, stats, final)


def switch(
    number: int = 1,
    *,
    name: str = "switch",
    received: int | None = None,
    final: bool = True,
    **fates: Any,
) -> Incarnation:
    counted = dict(nothing("switch")["fates"]) | fates
    total = sum(sum(v.values()) if isinstance(v, dict) else v for v in counted.values())
    stats = {"received": total if received is None else received, "fates": counted}
    return Incarnation(name, number, stats, final)


def server(
    number: int = 1,
    *,
    alone: int = 0,
    merged: int = 0,
    gated: int = 0,
    waiting: int = 0,
    rejected: dict[str, int] | None = None,
    received: int | None = None,
    final: bool = True,
) -> Incarnation:
    fates = {
        "delivered_alone": alone,
        "delivered_merged": merged,
        "gated": gated,
        "waiting": waiting,
        "rejected": rejected or {},
    }
    total = alone + merged + gated + waiting + sum((rejected or {}).values())
    job = {"job": 1, "received": total if received is None else received, "fates": fates}
    return Incarnation("server", number, {"jobs": [job]}, final)


def rows(accounts: Accounts) -> dict[str, int]:
    return {row.fate: row.count for row in accounts.rows if row.count}


def test_every_contribution_has_one_fate() -> None:
    accounts = settle(
        [worker(sent=90, replaced=2, unsent=1), worker(name="worker 1", sent=10)],
        [
            switch(
                sent_alone=40,
                merged=30,
                replaced=5,
                filtered=6,
                dropped={"queue_full": 7},
                rejected={"non_finite": 4},
                waiting=8,
            )
        ],
        [server(alone=40, merged=25, gated=3, rejected={"wrong_size": 2})],
    )
    assert accounts.pushed == 103
    assert accounts.matches
    assert rows(accounts) == {
        "replaced at worker": 2,
        "unsent": 1,
        "replaced": 5,
        "filtered": 6,
        "dropped: queue_full": 7,
        "rejected: non_finite": 4,
        "waiting": 8,
        "delivered alone": 40,
        "delivered merged": 25,
        "gated": 3,
        "rejected at server: wrong_size": 2,
    }
    assert accounts.loss == pytest.approx(7 / 100)


def test_what_vanishes_between_two_counters_is_lost_there() -> None:
    accounts = settle([worker(sent=100)], [switch(sent_alone=90)], [server(alone=85)])
    assert rows(accounts) == {
        "lost worker to switch": 10,
        "lost switch to server": 5,
        "delivered alone": 85,
    }
    assert accounts.matches
    assert accounts.loss == pytest.approx(0.15)


def test_merged_replaced_and_filtered_are_not_lost() -> None:
    accounts = settle(
        [worker(sent=30)], [switch(merged=10, replaced=10, filtered=10)], [server(merged=10)]
    )
    assert accounts.loss == 0


def test_more_received_than_sent_is_a_discrepancy_and_stays_visible() -> None:
    accounts = settle([worker(sent=10)], [switch(sent_alone=12)], [server(alone=12)])
    assert not accounts.matches
    assert accounts.discrepancies == ["lost worker to switch: 2 more arrived than were sent"]


def test_what_the_network_repeated_is_no_contribution_of_its_own() -> None:
    accounts = settle(
        [worker(sent=5)],
        [switch(sent_alone=5, rejected={"duplicate": 2, "non_finite": 0})],
        [server(alone=5)],
    )
    assert accounts.matches
    assert (accounts.pushed, accounts.lost, accounts.count("rejected")) == (5, 0, 0)
    assert "2 that the network repeated" in accounts.note


def test_counters_that_contradict_themselves_are_named() -> None:
    accounts = settle([worker(sent=5)], [switch(received=5, sent_alone=4)], [server(alone=4)])
    assert accounts.discrepancies == ["switch #1: received != sum of fates"]
    accounts = settle([worker(sent=5)], [switch(sent_alone=5)], [server(alone=4, received=5)])
    assert accounts.discrepancies == ["server #1: received != sum of fates"]


def test_a_killed_switch_leaves_one_difference_over_both_hops_and_is_named() -> None:
    accounts = settle(
        [worker(sent=100)],
        [switch(1, sent_alone=30, waiting=5, final=False), switch(2, sent_alone=50, replaced=2)],
        [server(alone=88)],
    )
    assert rows(accounts) == {"lost with switch #1": 10, "replaced": 2, "delivered alone": 88}
    assert accounts.matches
    (row,) = [row for row in accounts.rows if row.fate == "lost with switch #1"]
    assert row.counted == "difference"
    assert "the rest" in row.note


def test_through_leaves_every_hop_has_its_difference() -> None:
    accounts = settle(
        [worker(sent=100)],
        [switch(merged=80, replaced=4, dropped={"queue_full": 2})],
        [server(merged=79)],
        leaves=[
            switch(name="leaf 0", merged=50, sent_alone=5, replaced=3),
            switch(name="leaf 1", merged=36, dropped={"queue_full": 1}),
        ],
    )
    assert accounts.matches, accounts
    assert [(row.fate, row.counted, row.count) for row in accounts.rows if row.count] == [
        ("lost worker to leaf", "difference", 5),
        ("replaced", "leaf", 3),
        ("dropped: queue_full", "leaf", 1),
        ("lost leaf to switch", "difference", 5),
        ("replaced", "switch", 4),
        ("dropped: queue_full", "switch", 2),
        ("lost switch to server", "difference", 1),
        ("delivered merged", "server", 79),
    ]
    assert (accounts.count("replaced"), accounts.lost) == (7, 14)


def test_a_killed_switch_above_leaves_is_one_difference_and_the_hop_below_it_stays_known() -> None:
    accounts = settle(
        [worker(sent=100)],
        [switch(1, merged=30, final=False), switch(2, merged=40, rejected={"unknown_worker": 2})],
        [server(merged=68)],
        leaves=[switch(name="leaf 0", merged=90, replaced=4)],
    )
    assert accounts.matches, accounts
    # Of the merges that came before the switch knew its leaves it counted one each.
    assert rows(accounts) == {
        "lost worker to leaf": 6,
        "replaced": 4,
        "rejected: unknown_worker": 2,
        "lost with switch #1": 20,
        "delivered merged": 68,
    }


def test_when_leaf_and_switch_were_killed_one_difference_names_both() -> None:
    accounts = settle(
        [worker(sent=100)],
        [switch(1, merged=30, final=False), switch(2, merged=40)],
        [server(merged=68)],
        leaves=[
            switch(1, name="leaf 0", merged=60, final=False),
            switch(2, name="leaf 0", merged=30, replaced=4),
        ],
    )
    assert accounts.matches, accounts
    assert rows(accounts) == {
        "replaced": 4,
        "lost with switch #1, leaf 0 #1": 28,
        "delivered merged": 68,
    }


def test_a_killed_server_is_named_on_its_hop_only() -> None:
    accounts = settle(
        [worker(sent=50)],
        [switch(sent_alone=49, dropped={"queue_full": 1})],
        [server(1, alone=20, final=False), server(2, alone=26)],
    )
    assert rows(accounts) == {
        "dropped: queue_full": 1,
        "lost with server #1": 3,
        "delivered alone": 46,
    }


def run_whose_server_ends(code: int, last_word: str) -> Accounts:
    """A run in which 3 updates are lost before the server, which ends in this way."""
    progress = Progress(Settings())
    told = {
        "worker 0": worker(sent=50),
        "switch": switch(sent_alone=50),
        "server": server(alone=47),
    }
    for name, one in told.items():
        event = last_word if name == "server" else "stopped"
        message = {"event": event, "why": "stop", "stats": one.stats}
        progress.take(Said(name, 1, message), 1.0)
        progress.take(Ended(name, 1, code if name == "server" else 0, False, None), 2.0)
    return progress.accounts()


@pytest.mark.parametrize("code", [0, -9, -2, 130])
def test_a_server_that_has_said_its_last_report_was_not_killed(code: int) -> None:
    """On a busy machine the run itself kills a process that is slow to exit."""
    accounts = run_whose_server_ends(code, "stopped")
    assert rows(accounts) == {"lost switch to server": 3, "delivered alone": 47}


def test_a_server_that_was_killed_while_it_served_is_named() -> None:
    accounts = run_whose_server_ends(-9, "stats")
    assert rows(accounts) == {"lost with server #1": 3, "delivered alone": 47}


def test_what_a_killed_worker_had_not_sent_when_it_last_spoke_is_a_difference() -> None:
    accounts = settle(
        [worker(1, sent=10, unsent=2, final=False), worker(2, sent=5)],
        [switch(sent_alone=16)],
        [server(alone=16)],
    )
    assert accounts.pushed == 17
    assert rows(accounts) == {"lost with worker 0 #1": 1, "delivered alone": 16}


def test_what_a_killed_worker_did_not_live_to_report_was_pushed_too() -> None:
    accounts = settle([worker(sent=10, final=False)], [switch(sent_alone=12)], [server(alone=12)])
    assert accounts.pushed == 12
    assert accounts.note == "2 of them after the last report of worker 0 #1"
    assert accounts.matches


def test_a_process_that_died_before_its_first_report_counts_as_nothing() -> None:
    for role in ("worker", "switch", "server"):
        dead = Incarnation(role, 1, nothing(role), final=False)
        parties = {"worker": [worker(2, sent=3)], "switch": [switch(2, sent_alone=3)]}
        parties["server"] = [server(2, alone=3)]
        parties[role] = [dead, *parties[role]]
        accounts = settle(parties["worker"], parties["switch"], parties["server"])
        assert accounts.matches
        assert accounts.pushed == 3


def test_other_jobs_of_the_server_are_none_of_ours() -> None:
    one = server(alone=4)
    one.stats["jobs"].append({**one.stats["jobs"][0], "job": 2})
    assert settle([worker(sent=4)], [switch(sent_alone=4)], [one]).matches


def test_nothing_sent_has_no_loss() -> None:
    assert settle([], [], []).loss is None


counts = st.integers(0, 50)


@given(
    sent=st.lists(counts, min_size=1, max_size=4),
    lost_up=counts,
    here=st.tuples(counts, counts, counts, counts, counts),
    lost_down=counts,
    merged=counts,
    gated=counts,
    dead=st.sets(st.sampled_from(["worker", "leaf", "switch", "server"])),
    unreported=counts,
    tree=st.booleans(),
)
def test_whatever_is_lost_or_killed_the_sum_is_what_was_pushed(  # noqa: PLR0917
    sent: list[int],
    lost_up: int,
    here: tuple[int, int, int, int, int],
    lost_down: int,
    merged: int,
    gated: int,
    dead: set[str],
    unreported: int,
    tree: bool,
) -> None:
    replaced, filtered, dropped, rejected, waiting = here
    departed = merged + gated + lost_down
    received = departed + sum(here)
    workers = [worker(name=f"worker {i}", sent=n) for i, n in enumerate(sent)]
    workers.append(worker(name="worker 9", sent=received + lost_up))
    extra = sum(sent)  # what the workers before sent is lost on the way, too
    switches = [
        switch(
            merged=departed,
            replaced=replaced,
            filtered=filtered,
            dropped={"queue_full": dropped},
            rejected={"non_finite": rejected},
            waiting=waiting,
        )
    ]
    servers = [server(merged=merged, gated=gated)]
    if "worker" in dead:  # it pushed more than it lived to report
        workers.append(worker(1, name="worker 8", sent=0, unsent=unreported, final=False))
    if "switch" in dead:
        switches.insert(0, switch(0, waiting=unreported, final=False))
    if "server" in dead:
        servers.insert(0, server(0, final=False))
    # The same again before it: a leaf that hands on what the switch received, and lost as much.
    leaves = []
    if tree:
        leaves = [switch(name="leaf 0", merged=received + lost_down, replaced=replaced)]
        workers.append(worker(name="worker 7", sent=lost_down + replaced))
        if "leaf" in dead:
            leaves.insert(0, switch(0, name="leaf 0", waiting=unreported, final=False))
    accounts = settle(workers, switches, servers, leaves=leaves)
    assert accounts.matches, accounts
    assert accounts.total == accounts.pushed
    assert accounts.count("delivered merged") == merged
    assert accounts.count("gated") == gated
    if tree and not dead:
        assert accounts.count("lost worker to leaf") == lost_up + extra
        assert accounts.count("lost leaf to switch") == lost_down
        assert accounts.count("lost switch to server") == lost_down
    if not dead and not tree:
        assert accounts.count("lost worker to switch") == lost_up + extra
        assert accounts.count("lost switch to server") == lost_down
        assert accounts.lost == lost_up + extra + lost_down + dropped


def test_what_a_server_collected_and_did_not_apply_waits_there_or_is_lost_with_it() -> None:
    sent, passed = worker(sent=10), switch(sent_alone=10)
    stopped = settle([sent], [passed], [server(alone=7, waiting=3)])
    assert stopped.matches
    assert rows(stopped) == {"delivered alone": 7, "waiting at server": 3}
    killed = settle([sent], [passed], [server(alone=7, waiting=3, final=False)])
    assert killed.matches
    assert rows(killed) == {"lost with server #1": 3, "delivered alone": 7}


def test_what_transmission_control_keeps_back_is_not_lost() -> None:
    accounts = settle(
        [worker(sent=10, held=2, discarded=3)],
        [switch(sent_alone=10)],
        [server(alone=10)],
    )
    assert accounts.matches, accounts
    assert accounts.pushed == 15
    assert accounts.count("discarded at worker") == 3
    assert accounts.count("unsent") == 2
    assert accounts.loss == 0
