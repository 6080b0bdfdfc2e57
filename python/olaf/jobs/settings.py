"""The configuration of a job and of each role: typed, checked once, each field explained.

A file has times, sizes and rates with their units (``silent_after = "2s"``). A field holds a plain
number, in the unit at the end of its name (``silent_after_ms``). See `olaf.values.units`.
`olaf.jobs.reading` reads files and overrides.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    create_model,
    model_validator,
)

from olaf.files.keyfile import key_files
from olaf.jobs import queues
from olaf.jobs.fields import Address, OffClip, OffFloat, OffInt, OffRate, OffText
from olaf.jobs.place_settings import RaySettings, SlurmSettings
from olaf.jobs.section import Explained, NoneIs, Section
from olaf.jobs.server_settings import ServerSettings
from olaf.jobs.sums_settings import (
    AtpServerSettings,
    AtpSettings,
    IswitchSettings,
    ReduceSettings,
    TrioSettings,
)
from olaf.jobs.tcp_settings import TcpSettings, check_transport
from olaf.jobs.tenant_settings import TenantSettings
from olaf.jobs.train_settings import TrainSettings
from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.worker_loop import LoopConfig
from olaf.values.defaults import SUMMING, SWITCH, WORKER

LARGEST_ID = 2**32 - 2
"""Largest id: ids have 32 bits on the wire, and the last one means all workers."""

JOB = 1
"""The job id that is used if there is only one job."""


EngineName = Literal["queue", "reduce", "iswitch", "trio", "atp", "atp_server"]
QueueName = Annotated[str, AfterValidator(queues.known), Explained(queues.EXPLAINED)]
DrawnInt = Annotated[int | None, NoneIs("drawn")]


class LeafSettings(Section):
    """Queue and uplink of each leaf switch (`train.leaves`). Leaves are below the switch."""

    queue: QueueName = SWITCH["queue"]
    """Discipline of the uplink's queue:"""
    slots: int = Field(default=SWITCH["slots"], ge=1)
    """Number of segments that the queue holds, including the one on the wire. 8 as in the paper's
    testbed. If it is not set, `olaf train` uses 8 for each segment of the model."""
    shares: dict[str, int] = Field(default=SWITCH["shares"])
    """Shares of the link and of the slots by job, from 1 to 1000: {"1": 3} gives job 1 three times
    as much as each other active job. Jobs that are not named have 1. An idle job's share is free
    for the others."""
    gate: OffFloat = SWITCH["gate"]
    """Reward gate: a threshold in units of reward. A new update that is better than the waiting one
    by more than the threshold replaces it. A new update that is worse by more is filtered. Others
    merge. off always merges, which learned best."""
    clip_norm: OffClip = SWITCH["clip_norm"]
    """Limit on the norm of one update's mean gradient, in each segment: a number, or a multiple of
    the recent median of the other workers ("10x"). A longer one is scaled down, counted, and its
    worker is named."""
    clip_weight: OffClip = SWITCH["clip_weight"]
    """The same limit on the weight of one contribution; its sum is scaled down with it."""
    clip_reward: OffClip = SWITCH["clip_reward"]
    """The same limit on a reward: its magnitude, or with a multiple its distance from the median in
    units of the spread."""
    max_rate: OffClip = SWITCH["max_rate"]
    """Limit on a worker's updates in a second: a number, or a multiple of the recent median of the
    other workers ("20x"). More are refused as too_often, counted, and the worker is named."""
    max_movement: OffClip = SWITCH["max_movement"]
    """Limit on how far the updates of one address move the model in a second, in usual steps: a
    number, or a multiple of the recent median of the others ("3x"). An update beyond it is scaled
    down, counted, and its worker is named. off by default: a machine that is much faster than the
    median of the others would be slowed to that multiple, too."""
    uplink: OffRate = SWITCH["uplink"]
    """Bandwidth of the link towards the server in UDP payload, in tc's units ("1.9mbit"); off sends
    at once. Set uplink or credits, not both."""
    credits: OffInt = Field(default=SWITCH["credits"], ge=1)
    """Largest number of unanswered updates on the way to a server; off sets no limit. Credits adapt
    to a slow server without knowing its rate."""
    credit_timeout_ms: int = Field(default=SWITCH["credit_timeout_ms"], ge=1)
    """An unanswered credit is free again after this time, so a lost answer stops nothing."""
    downlink: OffRate = SWITCH["downlink"]
    """Bandwidth of the link towards the workers in UDP payload, as for uplink; off sends at once.
    An answer to n workers takes the time of n datagrams."""
    downlink_limit_datagrams: int = Field(default=SWITCH["downlink_limit_datagrams"], ge=1)
    """Largest number of datagrams that wait for the downlink. The switch drops what comes on top
    and counts it as link_full."""
    uplink_ecn_depth_datagrams: OffInt = Field(default=SWITCH["uplink_ecn_depth_datagrams"], ge=1)
    """Backlog from which on the uplink marks departures as "congestion experienced" (ECN). Waiting
    updates count, and the departing one. off never marks. Only datagrams of senders with `ecn` =
    true can be marked. Receivers count marks in `io.ecn_marked`."""
    downlink_ecn_depth_datagrams: OffInt = Field(
        default=SWITCH["downlink_ecn_depth_datagrams"], ge=1
    )
    """The same backlog for the downlink, which marks the server's answers; off never marks."""
    answer_to: Literal["shared", "cluster"] = SWITCH["answer_to"]
    """Receivers of an answer. shared: the workers that contributed; cluster: their whole
    cluster."""
    admission: Annotated[str | None, NoneIs("off")] = None
    """SPEC.toml for `olaf verify`, which decides whether a new cluster may join. Its clusters need
    their `ids` on the wire; `[newcomer]` in it describes clusters that it does not list. off admits
    every cluster."""
    admission_timeout_ms: int = Field(default=SWITCH["admission_timeout_ms"], ge=1)
    """Time limit for the verifier's answer. Clusters are checked one at a time."""
    admission_unanswered: Literal["admit", "refuse"] = SWITCH["admission_unanswered"]
    """Answer at the time limit, or if the verifier is undecided."""
    admission_mismatch: Literal["say", "refuse"] = "say"
    """If the switch's slots or rate, or what a cluster does, is not what the file says: say it, or
    also refuse. refuse: the switch does not start with other slots or another rate, and no cluster
    joins while another has more workers, or sends more often, than the file says."""
    admission_refused_for_ms: int = Field(default=SWITCH["admission_refused_for_ms"], ge=0)
    """Time in which a refused cluster is refused again without asking the verifier."""
    active_ms: int = Field(default=SWITCH["active_ms"], ge=1)
    """A cluster counts as active in the queue status if it was heard within this time."""
    silent_after_ms: int = Field(default=SWITCH["silent_after_ms"], ge=1)
    """A peer is reported silent if it was not heard within this time."""
    max_parameters: int = Field(default=SWITCH["max_parameters"], ge=1)
    """Largest allowed model, in parameters. Default: 1 GiB of float32."""
    max_hops: int = Field(default=SWITCH["max_hops"], ge=1, le=255)
    """Largest number of switches on the path of an update or a join. A longer path is a loop, which
    is refused and reported."""
    core: OffInt = Field(default=SWITCH["core"], ge=0)
    """CPU core of the process; off leaves the choice to the system."""

    @model_validator(mode="after")
    def _one_pacer(self) -> Self:
        if self.uplink is not None and self.credits is not None:
            raise ValueError("uplink and credits are both set: an uplink has at most one pacer")
        return self

    def at(self, listen: str, upstream: str) -> SwitchSettings:
        """The settings of a switch with this queue at these addresses."""
        return SwitchSettings(listen=listen, upstream=upstream, **self.model_dump())


