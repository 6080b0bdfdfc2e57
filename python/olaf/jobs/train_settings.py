"""The settings of a training run: its processes, its end, and its time limits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from olaf.jobs.fields import OffFloat, OffInt, OffText
from olaf.jobs.place_settings import On
from olaf.jobs.section import NoneIs, Section


class TrainSettings(Section):
    """A training run: its processes, its end, and its time limits."""

    on: On = "local"
    """Where the processes run. local: this machine; ray: a Ray cluster, started on this machine if
    no address follows (ray:auto, ray:HOST:PORT, ray:ray://HOST:10001); slurm: a batch job that is
    submitted; srun: the nodes of the Slurm allocation that this command runs in."""
    workers: int = Field(default=8, ge=1, le=1024)
    """Number of worker processes."""
    clusters: int = Field(default=2, ge=1)
    """Number of clusters; worker w is in cluster w mod clusters. If it is not set: one per leaf, at
    least 2, and at most one per worker."""
    leaves: int = Field(default=0, ge=0, le=256)
    """Number of leaf switches between the workers and the switch. Cluster c is at leaf c mod
    leaves; `[leaf]` describes each leaf's queue. 0: one switch for all."""
    updates: OffInt = Field(default=16000, ge=1)
    """Stop after this number of updates of all workers together; off sets no limit. A run with
    `steps` and without `updates` has no limit on its updates."""
    steps: OffInt = Field(default=None, ge=1)
    """Stop after this number of environment steps of all workers together, over all sessions of the
    run; off sets no limit. Workers report whole turns, so that a few turns may come on top."""
    until_reward: Annotated[float | Literal["solved"] | None, NoneIs("off")] = "solved"
    """Stop at this mean reward of the last `reward_window` training episodes of all workers. solved
    uses the environment's threshold, if it has one; off never stops for the reward."""
    reward_window: int = Field(default=100, ge=1)
    """Number of finished episodes in the mean reward; before that there is no mean."""
    time_limit_s: OffFloat = Field(default=None, gt=0)
    """Stop after this training time; off sets no limit."""
    evaluate_every: OffInt = Field(default=None, ge=1)
    """Number of updates of all workers between two evaluations of the model. The last model is
    evaluated, too, and the best one is kept as best.npz. off does not evaluate."""
    evaluate_episodes: int = Field(default=10, ge=1)
    """Episodes of an evaluation: as many with the most likely actions, and as many with sampled
    ones. Their seeds follow from `seed`, and no episode of training has them."""
    evaluate_steps: int = Field(default=10000, ge=1)
    """Steps after which an episode of an evaluation is cut."""
    evaluate_timeout_s: float = Field(default=120.0, gt=0)
    """Time limit for an evaluation."""
    key_file: OffText = None
    """File with the key of the job (`olaf keys`). The run hands the key to all its processes, on
    other machines too. off uses OLAF_KEY_FILE of the environment. Without it, a run whose roles
    listen beyond this machine makes a key of its own."""
    insecure: bool = False
    """Listen beyond this machine without a key, so that anybody there may take part."""
    seed: int = Field(default=0, ge=0)
    """Random seed of the run; every process derives its own seed from it."""
    local: bool = False
    """Train in this one process, without workers, switch, server or network, as a baseline. Learner
    and environment are the same."""
    transport: Literal["udp", "tcp"] = "udp"
    """udp: Olaf's server, switch and workers. tcp: a plain TCP parameter server without a switch,
    as a baseline. A relay before it limits the rate to `switch.uplink`."""
    against: Annotated[Literal["local"] | None, NoneIs("off")] = None
    """local: after the run, also train in one process with the same learner, seed and limits; the
    final table shows both."""
    out: Annotated[str | None, NoneIs("new")] = None
    """Folder of the run; it must not hold a run yet. new makes runs/<time>-<environment> and points
    the link runs/latest to it."""
    wandb: Annotated[str | None, NoneIs("off")] = None
    """Project of Weights & Biases to log to; off does not log. Needs the extra `wandb`."""
    record: Annotated[str | None, NoneIs("off")] = None
    """File that records each push with its time, worker and reward, for `olaf replay`; off writes
    none. A resumed run writes one file per session: trace.csv, trace-2.csv, .."""
    every_s: float = Field(default=0.5, gt=0)
    """Interval between reports of the switch and the server."""
    start_timeout_s: float = Field(default=120.0, gt=0)
    """Time limit for each role to be ready, and for the first update. Eight workers that import
    torch for the first time take a minute on two cores. A process that dies is noticed at once."""
    stall_timeout_s: float = Field(default=60.0, gt=0)
    """Give up and name the silent workers after this time without any step or update; or after ten
    times the slowest step so far, if that is longer."""
    drain_timeout_s: float = Field(default=5.0, ge=0)
    """Time limit for the queue to empty after the last update."""
    stop_timeout_s: float = Field(default=10.0, gt=0)
    """Time limit for a worker to finish its turn when it is asked to stop."""
    restarts: int = Field(default=5, ge=0)
    """Number of restarts in a row of a process that dies, before it is given up. Deaths no longer
    count once the process has run for 30 seconds."""
    restart_delay_s: float = Field(default=0.2, ge=0)
    """Pause before the first restart. It doubles with each death in a row, up to five seconds."""

    @model_validator(mode="after")
    def _clusters_follow(self) -> Self:
        """Set `clusters` from workers and leaves, unless the user set it.

        The derived value does not count as given: a resumed run derives it again.
        """
        if "clusters" not in self.model_fields_set:
            self.__dict__["clusters"] = min(self.workers, max(2, self.leaves))
        return self

    @model_validator(mode="after")
    def _steps_are_the_budget(self) -> Self:
        """Without `updates` of the user's, a run with `steps` has that limit alone.

        As with `clusters`, the derived value does not count as given.
        """
        if self.steps is not None and "updates" not in self.model_fields_set:
            self.__dict__["updates"] = None
        return self

    @property
    def folder(self) -> Path:
        """The folder of the run, which `olaf.runs.running` chooses if the user did not."""
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
