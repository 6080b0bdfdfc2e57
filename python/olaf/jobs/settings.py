"""The configuration of a job and of each role: typed, checked once, explained field by field.

A file says times, sizes and rates with their units (``silent_after = "2s"``); a field holds a plain
number, in the unit that its name ends in (``silent_after_ms``). See `olaf.units`.
Reading files and overrides is in `olaf.jobs.reading`.
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

from olaf import extras
from olaf.jobs import queues
from olaf.jobs.admission import Policy
from olaf.jobs.place_settings import On, RaySettings, SlurmSettings
from olaf.jobs.section import Explained, NoneIs, Section
from olaf.jobs.tcp_settings import TcpSettings, check_transport
from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.worker_loop import LoopConfig

LARGEST_ID = 2**32 - 2
"""Ids are 32 bits on the wire, and the last one stands for all workers."""

JOB = 1
"""The job id used where one job is all there is."""


def _address(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    bare = value.removeprefix("udp://")
    host, _, port = bare.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ValueError("write it HOST:PORT, for IPv6 [HOST]:PORT")
    return bare


def _rate(value: Any) -> Any:
    if isinstance(value, str):
        from olaf._olaf import parse_rate

        parse_rate(value)
    return value


Address = Annotated[str, BeforeValidator(_address)]
Rate = Annotated[str, BeforeValidator(_rate)]
QueueName = Annotated[str, AfterValidator(queues.known), Explained(queues.EXPLAINED)]
OffFloat = Annotated[float | None, NoneIs("off")]
OffInt = Annotated[int | None, NoneIs("off")]
OffText = Annotated[str | None, NoneIs("off")]
OffRate = Annotated[Rate | None, NoneIs("off")]
DrawnInt = Annotated[int | None, NoneIs("drawn")]


class LeafSettings(Section):
    """The queue and uplink of each leaf switch (`train.leaves`), which the switch is above."""

    queue: QueueName = "olaf"
    """Discipline of the uplink's queue:"""
    slots: int = Field(default=8, ge=1)
    """Segments the queue holds, the one on the wire included. 8 as in the paper's testbed; `olaf
    train` takes 8 for each segment of the model where nothing is set."""
    gate: OffFloat = None
    """Reward gate, in units of reward: an update that is better than the waiting one by more than
    this replaces it, one that is worse by more is filtered, and others merge. off
    merges always, which learned best."""
    uplink: OffRate = None
    """Rate of the link towards the server, of UDP payload, as tc writes it ("1.9mbit"); off
    sends at once. At most one of uplink and credits."""
    credits: OffInt = Field(default=None, ge=1)
    """Updates that may be unanswered towards a server; off is no limit. Adapts to a slow server
    without knowing its rate."""
    credit_timeout_ms: int = Field(default=1000, ge=1)
    """An unanswered credit comes back after this time, so that a lost answer stops nothing."""
    answer_to: Literal["shared", "cluster"] = "shared"
    """Who hears an answer: the workers that shared in the update, or their whole cluster."""
    admission: Annotated[str | None, NoneIs("off")] = None
    """Ask the verifier before a new cluster joins: a SPEC.toml of `olaf verify` whose clusters have
    their `ids` on the wire; `[newcomer]` in it stands for clusters that it does not list. off lets
    every cluster in."""
    admission_timeout_ms: int = Field(default=5000, ge=1)
    """How long an answer may take; clusters are asked about one at a time."""
    admission_unanswered: Literal["admit", "refuse"] = "refuse"
    """The answer when time runs out, or the verifier does not know."""
    admission_refused_for_ms: int = Field(default=10_000, ge=0)
    """How long a refused cluster is refused again without asking."""
    active_ms: int = Field(default=1000, ge=1)
    """A cluster heard within this time counts as active in the queue status."""
    silent_after_ms: int = Field(default=2000, ge=1)
    """A peer that is not heard within this time is reported silent."""
    max_parameters: int = Field(default=268_435_456, ge=1)
    """Largest model a job may announce, in parameters: 1 GiB of float32."""
    max_hops: int = Field(default=16, ge=1, le=255)
    """Switches that an update or a join may pass: more are a circle, which is refused and named."""
    core: OffInt = Field(default=None, ge=0)
    """Processor core to run on; off leaves it to the system."""

    @model_validator(mode="after")
    def _one_pacer(self) -> Self:
        if self.uplink is not None and self.credits is not None:
            raise ValueError("uplink and credits are both set: an uplink has at most one pacer")
        return self

    def at(self, listen: str, upstream: str) -> SwitchSettings:
        """A switch with this queue at those addresses."""
        return SwitchSettings(listen=listen, upstream=upstream, **self.model_dump())