def _engines(value: Any) -> Any:
    return [name.strip() for name in value.split(",")] if isinstance(value, str) else value


class SwitchSettings(LeafSettings):
    """The aggregation switch: its engines, its addresses, its queue, and its uplink."""

    engines: Annotated[list[EngineName], BeforeValidator(_engines)] = Field(
        default=SWITCH["engines"], min_length=1
    )
    """Engines that the switch runs, each with a port and a thread of its own. queue merges updates
    on their way to a parameter server; reduce sums arrays of all workers and needs no server (see
    docs/all-reduce.md)."""
    listen: Address = SWITCH["listen"]
    """Address and port of the first engine, for workers and servers; port 0 picks a free port. Each
    next engine takes the next port. The default is loopback, so that no service is offered to a
    network by accident."""
    listen_at: dict[EngineName, Address] = Field(default=SWITCH["listen_at"])
    """Addresses of single engines: {"reduce" = "host:port"}."""
    upstream: Address = SWITCH["upstream"]
    """Address of the parameter server, or of the next switch on the way to it, for every job that
    `routes` does not name. Switches form chains and trees."""
    routes: dict[str, Address] = Field(default=SWITCH["routes"])
    """Servers of single jobs: {"2" = "host:port"}."""
    key_files: list[str] = Field(default=SWITCH["key_files"])
    """Files with keys (`olaf keys`), each for a job of its own or for any: only parties with such a
    key are let in. Without one everybody is, and the switch listens on loopback alone."""
    insecure: bool = SWITCH["insecure"]
    """Listen beyond this machine without a key, so that anybody there may take part."""
    metrics: OffText = SWITCH["metrics"]
    """Address (HOST:PORT) to serve metrics, health and a status page on, by HTTP; off serves none.
    An address that other machines reach needs metrics_token_file."""
    metrics_token_file: OffText = SWITCH["metrics_token_file"]
    """File with the token that readers of `metrics` send. Only its owner may read it."""
    jobs: list[TenantSettings] = Field(default=SWITCH["jobs"])
    """The jobs that are served, each a table with `job`, `key_file`, `max_parameters`,
    `max_workers`, `max_clusters` and `share` (docs/keys.md). An empty list
    serves every job, without limits."""
    switches_from: list[Address] = Field(default=SWITCH["switches_from"])
    """Addresses of the switches below. Joins that passed another switch are refused and counted as
    not_a_switch. Without a list each sender may be a switch: give a list where there are no
    keys."""
    pass_from: list[Address] = Field(default=SWITCH["pass_from"])
    """Addresses whose datagrams of other protocols go up to `upstream`, and those of other classes
    to `iswitch.upstream`, paced as all others. With an empty list such datagrams are dropped and
    counted."""
    reduce: ReduceSettings = ReduceSettings()
    """The engine `reduce`, if it is among the engines."""
    iswitch: IswitchSettings = IswitchSettings()
    """The engine `iswitch`, if it is among the engines."""
    trio: TrioSettings = TrioSettings()
    """The engine `trio`, if it is among the engines."""
    atp: AtpSettings = AtpSettings()
    """The engine `atp`, if it is among the engines."""
    atp_server: AtpServerSettings = AtpServerSettings()
    """The engine `atp_server`, if it is among the engines."""

    @model_validator(mode="after")
    def _each_engine_once(self) -> Self:
        for name in self.engines:
            if self.engines.count(name) > 1:
                raise ValueError(f"engines names {name} twice: each engine runs once")
        if "queue" not in self.engines and self.upstream != SWITCH["upstream"]:
            raise ValueError(
                f"upstream = {self.upstream!r} is for the engine queue, which engines = "
                f"{self.engines} does not name; the switch above reduce is reduce.upstream "
                "(--upstream reduce=HOST:PORT)"
            )
        for name in self.listen_at:
            if name not in self.engines:
                raise ValueError(
                    f"listen_at.{name} is set, but engines = {self.engines} has no {name}: add it"
                )
        return self

    def to_core(self) -> str:
        """The JSON that `olaf._olaf.Switch` takes."""
        fields = self.model_dump(exclude={"admission", "admission_mismatch"})
        fields["key_files"] = key_files(self.key_files)
        if self.admission is None:
            del fields["admission_timeout_ms"]
        for table in (fields, *(fields[name] for name in SUMMING)):
            for key in ("uplink", "downlink", "link"):
                rate = table.pop(key, None)
                if rate is not None:
                    from olaf._olaf import parse_rate

                    table[f"{key}_bps"] = parse_rate(rate)
        return json.dumps(fields)

    def to_admission(self) -> dict[str, Any] | None:
        """Fields of `olaf.jobs.admission.Policy`, or None without admission.

        Raises ConfigurationError if the file cannot be used.
        """
        if self.admission is None:
            return None
        from olaf.jobs.policy import policy_of

        policy = policy_of(
            Path(self.admission),
            slots=self.slots,
            uplink=self.uplink,
            mismatch=self.admission_mismatch,
            timeout_s=self.admission_timeout_ms / 1000,
            unanswered=self.admission_unanswered,
        )
        return dataclasses.asdict(policy)


