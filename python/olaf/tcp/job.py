"""The decisions of the plain TCP server, without a socket or a clock: times are arguments.

Statistics have the names of ``docs/reference/statistics.md``, so that accounts, table and report
can read them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from olaf.tcp.ages import Cluster, Staleness, jain
from olaf.tcp.frames import NOTHING_APPLIED, Join, Lanes, Model, Push
from olaf.tcp.rule import Rule, RuleConfig


class RefusedError(Exception):
    """The server refuses a worker; the message says why."""


ACTIVE = 4
"""A worker is active if its last update is among this many last updates, times the workers."""


@dataclass
class Member:
    """A connected worker."""

    cluster: int
    last_sequence: int = NOTHING_APPLIED
    contributed: int | None = None
    """Number of updates of the job when the worker's last one arrived."""


@dataclass
class Job:
    """One model and the workers that change it."""

    number: int
    rule: RuleConfig
    most_parameters: int
    most_workers: int
    members: dict[int, Member] = field(default_factory=dict)
    clusters: dict[int, Cluster] = field(default_factory=dict)
    staleness: Staleness = field(default_factory=Staleness)
    received: int = 0
    delivered: int = 0
    gated: int = 0
    parameters: int = 0
    """0 until the first worker joins, or a checkpoint is loaded."""

    def __post_init__(self) -> None:
        self._applies = Rule(self.rule)

    def restore(self, version: int, weights: Lanes) -> None:
        """Continue with an earlier model."""
        self._applies.start(weights, version)
        self.parameters = weights.size

    @property
    def version(self) -> int:
        """Version of the model; 0 while there is none."""
        return self._applies.version

    @property
    def weights(self) -> Lanes | None:
        """The model, or None before the first worker has sent it."""
        return self._applies.weights

    def join(self, join: Join) -> None:
        """Add a worker. Raises RefusedError."""
        if join.parameters > self.most_parameters:
            raise RefusedError(
                f"a model of {join.parameters} parameters is too large: the limit is "
                f"{self.most_parameters} (switch.max_parameters)"
            )
        if self.parameters and join.parameters != self.parameters:
            raise RefusedError(
                f"a model of {join.parameters} parameters; the job's has {self.parameters}"
            )
        if join.worker in self.members:
            raise RefusedError(f"worker {join.worker} is connected already: ids are unique")
        if len(self.members) >= self.most_workers:
            raise RefusedError(f"{self.most_workers} workers are connected, which is the limit")
        self.parameters = join.parameters
        self.members[join.worker] = Member(join.cluster)
        self.clusters.setdefault(join.cluster, Cluster()).workers.add(join.worker)

    def start(self, weights: Lanes) -> None:
        """Use the first worker's weights as the first model (OLAF §2.1); later ones change nothing.

        Raises RefusedError if they do not have the size that the worker joined with.
        """
        if weights.size != self.parameters:
            raise RefusedError(f"{weights.size} weights; the job has {self.parameters}")
        self._applies.start(weights)

    def apply(self, worker: int, push: Push, now_ns: int) -> None:
        """Apply an update to the model. Raises RefusedError for one out of order."""
        member = self.members[worker]
        if self._applies.weights is None:
            raise RefusedError("an update before any worker has sent a model")
        if push.sequence != member.last_sequence + 1:
            raise RefusedError(
                f"update {push.sequence} of worker {worker} instead of {member.last_sequence + 1}: "
                "TCP neither loses nor repeats updates"
            )
        member.last_sequence = push.sequence
        self.received += 1
        cluster = self.clusters[member.cluster]
        # A model that this server never had: the server was restarted from an older checkpoint.
        version = min(push.version, self.version)
        behind = self.version - version
        cluster.age.deliver(now_ns, min(push.pushed_ns, now_ns))
        cluster.last_reward = push.reward
        for staleness in (cluster.staleness, self.staleness):
            staleness.take(behind)
        taken = self._applies.apply(
            push.lanes,
            weight=push.weight,
            reward=push.reward,
            behind=behind,
            others=self._others(worker),
        )
        member.contributed = self.received
        self.delivered += taken
        self.gated += not taken

    def _others(self, worker: int) -> int:
        """The other workers that pushed recently, as in the core's `server/job.rs`."""
        lately = ACTIVE * len(self.members)
        return sum(
            member.contributed is not None and self.received - member.contributed < lately
            for other, member in self.members.items()
            if other != worker
        )

    def model(self, worker: int) -> Model:
        """The newest model, as the answer to a worker."""
        weights = self._applies.weights
        if weights is None:
            raise RefusedError("no worker has sent a model yet")
        return Model(self.version, self.members[worker].last_sequence, weights)

    def leave(self, worker: int) -> None:
        """Forget a worker that is gone."""
        member = self.members.pop(worker, None)
        if member is not None:
            self.clusters[member.cluster].workers.discard(worker)
        if not self.members and self.weights is None:
            self.parameters = 0  # no model exists: the next worker decides its size

    def statistics(self, now_ns: int) -> dict[str, Any]:
        """The job's part of a server's statistics."""
        clusters = [self._cluster(number, now_ns) for number in sorted(self.clusters)]
        means = [c["aom_mean_ns"] for c in clusters if c["aom_mean_ns"] is not None]
        return {
            "job": self.number,
            "version": self.version,
            "parameters": self.parameters,
            "segments": 1,
            "rule": self.rule.rule,
            "ready": self.weights is not None,
            "arrays": None,
            "restored": None,
            "aggregate": "each",
            "collections": 0,
            "rounds_short": 0,
            "received": self.received,
            "deliveries": self.received,
            "fates": {
                "delivered_alone": self.delivered,
                "delivered_merged": 0,
                "gated": self.gated,
                "waiting": 0,
                "rejected": {},
            },
            "staleness_mean": self.staleness.mean,
            "staleness_max": self.staleness.most,
            "clusters": clusters,
            "fairness": jain(means),
        }

    def _cluster(self, number: int, now_ns: int) -> dict[str, Any]:
        cluster = self.clusters[number]
        return {
            "cluster": number,
            "workers": len(cluster.workers),
            "deliveries": cluster.staleness.count,
            "contributions": cluster.staleness.count,
            "aom_now_ns": cluster.age.now_ns(now_ns),
            "aom_mean_ns": cluster.age.mean_ns(now_ns),
            "aom_peak_mean_ns": cluster.age.peak_mean_ns(),
            "staleness_mean": cluster.staleness.mean,
            "staleness_max": cluster.staleness.most,
            "last_reward": cluster.last_reward,
            "clock_error_ns": 0,
        }