class SwitchSettings(LeafSettings):
    """The aggregation switch: who talks to it, its queue, and how fast its uplink is."""

    listen: Address = "127.0.0.1:5555"
    """Address and port for workers and servers alike; port 0 picks a free one. Loopback until
    told otherwise, so that nothing is offered to a network by accident."""
    upstream: Address = "127.0.0.1:5556"
    """The parameter server of every job that `routes` does not name, or the next switch on the way
    to it: switches form chains and trees."""
    routes: dict[str, Address] = Field(default={})
    """Servers of single jobs, {"2" = "host:port"}."""

    def to_core(self) -> str:
        """The JSON that `olaf._olaf.Switch` takes."""
        fields = self.model_dump(exclude={"uplink", "admission"})
        if self.admission is None:
            del fields["admission_timeout_ms"]
        if self.uplink is not None:
            from olaf._olaf import parse_rate

            fields["uplink_bps"] = parse_rate(self.uplink)
        return json.dumps(fields)

    def to_admission(self) -> dict[str, Any] | None:
        """Fields of `olaf.jobs.admission.Policy`; None where nobody is asked.

        Raises ConfigurationError where the file cannot be used.
        """
        if self.admission is None:
            return None
        extras.need("verify", "z3", what="`switch.admission`")
        from olaf.verify.ask import read_policy

        file = Path(self.admission)
        read_policy(file)
        timeout_s = self.admission_timeout_ms / 1000
        unanswered = self.admission_unanswered
        policy = Policy(str(file.resolve()), timeout_s=timeout_s, unanswered=unanswered)
        return dataclasses.asdict(policy)


class ServerSettings(Section):
    """The parameter server: the model and the rule by which updates change it."""

    listen: Address = "127.0.0.1:5556"
    """Address and port for the switch (or for workers that have none); port 0 picks a free one."""
    rule: Literal["delta", "paper-literal"] = "delta"
    """delta applies every update; paper-literal only those whose reward beats the best so far,
    and freezes (measured: 4 to 24 of 1,600 applied)."""
    learning_rate: float = Field(default=1.0, gt=0)
    """Every update is multiplied by this number. 1 applies a push as it is; the paper has 0.001.
    Workers learn the factor when they join."""
    step: Literal["overlap", "mean", "sum"] = "overlap"
    """How far a merge of n updates moves the model. overlap: by n times their mean, scaled by
    k^-staleness_power, where k is the number of workers that push, or of the updates that overlap
    (those of the merge, and those that changed the model since the one they were computed on),
    whichever is more. mean and sum: by their mean, or n times that, scaled by
    (1 + versions behind)^-staleness_power."""
    gate: Literal["none", "best", "recent"] = "none"
    """Reward gate of the delta rule: refuse below the best, or the recent, reward."""
    gate_margin: float = Field(default=0.0, ge=0)
    """How far below the gate's reference a reward may be, in units of reward."""
    staleness_power: float = Field(default=0.7, ge=0)
    """While k workers push, an update counts k^-power (see step); 0 counts all alike. 0.7 is for
    updates of whole turns, which are a round of the others old and overshoot together. Where
    nothing is set, `olaf train` takes 0.33 for workers that push each pass (worker.push_every):
    their updates are fresher."""
    aggregate: Literal["each", "periodic", "round"] = "each"
    """When updates change the model: each when it comes, as OLAF has it; periodic, a number of
    them together while their workers go on; round, one of every worker that is here, for which
    all wait (synchronous training)."""
    aggregate_updates: OffInt = Field(default=8, ge=1)
    """periodic: this number of contributions changes the model together; off
    leaves it to aggregate_within."""
    aggregate_ms: int = Field(default=2000, ge=1)
    """periodic: apply what there is when this time has passed since the first of it. round: end a
    round when this time has passed since its first contribution; the workers that are missing are
    named."""
    keep_versions: int = Field(default=4, ge=1)
    """Model versions kept for workers that ask for a missing segment."""
    segment_lanes: OffInt = Field(default=None, ge=1)
    """Parameters in a segment, where the server is to insist; off takes the first worker's."""
    silent_after_ms: int = Field(default=2000, ge=1)
    """A peer that is not heard within this time is reported silent."""
    round_ms: int = Field(default=50, ge=1)
    """Models of several segments: answer a cluster within this time after its first unanswered
    segment."""
    core: OffInt = Field(default=None, ge=0)
    """Processor core to run on; off leaves it to the system."""
    checkpoint: OffText = None
    """File (.npz) that keeps the model and all that a server needs to go on with the job; a server
    that starts takes it up. {job} in the name stands for the job. olaf train keeps its own in the
    run's folder, checkpoint.npz."""
    checkpoint_every_ms: int = Field(default=30_000, ge=1)
    """How often the checkpoint is written while anything changes. olaf train: 10s."""
    fresh: bool = False
    """Begin anew although the checkpoint exists; the file is kept as FILE.before-1, -2 or so on."""

    def to_core(self) -> str:
        """The JSON that `olaf._olaf.Server` takes."""
        return self.model_dump_json()