class WorkerSettings(Section):
    """One worker: the job that it joins, and when it sends and waits."""

    switch: Address = SWITCH["listen"]
    """Address of the switch, or of the server if there is no switch."""
    job: int = Field(default=JOB, ge=0, le=LARGEST_ID)
    """Number of the job."""
    cluster: int = Field(default=0, ge=0, le=LARGEST_ID)
    """Number of this worker's cluster; the workers of a cluster share a slot of the queue."""
    id: DrawnInt = Field(default=None, ge=0, le=LARGEST_ID)
    """Number of this worker, unique in the job; drawn picks a random one."""
    updates: OffInt = Field(default=None, ge=1)
    """Stop after this number of updates; off continues until stopped."""
    seed: int = Field(default=0, ge=0)
    """Random seed of environment, policy and first weights, combined with the id."""
    on_refused: Literal["continue", "reset"] = LoopConfig.on_refused
    """After an update without a newer model in return: continue from the worker's own weights, or
    reset to the last model received."""
    patience_s: float = Field(default=LoopConfig.patience_s, ge=0)
    """Longest wait for the answer to an update before the worker collects again; 0 never waits. On
    a fast network a short wait avoids a turn on an old model. A worker does not wait for an update
    that transmission control holds back, since it has no answer."""
    waiting_share: float = Field(default=LoopConfig.waiting_share, ge=0, le=1)
    """Largest share of a worker's time that patience_s may cost. On a narrow uplink the worker then
    continues with its present model."""
    wait_for_model_s: float = Field(default=LoopConfig.wait_for_model_s, ge=0)
    """For a server that aggregates in rounds: wait this long for the model, then report it and
    continue without. 0 never waits (asynchronous). If it is not set, `olaf train` uses three times
    `server.aggregate_within` for rounds."""
    weight: float = Field(default=LoopConfig.weight, gt=0)
    """Weight of this worker's updates in a merge."""
    push_every: Literal["pass", "turn"] = LoopConfig.push_every
    """pass: each pass over the collected steps starts from the newest model and is its own update,
    unless the last update is still unanswered. turn: all passes of a turn are one update. If it is
    not set, `olaf train` uses turn unless server.aggregate is each."""
    turns_per_push: int = Field(default=LoopConfig.turns_per_push, ge=1)
    """Push less often: the sum of this number of turns is one update. Between two pushes a worker
    continues from its own weights and takes no model, whatever push_every says."""
    join_timeout_s: float = Field(default=20.0, gt=0)
    """Time limit for joining; then the worker gives up and names the peer."""
    flush_timeout_s: float = Field(default=2.0, ge=0)
    """Time limit at the end for the last updates to leave."""
    keepalive_ms: int = Field(default=WORKER["keepalive_ms"], ge=1)
    """Interval between heartbeats while the worker has nothing to push."""
    silent_after_ms: int = Field(default=WORKER["silent_after_ms"], ge=1)
    """A peer is reported silent if it was not heard within this time."""
    ecn: bool = WORKER["ecn"]
    """Send updates as ECN-capable, so that a congested switch may mark them (see
    switch.uplink_ecn_depth_datagrams). The worker counts marks on answers, and does not slow
    down."""
    segment_lanes: OffInt = Field(default=WORKER["segment_lanes"], ge=1)
    """Parameters per segment, the same for all workers of a job. off uses 2,208, which fit a
    9,000-byte frame, or the number that fits mtu."""
    transmission: Literal["off", "paper", "fair"] = WORKER["transmission"]
    """When to send. off: every update at once; paper: with the control of OLAF §5; fair: one update
    of each cluster per round of the slowest queue, from whichever worker is first.
    `server.aggregate` = "round" requires off, since it waits for every worker's update."""
    unsent: Literal["carry", "discard", "retry"] = WORKER["unsent"]
    """An update that is not sent joins the next one, is discarded, or is decided again later."""
    threshold_ms: int = Field(default=WORKER["threshold_ms"], ge=1)
    """For the paper's control: age at which feedback is obsolete."""
    slope: str = WORKER["slope"]
    """For the paper's control: slope of the sending probability beyond the threshold. urgency:
    1/threshold; fairness: the threshold in seconds; or a number per second."""
    retry_ms: int = Field(default=WORKER["retry_ms"], ge=1)
    """For unsent = "retry": decide again when this time has passed."""
    key_file: OffText = WORKER["key_file"]
    """File with the key of the job (`olaf keys`). off uses OLAF_KEY_FILE of the environment, or
    no key."""
    metrics: OffText = WORKER["metrics"]
    """Address (HOST:PORT) to serve metrics, health and a status page on, by HTTP; off serves none.
    `olaf train` does not serve those of its workers.
    An address that other machines reach needs metrics_token_file."""
    metrics_token_file: OffText = WORKER["metrics_token_file"]
    """File with the token that readers of `metrics` send. Only its owner may read it."""
    mtu_bytes: OffInt = Field(default=WORKER["mtu_bytes"], ge=576)
    """Largest IP packet on the path to the switch, so that no segment is fragmented; off does not
    limit it."""


