"""The server of a virtual job against the rule written once more, slowly and obviously."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from olaf._olaf import VirtualJob, update_bytes

SIZE = 12
MS = 1_000_000
Weights = NDArray[np.float32]


@dataclass
class Reference:
    """The parameter server's rules, as plainly as they can be written."""

    weights: Weights
    rule: dict[str, Any]
    version: int = 1
    applied: int = 0
    refused: int = 0
    best: float = -np.inf
    recent: float | None = None
    average: Weights | None = None
    staleness: list[int] = field(default_factory=list)
    workers: int = 1
    contributions: list[int] = field(default_factory=lambda: [0, 0])
    """By version: the contributions that made the model what it was then."""

    last: dict[int, int] = field(default_factory=dict)
    """By worker: the contributions that the model had with its last one."""

    def apply(
        self,
        total: Weights,
        weight: float,
        reward: float,
        basis: tuple[int, int],
        *,
        worker: int,
        count: int = 1,
    ) -> None:
        """Take one delivered update of ``count`` contributions, the first of them of ``worker``.

        basis: the oldest and the newest version that they were computed on.
        """
        now = self.contributions[-1]
        since = now - (self.contributions[basis[0]] + self.contributions[basis[1]]) / 2
        others = [at for other, at in self.last.items() if other != worker]
        active = 1 + sum(now - at < 4 * self.workers for at in others)
        overlapped = max(since, active - count)
        behind = (self.version - basis[0] + self.version - basis[1]) // 2
        literal = self.rule.get("rule") == "paper-literal"
        taken = reward > self.best if literal else self._admits(reward)
        self.recent = reward if self.recent is None else 0.9 * self.recent + 0.1 * reward
        self.applied += taken
        self.refused += not taken
        self.last[worker] = now + count * taken
        if not taken:
            return
        self.best = max(self.best, reward)
        self.staleness.append(behind)
        self.version += 1
        self.contributions.append(now + count)
        mean: Weights = total / np.float32(weight)
        if literal:
            # OLAF §2.1, word for word: r_g = -inf at first; only if r_i > r_g, w <- w + gamma g_a
            # with g_a = avg(g_a, g_i), and r_g becomes r_i.
            step: Weights = mean if self.average is None else (self.average + mean) / np.float32(2)
            self.average, factor = step, 1.0
        else:
            power, way = -self.rule.get("staleness_power", 0.7), self.rule.get("step", "overlap")
            factor, step = (1.0 + behind) ** power, mean
            if way == "sum":
                factor *= weight
            elif way == "overlap":
                factor = count * (count + overlapped) ** power
        factor *= self.rule.get("learning_rate", 1.0)
        self.weights = self.weights + np.float32(factor) * step

    def _admits(self, reward: float) -> bool:
        gate, margin = self.rule.get("gate", "none"), self.rule.get("gate_margin", 0.0)
        if gate == "best":
            return bool(reward >= self.best - margin)
        if gate == "recent" and self.recent is not None:
            return bool(reward >= self.recent - margin)
        return True


def job(
    workers: int, server: dict[str, Any], clusters: int | None = None, **more: Any
) -> VirtualJob:
    config = {
        "seed": 0,
        "clusters": [worker % (clusters or workers) for worker in range(workers)],
        "switch": {"upstream": "server", **more.pop("switch", {})},
        "server": server,
        "edge": {"delay_ns": MS},
        "core": {"delay_ns": MS},
        **more,
    }
    made = VirtualJob(json.dumps(config))
    for worker in range(workers):
        made.join(worker, [np.zeros(SIZE, np.float32)], 10_000 * MS)
    return made


def settle(made: VirtualJob) -> None:
    assert made.run_until(made.now_ns + 100 * MS) == []


