"""`olaf.verify.verify`: the answer, its witness, its edge, and what goes wrong on the way."""

import os
import threading
import time
from dataclasses import replace
from fractions import Fraction

import pytest
from specs import small

from olaf.verify.instance import Control, Instance, Kind, Objective, Sender
from olaf.verify.portfolio import DisagreementError
from olaf.verify.schedule import Schedule, Send
from olaf.verify.verdict import Answer, Verdict
from olaf.verify.verifying import verify
from olaf.verify.witness import unlike
from olaf.verify.words import edge, explained, reach

MS = 1_000_000
BRUTE = ["brute:Brute"]


def test_what_holds_has_a_witness_at_its_edge() -> None:
    verdict = verify(*small(kind="fair_peak", epsilon_ms=5), provers=BRUTE)
    assert verdict.answer is Answer.HOLDS
    assert not verdict.forever
    assert verdict.tight
    assert verdict.witness is not None
    assert verdict.at_most == verdict.witness.value == Fraction(8, 3) * MS
    assert verdict.witness.pair == (0, 1)
    assert "2.667 ms is the smallest limit that holds" in edge(verdict)
    assert verdict.prover == "brute:Brute"
    assert verdict.cpu_seconds > 0


def test_the_edge_is_the_smallest_limit_that_holds() -> None:
    edge_ms = Fraction(8, 3)
    instance, objective = small(kind="fair_peak", epsilon_ms=5)
    at = replace(objective, limit=edge_ms * MS)
    below = replace(objective, limit=edge_ms * MS - 1)
    assert verify(instance, at, provers=BRUTE).answer is Answer.HOLDS
    assert verify(instance, below, provers=BRUTE).answer is Answer.VIOLATED


def test_a_violation_is_a_run_that_the_engine_confirms() -> None:
    verdict = verify(*small(kind="worst_peak", bound_ms=7), provers=BRUTE)
    assert verdict.answer is Answer.VIOLATED
    assert verdict.witness is not None
    assert verdict.witness.value == 8 * MS
    assert verdict.witness.pair == (1, 1)
    assert verdict.at_most is None


def test_tightest_says_by_how_far_a_limit_is_too_small() -> None:
    verdict = verify(*small(kind="worst_peak", bound_ms=7), provers=BRUTE, tightest=True)
    assert verdict.answer is Answer.VIOLATED
    assert verdict.at_most == 8 * MS
    assert verdict.tight


def test_a_violation_is_looked_for_in_a_shorter_horizon_first() -> None:
    instance, objective = small(kind="worst_peak", bound_ms=4)
    verdict = verify(replace(instance, horizon=48), objective, provers=BRUTE)
    assert verdict.answer is Answer.VIOLATED
    assert verdict.witness is not None
    assert verdict.witness.run.horizon_ns == 12 * MS
    assert verdict.instance.horizon == 48


def test_who_never_delivers_is_no_mean_to_be_fair_by() -> None:
    instance, objective = small(kind="fair_peak", epsilon_ms=5)
    verdict = verify(replace(instance, horizon=7), objective, provers=BRUTE)
    assert verdict.answer is Answer.VIOLATED
    assert verdict.clause is Kind.NO_AVERAGE
    assert "once only within the horizon" in verdict.reason
    assert verdict.at_most is None


def test_nothing_holds_because_nothing_happens() -> None:
    instance, objective = small(kind="fair_peak", epsilon_ms=1)
    verdict = verify(replace(instance, horizon=0), objective, provers=["brute:Denier"])
    assert verdict.answer is Answer.UNDECIDED
    assert "lengthen the horizon" in verdict.reason


def test_no_horizon_is_too_short_to_break_what_holds_up_to_it() -> None:
    instance, objective = small(kind="worst_peak", bound_ms=24)
    verdict = verify(instance, objective, provers=BRUTE)
    assert verdict.answer is Answer.UNDECIDED
    assert "time.horizon_ms" in verdict.reason


def test_nothing_holds_without_a_run_that_exists() -> None:
    instance, objective = small(kind="worst_peak", bound_ms=9)
    # No update leaves the link before the horizon.
    endless = replace(instance, service=instance.horizon + 1)
    verdict = verify(endless, objective, provers=["brute:Denier"])
    assert verdict.answer is Answer.UNDECIDED
    assert verdict.witness is None