class CompareSettings(Section):
    """FIFO, OLAF and two baselines on the same narrow uplink with the same seeds."""

    seeds: list[int] = Field(default=[0, 1], min_length=1)
    """Random seeds; each arm runs once per seed. An interval needs five: [0, 1, 2, 3, 4]."""
    queues: list[QueueName] = Field(default=["fifo", "olaf"], min_length=1)
    """Queue disciplines in the order of their runs, see `switch.queue`."""
    baselines: list[Literal["push-less-often", "tcp"]] = Field(default=["push-less-often", "tcp"])
    """Baselines that run after the queues. push-less-often: FIFO, and a worker pushes the sum of
    several turns; tcp: a plain TCP parameter server without a switch, behind a link of the same
    rate."""
    turns_per_push: OffInt = Field(default=None, ge=1)
    """For push-less-often: turns that a worker sums for one push. off uses the number at which it
    needs no more of the uplink than OLAF's run of the same seed."""
    uplink: OffRate = "200kbit"
    """Bandwidth of the uplink in all runs. 200kbit carries 2.8 updates per second of the default
    network, while eight workers on two cores push 30 to 70: FIFO loses nine in ten."""
    slots: int = Field(default=8, ge=1)
    """Number of slots of the queue in all runs: more than clusters, so that OLAF need not drop, and
    enough for updates to grow old in FIFO (OLAF §8.1 has 8)."""
    clusters: int = Field(default=2, ge=1)
    """Number of clusters in all runs."""
    time_limit_s: OffFloat = Field(default=90.0, gt=0)
    """Stop each run after this training time, whether it reached the reward or not."""
    out: Annotated[str | None, NoneIs("new")] = None
    """Folder for compare.json, compare.html and one folder per run. new makes
    runs/<time>-compare-<environment> and points the link runs/latest-compare to it."""


