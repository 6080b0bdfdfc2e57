"""What clusters do, against what the policy says that they do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from olaf.errors.usage import ConfigurationError
from olaf.jobs.admission import Admission, Answer, Policy, Question
from olaf.jobs.policy import policy_of
from olaf.jobs.reality import Declared, Reality, own_mismatches
from olaf.jobs.settings import SwitchSettings

STEADY = Declared("steady", (3,), workers=2, interval_s=0.1)

POLICY = """
[queue]
slots = 2
rate = "1mbit"
bytes = 1000

[[cluster]]
name = "steady"
workers = 2
interval = "100ms"
ids = [3]

[[objective]]
kind = "worst_peak"
bound = "1s"
"""


def status(*workers: tuple[int, int], cluster: int = 3, alive: bool = True) -> dict[str, Any]:
    """A switch's report with these workers: (id, last sequence)."""
    return {
        "workers": [
            {
                "job": 1,
                "cluster": cluster,
                "worker": worker,
                "alive": alive,
                "admitted": True,
                "last_sequence": sequence,
            }
            for worker, sequence in workers
        ]
    }


def whats(reality: Reality, told: dict[str, Any], now_s: float) -> list[str]:
    return [one.what for one in reality.look(told, now_s)]


def test_a_cluster_that_does_as_it_declared_is_no_mismatch() -> None:
    reality = Reality([STEADY], None)
    assert whats(reality, status((1, 0), (2, 0)), 0.0) == []
    assert whats(reality, status((1, 100), (2, 100)), 10.0) == []
    assert whats(reality, status((1, 205), (2, 195)), 20.0) == [], "within the tolerance"


def test_a_worker_too_many_is_one() -> None:
    reality = Reality([STEADY], None)
    (found,) = reality.look(status((1, 0), (2, 0), (9, 0)), 0.0)
    assert found.what == "workers"
    assert found.reason == "cluster 3 of job 1 has 3 workers, and steady declares 2"
    assert whats(reality, status((1, 0), (2, 0)), 1.0) == [], "it has left"


def test_a_worker_that_sends_more_often_is_one_until_it_slows_down() -> None:
    reality = Reality([STEADY], None)
    reality.look(status((1, 0)), 0.0)
    assert whats(reality, status((1, 19)), 0.1) == [], "too few updates say little"
    (found,) = reality.look(status((1, 200)), 10.0)
    assert found.what == "interval"
    assert "sends every 50.0 ms" in found.reason
    assert "declares 100.0 ms" in found.reason
    assert whats(reality, status((1, 300)), 20.0) == []


def test_a_worker_that_sends_more_seldom_is_one() -> None:
    reality = Reality([STEADY], None)
    reality.look(status((1, 0), (2, 0)), 0.0)
    assert whats(reality, status((1, 10), (2, 10)), 2.0) == [], "too short a time says little"
    (found,) = reality.look(status((1, 30), (2, 15)), 3.0)
    assert found.what == "interval"
    assert "sends every 200.0 ms" in found.reason
    (found,) = reality.look(status((1, 60), (2, 15)), 6.0)
    assert "sends nothing, and steady declares 100.0 ms" in found.reason
    assert whats(reality, status((1, 90), (2, 45)), 9.0) == []


def test_a_worker_whose_updates_are_held_back_may_send_more_seldom() -> None:
    reality = Reality([replace(STEADY, holds_back=True)], None)
    reality.look(status((1, 0)), 0.0)
    assert whats(reality, status((1, 15)), 3.0) == []
    assert whats(reality, status((1, 415)), 6.0) == ["interval"], "more often is one all the same"


def test_a_worker_that_began_anew_is_measured_anew() -> None:
    reality = Reality([STEADY], None)
    reality.look(status((1, 1000)), 0.0)
    assert whats(reality, status((1, 3)), 1.0) == []
    assert whats(reality, status((1, 23)), 3.0) == []
    assert whats(reality, status((1, 223)), 5.0) == ["interval"], "200 updates in 2 seconds"