class WorkerSettings(Section):
    """One worker: where it joins, and how it behaves towards the network."""

    switch: Address = "127.0.0.1:5555"
    """The switch to join through (or the server, without a switch)."""
    job: int = Field(default=JOB, ge=0, le=LARGEST_ID)
    """The job to take part in."""
    cluster: int = Field(default=0, ge=0, le=LARGEST_ID)
    """The cluster this worker belongs to; clusters share a slot of the queue."""
    id: DrawnInt = Field(default=None, ge=0, le=LARGEST_ID)
    """This worker's id, unique in the job; drawn picks one at random."""
    updates: OffInt = Field(default=None, ge=1)
    """Stop after this number of updates; off goes on until stopped."""
    seed: int = Field(default=0, ge=0)
    """Seed of the environment, the policy and the first weights, together with the id."""
    on_refused: Literal["continue", "reset"] = LoopConfig.on_refused
    """After an update that brought no newer model: continue from the own weights, or reset to the
    last model received."""
    patience_s: float = Field(default=LoopConfig.patience_s, ge=0)
    """How long to wait for the answer to an update before collecting again; 0 never waits. A
    moment on a quick network spares a turn on an old model. An update that transmission control
    holds back is not waited for: it has no answer."""
    waiting_share: float = Field(default=LoopConfig.waiting_share, ge=0, le=1)
    """Largest share of a worker's time that patience_s may cost. On a narrow uplink the worker then
    goes on with what it has."""
    wait_for_model_s: float = Field(default=LoopConfig.wait_for_model_s, ge=0)
    """Where the server aggregates in rounds: how long to wait for the model before saying so and
    going on without. 0 is asynchronous: nobody waits. `olaf train` takes three times
    `server.aggregate_within` for rounds where nothing is set."""
    weight: float = Field(default=LoopConfig.weight, gt=0)
    """Weight of this worker's updates in a merge."""
    push_every: Literal["pass", "turn"] = LoopConfig.push_every
    """pass: each pass over the collected steps begins from the newest model and is an update of its
    own, unless the last update is still unanswered. turn: all passes of a turn are one update.
    `olaf train` takes it where server.aggregate is not each and nothing is set."""
    turns_per_push: int = Field(default=LoopConfig.turns_per_push, ge=1)
    """Push less often: the summed change of this number of turns as one update. Between two pushes
    a worker goes on from its own weights and takes no model, whatever push_every says."""
    join_timeout_s: float = Field(default=20.0, gt=0)
    """How long to try to join before giving up and naming the peer."""
    flush_timeout_s: float = Field(default=2.0, ge=0)
    """How long to wait at the end for the last updates to leave."""
    keepalive_ms: int = Field(default=500, ge=1)
    """How often to say that this worker lives, while it has nothing to push."""
    silent_after_ms: int = Field(default=2000, ge=1)
    """Report a peer silent that is not heard within this time."""
    segment_lanes: OffInt = Field(default=None, ge=1)
    """Parameters in a segment, alike for all workers of a job; off is 2,208, which fit a
    9,000-byte frame, or what fits mtu."""
    transmission: Literal["off", "paper", "fair"] = "off"
    """When to send: off sends every update at once; paper is the control of OLAF §5; fair sends one
    update of each cluster a round of the slowest queue, whoever of it is first. Only off goes with
    `server.aggregate` = "round", which waits for every worker's update."""
    unsent: Literal["carry", "discard", "retry"] = "carry"
    """An update that is not sent joins the next one, is given up, or is decided on anew."""
    threshold_ms: int = Field(default=400, ge=1)
    """Of the paper's control: feedback older than this is obsolete."""
    slope: str = "urgency"
    """Of the paper's control: how fast the probability rises from there on: urgency (1/threshold),
    fairness (the threshold in seconds), or a number, per second."""
    retry_ms: int = Field(default=10, ge=1)
    """Of unsent = "retry": decide anew when this time has passed."""
    mtu_bytes: OffInt = Field(default=None, ge=576)
    """The largest IP packet of the path to the switch, so that no segment is cut up; off does
    not look."""