def _section_of(kind: type[Any], name: str, doc: str, leave_out: set[str]) -> type[Section]:
    """A section with the fields, defaults and field docstrings of a dataclass."""
    hints = get_type_hints(kind)
    docs = _field_docs(kind)
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in leave_out:
            continue
        hint = hints[field.name]
        if type(None) in getattr(hint, "__args__", ()):
            hint = Annotated[hint, NoneIs("auto")]
        if field.default_factory is not dataclasses.MISSING:
            default = Field(default_factory=field.default_factory, description=docs[field.name])
        else:
            default = Field(field.default, description=docs.get(field.name))
        fields[field.name] = (hint, default)

    def check(section: Section) -> Section:
        try:
            kind(**dict(section)).check(section.model_fields_set)
        except LearnerError as error:
            raise ValueError(str(error)) from None
        return section

    checks: dict[str, Any] = {"check": model_validator(mode="after")(check)}
    made: type[Section] = create_model(
        name,
        __base__=Section,
        __doc__=doc,
        __validators__=checks,
        **fields,
    )
    return made


def _field_docs(kind: type[Any]) -> dict[str, str]:
    """The docstring below each field of a class."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    docs: dict[str, str] = {}
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for statement, following in itertools.pairwise(statements):
        if not (isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name)):
            continue
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            docs[statement.target.id] = str(following.value.value)
    return docs


if TYPE_CHECKING:

    class LearnerSettings(Section):
        """The fields of `LearnerConfig`."""

        environment: str
        learner: str
        gamma: float
        steps_per_update: int
        episodes_per_update: int
        schedule: str
        schedule_steps: int | None

else:
    LearnerSettings = _section_of(
        LearnerConfig,
        "LearnerSettings",
        "Environment and algorithm of a worker (the fields of `olaf.rl.LearnerConfig`).",
        leave_out={"seed"},
    )


class Settings(Section):
    """The whole configuration of `olaf`, one table per role."""

    train: TrainSettings = TrainSettings()
    worker: WorkerSettings = WorkerSettings()
    learner: LearnerSettings = LearnerSettings.model_validate({})
    switch: SwitchSettings = SwitchSettings()
    leaf: LeafSettings = LeafSettings()
    server: ServerSettings = ServerSettings()
    compare: CompareSettings = CompareSettings()
    tcp: TcpSettings = TcpSettings()
    ray: RaySettings = RaySettings()
    slurm: SlurmSettings = SlurmSettings()

    @model_validator(mode="after")
    def _tcp_is_plain(self) -> Self:
        check_transport(self)
        return self

    @model_validator(mode="after")
    def _schedules_end(self) -> Self:
        learner = self.learner
        ends = (learner.schedule_steps, self.train.steps)
        if learner.schedule != "constant" and ends == (None, None):
            raise ValueError(
                f"`learner.schedule` = {learner.schedule!r} needs an end, in environment steps of "
                "all workers: give `--steps N`, or `learner.schedule_steps`"
            )
        return self

    @model_validator(mode="after")
    def _rounds_are_sent(self) -> Self:
        if self.server.aggregate == "round" and self.worker.transmission != "off":
            raise ValueError(
                f"`worker.transmission` = {self.worker.transmission!r} does not go with "
                "`server.aggregate` = 'round': a round waits for one update of every worker, and "
                "transmission control holds updates back; set transmission to off, or aggregate "
                "to each or periodic"
            )
        return self

    @model_validator(mode="after")
    def _rounds_are_complete(self) -> Self:
        gates = {"switch": self.switch.gate, "leaf": self.leaf.gate}
        gate = next((name for name, gate in gates.items() if gate is not None), None)
        if self.server.aggregate == "round" and gate is not None:
            raise ValueError(
                f"`{gate}.gate` = {gates[gate]:g} does not go with `server.aggregate` = 'round': a "
                "round waits for one update of every worker, and the gate of a switch filters "
                "updates; set the gate to off, or aggregate to each or periodic"
            )
        return self