def test_clusters_that_are_not_listed_are_compared_with_the_newcomer() -> None:
    newcomer = Declared("newcomer", (), workers=1, interval_s=1.0)
    told = status((1, 0), (2, 0), cluster=8)
    assert whats(Reality([STEADY], newcomer), told, 0.0) == ["workers"]
    assert whats(Reality([STEADY], None), told, 0.0) == []


def test_silent_workers_count_for_nothing() -> None:
    reality = Reality([STEADY], None)
    assert whats(reality, status((1, 0), (2, 0), (3, 0), alive=False), 0.0) == []


def own(
    slots: int = 2, rate_bps: int | None = 1000, policy_rate_bps: int | None = 1000
) -> list[str]:
    return own_mismatches(
        slots=slots, rate_bps=rate_bps, policy_slots=2, policy_rate_bps=policy_rate_bps
    )


def test_the_switch_is_compared_too() -> None:
    assert own() == []
    assert own(rate_bps=None, policy_rate_bps=None) == []
    assert own(slots=3) == ["the switch has 3 slots, and the policy's queue has 2"]
    (faster,) = own(rate_bps=2000)
    assert "2,000 bit/s" in faster
    (unpaced,) = own(rate_bps=None)
    assert "does not pace its uplink" in unpaced


def test_a_switch_that_is_not_the_policys_starts_or_not_as_it_is_set(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    given = {"admission": str(file), "slots": 4, "uplink": "1mbit"}
    told = SwitchSettings.model_validate(given).to_admission()
    assert told is not None
    assert told["own_mismatches"] == ["the switch has 4 slots, and the policy's queue has 2"]
    refusing = SwitchSettings.model_validate({**given, "admission_mismatch": "refuse"})
    with pytest.raises(ConfigurationError, match="4 slots, and the policy's queue has 2"):
        refusing.to_admission()
    fitting = SwitchSettings.model_validate({**given, "slots": 2, "admission_mismatch": "refuse"})
    assert fitting.to_admission() is not None


class Admits:
    def __init__(self) -> None:
        self.asked = 0

    def ask(self, question: Question) -> Answer:
        self.asked += 1
        return Answer("admit", "it fits")

    def stop(self) -> None:
        """Nothing runs."""


def policy(tmp_path: Path, mismatch: str) -> Policy:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    return policy_of(
        file, slots=2, uplink="1mbit", mismatch=mismatch, timeout_s=9.0, unanswered="admit"
    )


@pytest.mark.parametrize("mismatch", ["say", "refuse"])
def test_a_mismatch_is_said_once_and_refuses_newcomers_by_policy(
    tmp_path: Path, mismatch: str
) -> None:
    decided: list[bool | None] = []

    def decide(job: int, cluster: int, word: bool | None) -> bool:
        decided.append(word)
        return True

    asks = Admits()
    crowd = status((1, 0), (2, 0), (3, 0))
    desk = Admission(policy(tmp_path, mismatch), decide, asks, lambda: crowd)
    (said,) = desk.settled()
    assert said["event"] == "admission_mismatch"
    assert "has 3 workers" in said["reason"]
    assert desk.settled() == [], "once"
    desk.take({"job": 1, "cluster": 4, "running": [], "at_ns": 4e18})
    desk.stop()
    (settled,) = (one for one in [*desk.settled()] if one["event"] != "admission_mismatch")
    assert decided == [mismatch == "say"]
    assert asks.asked == (1 if mismatch == "say" else 0)
    if mismatch == "refuse":
        assert settled["event"] == "cluster_refused"
        assert "what runs is not what the policy says: cluster 3 of job 1" in settled["reason"]


def test_a_policy_survives_its_way_to_the_switchs_process(tmp_path: Path) -> None:
    import dataclasses
    import json

    made = policy(tmp_path, "say")
    assert Policy.told(json.loads(json.dumps(dataclasses.asdict(made)))) == made