@pytest.mark.slow
def test_the_first_answer_counts_and_the_others_end() -> None:
    begin = time.monotonic()
    verdict = verify(
        *small(kind="fair_peak", epsilon_ms=5), provers=["brute:Slow", *BRUTE], timeout_s=100
    )
    assert verdict.answer is Answer.HOLDS
    assert verdict.prover == "brute:Brute"
    assert time.monotonic() - begin < 50


def test_out_of_time_it_is_undecided_and_tells_the_best_run() -> None:
    begin = time.monotonic()
    verdict = verify(*small(kind="worst_peak", bound_ms=9), provers=["brute:Slow"], timeout_s=0.5)
    assert time.monotonic() - begin < 20
    assert verdict.answer is Answer.UNDECIDED
    assert "out of time" in verdict.reason
    assert verdict.witness is not None
    assert verdict.at_most is None
    assert "a run reaches" in explained(verdict)[1]


@pytest.mark.slow
def test_out_of_time_it_tells_up_to_when_it_holds() -> None:
    verdict = verify(*small(kind="worst_peak", bound_ms=9), provers=["brute:Tiring"], timeout_s=8)
    assert verdict.answer is Answer.UNDECIDED
    assert verdict.reason == "out of time; it holds up to 12 ms"


@pytest.mark.slow
def test_a_proof_for_ever_is_waited_for_a_little() -> None:
    instance, objective = small(kind="worst_peak", bound_ms=9)
    verdict = verify(instance, objective, provers=["brute:Slow", "brute:Brute"], timeout_s=100)
    assert (verdict.forever, verdict.prover) == (False, "brute:Brute")
    verdict = verify(instance, objective, provers=["brute:Late", "brute:Brute"], timeout_s=100)
    assert (verdict.forever, verdict.prover) == (True, "brute:Late")


def test_provers_that_disagree_are_no_verdict() -> None:
    instance, objective = small(kind="worst_peak", bound_ms=7)
    # Whichever comes first, the other contradicts it.
    with pytest.raises(DisagreementError, match="brute:Bounded"):
        verify(instance, objective, provers=["brute:LateFind", "brute:Bounded"], timeout_s=100)


def test_a_prover_that_breaks_is_told_of() -> None:
    verdict = verify(*small(kind="worst_peak", bound_ms=9), provers=["brute:Broken"])
    assert verdict.answer is Answer.UNDECIDED
    assert "no such luck" in verdict.reason


def test_a_prover_that_does_not_take_it_says_why() -> None:
    instance, objective = small(kind="worst_peak", bound_ms=9)
    late = replace(instance, senders=(replace(instance.senders[0], jitter=1), instance.senders[1]))
    verdict = verify(late, objective, provers=BRUTE)
    assert verdict.answer is Answer.UNDECIDED
    assert verdict.reason == "only phases"


def test_the_engine_has_the_last_word_on_a_found_run() -> None:
    with pytest.raises(DisagreementError, match="in it the engine sees 0"):
        verify(*small(kind="loss", at_most=0), provers=["brute:Exaggerator"])


def test_no_run_counts_in_which_a_sender_stops_sending() -> None:
    with pytest.raises(DisagreementError, match="worker 0 of a has an update more"):
        verify(*small(kind="worst_peak", bound_ms=9), provers=["brute:Liar"])


@pytest.mark.parametrize(
    ("ticks", "held", "what"),
    [
        ([0, 4, 9, 12, 16, 20, 24], [], None),
        ([0, 4, 8, 12, 16, 21], [], None),
        ([0, 4, 10, 12, 16, 20, 24], [], "no phase"),
        ([6, 10, 14, 18, 22], [], "no phase"),
        ([0, 4, 8, 12, 16], [], "an update more"),
        ([0, 4, 8, 12, 16, 20], [24], "held back"),
    ],
)
def test_what_a_sender_can_do(ticks: list[int], held: list[int], what: str | None) -> None:
    instance, _ = small(kind="starvation")
    alone = replace(instance, clusters=("a",), senders=(Sender(0, 4, 1),))
    schedule = Schedule(tuple(Send(t, 0, 0) for t in ticks), tuple((t, 0) for t in held))
    found = unlike(alone, schedule, Kind.WORST_PEAK)
    assert found is None if what is None else found is not None and what in found


