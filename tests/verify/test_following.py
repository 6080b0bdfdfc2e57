"""Runs that the verifier draws for senders with transmission control are runs that exist."""

from __future__ import annotations

from random import Random

import pytest
from crosscheck import questions, values_of
from instances import draw
from reference import TooManyError, outcomes

from olaf.verify.instance import Control, Instance, Sender
from olaf.verify.witness import _some, sampled, unlike


def controlled(count: int, *, jitter: bool) -> list[Instance]:
    random = Random(7 + jitter)
    return [
        draw(random, longest=5, most_workers=3, jitter=jitter, control=True) for _ in range(count)
    ]


@pytest.mark.parametrize("jitter", [False, True])
def test_each_sample_is_one_of_all_runs(jitter: bool) -> None:
    compared = held = 0
    for instance in controlled(60, jitter=jitter):
        try:
            runs = outcomes(instance, 3_000)
        except TooManyError:
            continue
        for objective in questions(instance):
            values = values_of(runs, instance, objective)
            for schedule in _some(instance, objective.kind):
                assert unlike(instance, schedule, objective.kind) is None, (instance, schedule)
                held += len(schedule.held)
            best = sampled(instance, objective)
            if best is not None:
                assert best.value in values, (instance, objective)
                compared += 1
    assert compared > 30, "samples have values"
    assert held > 30, "senders hold updates back"


def test_a_worker_that_hears_answers_keeps_its_quota() -> None:
    control = Control(window=4, at_least=1, at_most=2, threshold=12, forced=20)
    senders = (Sender(0, 4, 0), Sender(1, 4, 0), Sender(2, 4, 0))
    clusters = ("a", "b", "c")
    instance = Instance(1_000_000, 1, 2, 200, clusters, (0, 0, 0), senders, control=control)
    for schedule in _some(instance, questions(instance)[0].kind):
        assert unlike(instance, schedule, questions(instance)[0].kind) is None
        sent = [sum(send.sender == index for send in schedule.sends) for index in range(3)]
        assert all(10 <= count <= 30 for count in sent), sent