RULES: list[dict[str, Any]] = [
    {},
    {"staleness_power": 0.0, "learning_rate": 0.25},
    {"staleness_power": 1.5, "step": "sum"},
    {"staleness_power": 1.5, "step": "mean"},
    {"gate": "best", "gate_margin": 1.0},
    {"gate": "recent"},
    {"rule": "paper-literal", "learning_rate": 0.5},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_server_does_what_its_reference_model_does(rule: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    made = job(3, rule)
    reference = Reference(np.zeros(SIZE, np.float32), rule, workers=3)
    basis = [1, 1, 1]
    parts = [np.zeros(SIZE, np.float32)]
    for worker in range(3):
        assert made.pull(worker, parts, 0) == 1
    for _ in range(60):
        worker = int(rng.integers(3))
        step = rng.standard_normal(SIZE).astype(np.float32)
        reward, weight = float(rng.normal()), float(rng.choice([0.5, 1.0, 3.0]))
        made.push(worker, [step], reward=reward, weight=weight)
        settle(made)
        own = basis[worker]
        reference.apply(step * np.float32(weight), weight, reward, (own, own), worker=worker)
        if rng.random() < 0.4:
            version = made.pull(worker, parts, basis[worker])
            if version is not None:
                assert version == reference.version
                np.testing.assert_allclose(parts[0], reference.weights, rtol=1e-5, atol=1e-6)
                basis[worker] = version
    model = made.model()
    assert model is not None
    assert model[0] == reference.version
    np.testing.assert_allclose(model[1], reference.weights, rtol=1e-5, atol=1e-6)
    served = json.loads(made.stats())["server"]["jobs"][0]
    assert served["fates"]["delivered_alone"] == reference.applied
    assert served["fates"]["gated"] == reference.refused
    assert max(basis) > 1


@pytest.mark.parametrize("step", ["overlap", "mean", "sum"])
def test_what_meets_in_the_queue_is_one_step(step: str) -> None:
    slow = {"uplink_bps": update_bytes(SIZE) * 8 * 20}  # 50 ms an update
    rule = {"staleness_power": 1.0, "step": step}
    made = job(3, rule, clusters=1, switch=slow)
    reference = Reference(np.zeros(SIZE, np.float32), rule, workers=3)
    parts = [np.zeros(SIZE, np.float32)]
    for worker in range(3):
        made.pull(worker, parts, 0)
        made.push(worker, [np.full(SIZE, worker + 1, np.float32)], reward=float(worker))
    made.run_until(made.now_ns + 1000 * MS)
    # The first is on the wire, locked, when the others come: they wait together.
    reference.apply(np.full(SIZE, 1, np.float32), 1.0, 0.0, (1, 1), worker=0)
    reference.apply(np.full(SIZE, 5, np.float32), 2.0, 1.5, (1, 1), worker=1, count=2)
    model = made.model()
    assert model is not None
    np.testing.assert_allclose(model[1], reference.weights, rtol=1e-6)
    fates = json.loads(made.stats())["switch"]["fates"]
    assert (fates["sent_alone"], fates["merged"]) == (1, 2)


def test_the_updates_of_a_round_count_as_the_workers_in_it() -> None:
    made = job(4, {"aggregate": "round", "aggregate_ms": 10_000, "staleness_power": 0.5})
    parts = [np.zeros(SIZE, np.float32)]
    basis, before = [0] * 4, 0.0
    for _ in range(3):
        for worker in range(4):
            basis[worker] = made.pull(worker, parts, basis[worker]) or basis[worker]
            made.push(worker, [np.ones(SIZE, np.float32)], reward=0.0)
        settle(made)
        model = made.model()
        assert model is not None
        # Four updates of 1, each counted 4^-0.5, in every round alike.
        np.testing.assert_allclose(model[1] - before, 4 * 4**-0.5, rtol=1e-6)
        before = float(model[1][0])


def test_a_key_that_cannot_be_is_named() -> None:
    for more, key in [
        ({"server": {"learning_rate": -1}}, "learning_rate"),
        ({"server": {"rule": "sgd"}}, "server configuration: rule = "),
        ({"server": {}, "switch": {"slots": 0}}, "slots"),
        ({"server": {}, "switch": {"queue": "lifo"}}, "switch configuration: queue = "),
        ({"server": {}, "worker": {"transmission": "tcp"}}, "worker.transmission"),
        ({"server": {}, "edge": {"loss": 1.0}}, "loss"),
        ({"server": {}, "edge": {"delay_ms": 1}}, "edge"),
        ({"server": {"lerning_rate": 1}}, "lerning_rate"),
    ]:
        with pytest.raises(ValueError, match=key):
            job(1, **more)  # type: ignore[arg-type]


def test_nobody_but_the_workers_of_the_job() -> None:
    made = job(2, {})
    with pytest.raises(IndexError, match="worker = 2: must be below 2"):
        made.push(2, [np.zeros(SIZE, np.float32)], reward=0.0)
    with pytest.raises(ValueError, match="NaN"):
        made.push(0, [np.full(SIZE, np.nan, np.float32)], reward=0.0)
    with pytest.raises(ValueError, match="parts have 3 values"):
        made.pull(0, [np.zeros(3, np.float32)], 0)