def test_a_quota_is_kept() -> None:
    instance, _ = small(kind="starvation")
    control = Control(window=3, at_least=1, at_most=2, threshold=4, forced=9)
    alone = replace(instance, clusters=("a",), senders=(Sender(0, 4, 0),), control=control)

    def held(*ticks: int) -> Schedule:
        sends = tuple(Send(t, 0, 0) for t in range(0, 25, 4) if t not in ticks)
        return Schedule(sends, tuple((t, 0) for t in ticks))

    assert unlike(alone, held(4, 8), Kind.WORST_PEAK) is None
    assert "fewer than 1 of 3" in str(unlike(alone, held(4, 8, 12), Kind.WORST_PEAK))


def test_a_proof_against_a_run_that_exists_is_no_verdict() -> None:
    with pytest.raises(DisagreementError, match="there is a run with"):
        verify(*small(kind="worst_peak", bound_ms=4), provers=["brute:Denier"])


def test_another_thread_can_stop_it() -> None:
    stop = threading.Event()
    asked = threading.Event()
    verdicts: list[Verdict] = []

    def ask() -> None:
        verdicts.append(
            verify(
                *small(kind="worst_peak", bound_ms=9),
                provers=["brute:Slow"],
                timeout_s=100,
                say=lambda text: asked.set(),
                stop=stop,
            )
        )

    thread = threading.Thread(target=ask)
    thread.start()
    assert asked.wait(20)
    stop.set()
    thread.join(20)
    assert verdicts[0].reason == "interrupted"
    assert verdicts[0].witness is not None


def test_no_process_is_left_behind() -> None:
    before = _children()
    verify(*small(kind="worst_peak", bound_ms=9), provers=["brute:Slow", *BRUTE], timeout_s=30)
    assert _children() == before


def _children() -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                parent = file.read().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if parent == str(os.getpid()):
            found.append(pid)
    return found


def test_what_nobody_takes_is_undecided_at_once() -> None:
    instance, objective = small(kind="fair_age", epsilon_ms=50)
    late = replace(instance, senders=(replace(instance.senders[0], jitter=1), instance.senders[1]))
    begin = time.monotonic()
    verdict = verify(late, objective, provers=["sweep", "events"], timeout_s=100)
    assert verdict.answer is Answer.UNDECIDED
    assert "sweep: updates may be late" in verdict.reason
    assert "events: the mean age" in verdict.reason
    assert time.monotonic() - begin < 30


@pytest.mark.parametrize("limit_ms", [1, 2, 3, 5])
def test_all_provers_side_by_side_say_what_the_brute_says(limit_ms: int) -> None:
    for kind, key in (("fair_peak", "epsilon_ms"), ("worst_peak", "bound_ms")):
        instance, objective = small(kind=kind, **{key: limit_ms})
        by_brute = verify(instance, objective, provers=BRUTE, tightest=True)
        by_all = verify(instance, objective, tightest=True)
        assert by_all.answer is by_brute.answer
        assert by_all.at_most == by_brute.at_most


SILENT_LATER = Instance(
    tick_ns=1_000_000,
    service=1,
    slots=3,
    horizon=23,
    clusters=("a", "b", "c"),
    alike=(0, 1, 0),
    senders=(Sender(0, 2, 0), Sender(1, 3, 0), Sender(2, 2, 0)),
)
"""Somebody delivers a few times, and after some more ticks never again."""


def test_who_falls_silent_after_the_horizon_is_not_fair_in_the_long_run() -> None:
    fair = Objective(Kind.FAIR_PEAK, Fraction(10_000_000), (0, 1, 2))
    verdict = verify(SILENT_LATER, fair, timeout_s=30, provers=["sweep"])
    assert (verdict.answer, verdict.forever, verdict.edge_forever) == (Answer.HOLDS, False, False)
    assert reach(verdict) == "up to 23 ms"


def test_of_means_nothing_is_said_for_every_time() -> None:
    instance = replace(SILENT_LATER, service=2, senders=(Sender(0, 5, 0), Sender(1, 4, 0)))
    instance = replace(instance, horizon=21, clusters=("a", "b"), alike=(0, 1))
    said = {}
    for kind in (Kind.FAIR_PEAK, Kind.WORST_PEAK):
        objective = Objective(kind, Fraction(20_000_000), (0, 1))
        verdict = verify(instance, objective, timeout_s=30, provers=["sweep"])
        assert verdict.forever
        said[kind] = reach(verdict)
    assert said[Kind.FAIR_PEAK] == "up to 21 ms and in the long run"
    assert said[Kind.WORST_PEAK] == "for ever"