class TrainSettings(Section):
    """A training run: how many processes, until when, and what it waits for."""

    on: On = "local"
    """Where the processes run: local is this machine; ray is a Ray cluster, one of this machine's
    own if no address follows (ray:auto, ray:HOST:PORT, ray:ray://HOST:10001); slurm submits a
    batch job; srun is for inside one: the nodes of the allocation."""
    workers: int = Field(default=8, ge=1, le=1024)
    """Worker processes."""
    clusters: int = Field(default=2, ge=1)
    """Clusters the workers are dealt to in turn: worker w is in cluster w mod clusters. Where
    nothing is set, as many as there are leaves, at least 2, and never more than workers."""
    leaves: int = Field(default=0, ge=0, le=256)
    """Leaf switches between the workers and the switch, each with its share of the clusters:
    cluster c is at leaf c mod leaves, whose queue is that of `[leaf]`. 0: one switch for all."""
    updates: OffInt = Field(default=16000, ge=1)
    """Stop after this number of updates of all workers together; off sets no limit."""
    until_reward: Annotated[float | Literal["solved"] | None, NoneIs("off")] = "solved"
    """Stop at this mean reward of the last `reward_window` training episodes over all workers;
    solved takes the threshold the environment declares, if it has one; off never stops for it."""
    reward_window: int = Field(default=100, ge=1)
    """Finished episodes the mean reward is taken over; it counts once that number has ended."""
    time_limit_s: OffFloat = Field(default=None, gt=0)
    """Stop when this training time has passed; off sets no limit."""
    seed: int = Field(default=0, ge=0)
    """Seed of the run; every process derives its own from it."""
    local: bool = False
    """Train in this one process, without workers, switch, server or network: the same learner in
    the same environment, as a baseline."""
    transport: Literal["udp", "tcp"] = "udp"
    """udp: Olaf's server, switch and workers. tcp: a plain TCP parameter server without a switch,
    as a baseline; a relay between it and the workers has the rate of `switch.uplink`."""
    against: Annotated[Literal["local"] | None, NoneIs("off")] = None
    """local: train in one process as well, after the run, with the same learner, seed and limits;
    the last table sets the two side by side."""
    out: Annotated[str | None, NoneIs("new")] = None
    """Folder of the run, which must not hold a run yet; new makes runs/<time>-<environment> and
    lets the link runs/latest show it."""
    wandb: Annotated[str | None, NoneIs("off")] = None
    """Project of Weights & Biases to log to; off does not. Needs the extra `wandb`."""
    record: Annotated[str | None, NoneIs("off")] = None
    """File for who pushed when with which reward, as `olaf replay` reads it; off writes none. A
    resumed run has a file for each session: trace.csv, trace-2.csv, .."""
    every_s: float = Field(default=0.5, gt=0)
    """How often the switch and the server report."""
    start_timeout_s: float = Field(default=120.0, gt=0)
    """How long each role may take to be ready, and the first update to come. Eight workers that
    import torch for the first time take a minute of two cores; who dies is noticed at once."""
    stall_timeout_s: float = Field(default=60.0, gt=0)
    """Give up, naming who is silent, after this time without any update from any worker."""
    drain_timeout_s: float = Field(default=5.0, ge=0)
    """How long after the last update the queue may take to empty."""
    stop_timeout_s: float = Field(default=10.0, gt=0)
    """How long a worker may take to end the turn it is in, when asked to stop."""
    restarts: int = Field(default=5, ge=0)
    """How often in a row a process that dies is started again before it is given up. A process that
    ran for 30 seconds behaved well: its earlier deaths no longer count."""
    restart_delay_s: float = Field(default=0.2, ge=0)
    """Pause before the first restart. It doubles with each death in a row, up to five seconds."""

    @model_validator(mode="after")
    def _clusters_follow(self) -> Self:
        """One worker, or many leaves, need no second option.

        What follows does not count as given: it follows again where a run is resumed.
        """
        if "clusters" not in self.model_fields_set:
            self.__dict__["clusters"] = min(self.workers, max(2, self.leaves))
        return self

    @property
    def folder(self) -> Path:
        """The folder of a run that has one: `olaf.runs.running` chooses where nobody did."""
        if self.out is None:
            raise ValueError("train.out is not set: a run has a folder once it is started")
        return Path(self.out)

    @model_validator(mode="after")
    def _one_place(self) -> TrainSettings:
        if self.local and self.against is not None:
            raise ValueError("local and against = 'local' are both set: the run is the baseline")
        if self.local and self.on != "local":
            raise ValueError(
                f"local and on = {self.on!r} are both set: a run is in this one process or on a "
                "cluster"
            )
        return self

    @model_validator(mode="after")
    def _clusters_fit(self) -> TrainSettings:
        if self.clusters > self.workers:
            raise ValueError(
                f"clusters ({self.clusters}) is more than workers ({self.workers}): "
                "a cluster needs a worker"
            )
        if self.leaves > self.clusters:
            raise ValueError(
                f"leaves ({self.leaves}) is more than clusters ({self.clusters}): "
                "a leaf needs a cluster"
            )
        return self


