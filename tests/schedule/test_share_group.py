"""Jobs that share one tree in time, through the module (MINA §V-C, Figure 12)."""

import json
from typing import Any

import pytest

from olaf import _olaf

NETWORK = {"bytes_per_second": 1_000_000_000, "speedup_millis": 2000, "latency_ns": 0}


def group(policy: str, **changes: Any) -> dict[str, Any]:
    """Two jobs whose every step is one all-reduce of 100 ns, or 50 by the switches."""
    pattern = {"name": "p", "compute_ns": 10, "operations": [{"start_ns": 0, "bytes": 100}]}
    jobs = [{"pattern": pattern, "hosts": 2}] * 2
    asked = {"policy": policy, "network": NETWORK, "jobs": jobs, "until": {"steps": 2}}
    return {**asked, **changes}


def share(asked: dict[str, Any]) -> dict[str, Any]:
    done: dict[str, Any] = json.loads(_olaf.share_group(json.dumps(asked)))
    return done


def test_one_of_two_goes_without_until_the_other_has_left() -> None:
    done = share(group("greedy"))
    assert [job["ns"] for job in done["jobs"]] == [100, 150]
    assert [job["in_network"] for job in done["jobs"]] == [2, 1]
    assert done["score"] == pytest.approx(150 / 200)


def test_each_job_may_run_its_own_number_of_steps() -> None:
    done = share(group("greedy", until={"steps_each": [1, 3]}))
    assert [job["steps"] for job in done["jobs"]] == [1, 3]
    assert [job["ns"] for job in done["jobs"]] == [50, 200]


@pytest.mark.parametrize("policy", ["none", "greedy", "mina", "plan"])
def test_no_policy_exceeds_the_bound(policy: str) -> None:
    done = share(group(policy, until={"ns": 100_000}))
    assert done["bound"] == pytest.approx(2 / 3, abs=1e-6)
    assert 0 <= done["score"] <= done["bound"] + 0.001
    assert (done["score"] == 0) == (policy == "none")


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"policy": "fair"}, "unknown variant `fair`"),
        ({"jobs": []}, "0 jobs"),
        ({"network": {**NETWORK, "speedup_millis": 500}}, "speedup at least 1000"),
        ({"until": {"steps_each": [1]}}, "give a number for each job"),
        ({"until": {"ns": 1 << 62}}, "until: more than 10000000000"),
        ({"unit": 1}, "unknown field `unit`"),
    ],
)
def test_what_cannot_be_is_named(changes: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        share({**group("plan"), **changes})
