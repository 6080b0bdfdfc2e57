"""The configuration of a parameter server."""

from __future__ import annotations

import json
from typing import Literal

from pydantic import Field

from olaf.files.keyfile import key_files
from olaf.jobs.fields import Address, OffClip, OffInt, OffText
from olaf.jobs.section import Section
from olaf.jobs.tenant_settings import TenantSettings
from olaf.values.defaults import SERVER


class ServerSettings(Section):
    """The parameter server: the model, and the rule by which updates change it."""

    listen: Address = SERVER["listen"]
    """Address and port for the switch, or for workers without a switch; port 0 picks a free
    port."""
    switches_from: list[Address] = Field(default=SERVER["switches_from"])
    """Addresses of the switches that send to the server. Joins that passed another switch are
    refused and counted as not_a_switch. Without a list each sender may be a switch: give a list
    where there are no keys."""
    key_files: list[str] = Field(default=SERVER["key_files"])
    """Files with keys (`olaf keys`), each for a job of its own or for any: only parties with such a
    key are let in. Without one everybody is, and the server listens on loopback alone."""
    insecure: bool = SERVER["insecure"]
    """Listen beyond this machine without a key, so that anybody there may take part."""
    metrics: OffText = SERVER["metrics"]
    """Address (HOST:PORT) to serve metrics, health and a status page on, by HTTP; off serves none.
    An address that other machines reach needs metrics_token_file."""
    metrics_token_file: OffText = SERVER["metrics_token_file"]
    """File with the token that readers of `metrics` send. Only its owner may read it."""
    jobs: list[TenantSettings] = Field(default=SERVER["jobs"])
    """The jobs that are served, each a table with `job`, `key_file`, `max_parameters`,
    `max_workers` and `max_clusters` (docs/keys.md). An empty list
    serves every job, without limits."""
    rule: Literal["delta", "paper-literal"] = SERVER["rule"]
    """delta applies every update. paper-literal applies only updates whose reward beats the best so
    far, and soon stops learning (measured: 4 to 24 of 1,600 applied)."""
    learning_rate: float = Field(default=SERVER["learning_rate"], gt=0)
    """Factor on every update. 1 applies a push unchanged; the paper has 0.001. Workers receive the
    factor when they join."""
    step: Literal["overlap", "mean", "sum"] = SERVER["step"]
    """Size of the step for a merge of n updates. overlap: n times their mean, scaled by
    k^-staleness_power. Here k is the number of pushing workers or the number of overlapping
    updates, whichever is larger. Overlapping updates are those of the merge, and those that changed
    the model since the merge's version. mean: the mean; sum: n times the mean; both scaled by (1 +
    versions behind)^-staleness_power."""
    gate: Literal["none", "best", "recent"] = SERVER["gate"]
    """Reward gate of the delta rule: refuse updates below the best, or the recent, reward."""
    gate_margin: float = Field(default=SERVER["gate_margin"], ge=0)
    """Margin of the gate: allowed distance below its reference, in units of reward."""
    clip_norm: OffClip = SERVER["clip_norm"]
    """Limit on the norm of one update, as of the switch. A switch clips before it merges."""
    clip_weight: OffClip = SERVER["clip_weight"]
    """The same limit on the weight of one contribution."""
    clip_reward: OffClip = SERVER["clip_reward"]
    """The same limit on a reward."""
    max_rate: OffClip = SERVER["max_rate"]
    """The same limit on a worker's updates in a second, for workers without a switch."""
    max_movement: OffClip = SERVER["max_movement"]
    """The same limit on how far an address moves the model, for workers without a switch."""
    staleness_power: float = Field(default=SERVER["staleness_power"], ge=0)
    """With k pushing workers, an update counts k^-power (see step); 0 weighs all alike. 0.7 suits
    updates of whole turns, which are one round old and overshoot together. If it is not set, `olaf
    train` uses 0.33 for workers that push each pass (worker.push_every): their updates are
    fresher."""
    aggregate: Literal["each", "periodic", "round"] = SERVER["aggregate"]
    """When updates change the model. each: at each arrival, as in OLAF; periodic: several updates
    together, while their workers go on; round: one update of every present worker together, and all
    workers wait (synchronous training)."""
    aggregate_updates: OffInt = Field(default=SERVER["aggregate_updates"], ge=1)
    """For periodic: number of contributions that change the model together; off uses only
    aggregate_within."""
    aggregate_ms: int = Field(default=SERVER["aggregate_ms"], ge=1)
    """For periodic: apply the collected updates when this time has passed since the first. For
    round: end a round when this time has passed since its first contribution, and report the
    missing workers."""
    keep_versions: int = Field(default=SERVER["keep_versions"], ge=1)
    """Number of model versions kept for workers that ask for a missing segment."""
    segment_lanes: OffInt = Field(default=SERVER["segment_lanes"], ge=1)
    """Parameters per segment that the server requires; off uses the first worker's value."""
    silent_after_ms: int = Field(default=SERVER["silent_after_ms"], ge=1)
    """A peer is reported silent if it was not heard within this time."""
    forget_jobs_after_ms: OffInt = Field(default=SERVER["forget_jobs_after_ms"], ge=1)
    """A job without workers for this time makes room for others, and its model goes. Its checkpoint
    stays: the server writes one before, if it has `checkpoint`. Jobs in `jobs` are never forgotten;
    off forgets none, and `olaf train` uses off."""
    round_ms: int = Field(default=SERVER["round_ms"], ge=1)
    """For models of several segments: answer a cluster within this time after its first unanswered
    segment."""
    ecn: bool = SERVER["ecn"]
    """Send answers as ECN-capable, so that a congested switch may mark them (see
    switch.downlink_ecn_depth_datagrams). The server counts marks on updates, and does not slow
    down."""
    core: OffInt = Field(default=SERVER["core"], ge=0)
    """CPU core of the process; off leaves the choice to the system."""
    checkpoint: OffText = SERVER["checkpoint"]
    """File (.npz) with the model and the server's state. A server that starts continues from it.
    {job} in the name stands for the job's number. `olaf train` uses checkpoint.npz in the run's
    folder."""
    checkpoint_every_ms: int = Field(default=SERVER["checkpoint_every_ms"], ge=1)
    """Interval between checkpoints, while the model changes. `olaf train` uses 10s."""
    fresh: bool = SERVER["fresh"]
    """Ignore an existing checkpoint; the old file is kept as FILE.before-1, FILE.before-2 and so
    on."""

    def to_core(self) -> str:
        """The JSON that `olaf._olaf.Server` takes."""
        return json.dumps(self.model_dump(mode="json") | {"key_files": key_files(self.key_files)})