class CompareSettings(Section):
    """FIFO against OLAF, and two baselines, on the same constrained uplink with the same seeds."""

    seeds: list[int] = Field(default=[0, 1], min_length=1)
    """Each seed is run once with each arm. An interval needs five: [0, 1, 2, 3, 4]."""
    queues: list[QueueName] = Field(default=["fifo", "olaf"], min_length=1)
    """Disciplines in the order they are run, of those of `switch.queue`."""
    baselines: list[Literal["push-less-often", "tcp"]] = Field(default=["push-less-often", "tcp"])
    """What a sceptic would do instead, after the queues: push-less-often is FIFO, and a worker
    pushes the summed change of several turns; tcp is a plain TCP parameter server without a switch,
    behind a link of the same rate."""
    turns_per_push: OffInt = Field(default=None, ge=1)
    """Turns of a push in push-less-often; off takes the number at which it needs no more of the
    uplink than OLAF's run of the same seed did."""
    uplink: OffRate = "200kbit"
    """Rate of the uplink in all. 200kbit carries 2.8 of the default network's updates a second,
    where eight workers on two cores push thirty to seventy: nine in ten are lost in FIFO."""
    slots: int = Field(default=8, ge=1)
    """Slots of the queue in all: more than clusters, so that OLAF need not drop, and long enough
    for FIFO to grow old in (OLAF §8.1 has 8)."""
    clusters: int = Field(default=2, ge=1)
    """Clusters in all."""
    time_limit_s: OffFloat = Field(default=90.0, gt=0)
    """Stop each run when this training time has passed, reward reached or not."""
    out: Annotated[str | None, NoneIs("new")] = None
    """Folder for compare.json, compare.html and one folder a run; new makes
    runs/<time>-compare-<environment> and lets the link runs/latest-compare show it."""


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
        fields[field.name] = (hint, Field(field.default, description=docs.get(field.name)))

    def check(section: Section) -> Section:
        try:
            kind(**dict(section)).check()
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
        """As `LearnerConfig`, field by field."""

        environment: str
        learner: str
        gamma: float
        steps_per_update: int
        episodes_per_update: int

else:
    LearnerSettings = _section_of(
        LearnerConfig,
        "LearnerSettings",
        "What a worker plays and how it learns (fields of `olaf.rl.LearnerConfig`).",
        leave_out={"seed"},
    )


class Settings(Section):
    """Everything `olaf` can be told, a table a role."""

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
    def _rounds_are_sent(self) -> Self:
        if self.server.aggregate == "round" and self.worker.transmission != "off":
            raise ValueError(
                f"`worker.transmission` = {self.worker.transmission!r} does not go with "
                "`server.aggregate` = 'round': a round waits for one update of every worker, and "
                "transmission control holds updates back; set transmission to off, or aggregate "
                "to each or periodic"
            )
        return self
