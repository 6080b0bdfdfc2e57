"""The question of a simulation: the settings of ``olaf train``, and the machines."""

from __future__ import annotations

import dataclasses
import json
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from olaf.errors.usage import ConfigurationError
from olaf.jobs.settings import Settings
from olaf.jobs.training import worker_job
from olaf.rl.learner import LearnerConfig
from olaf.rl.recorded import Recorded
from olaf.rl.virtual_job import JobConfig, Link
from olaf.rl.worker_loop import LoopConfig

ALONE = 0
"""Stands for one machine without a network, in a list of numbers of machines."""


@dataclass(frozen=True)
class Uplink:
    """Bandwidth of the link from the switch to the server."""

    kind: Literal["settings", "free", "rate", "share"] = "settings"
    """The settings' value, no limit, bits per second, or a fraction of the workers' push rate."""
    value: float = 0.0


@dataclass(frozen=True)
class Plan:
    """One question: settings, machines, links and the target reward."""

    settings: Settings
    turns: Recorded
    until_reward: float
    step_limit: int
    """Environment steps of all machines together after which a run is stopped."""
    uplink: Uplink = Uplink()
    speeds: float = 1.0
    """The fastest machine's speed divided by the slowest's; their mean is the single machine's."""
    delay_s: float = 0.00025
    """One-way delay in seconds of each worker-switch and switch-server link."""
    loss: float = 0.0
    """Probability that one of these links loses a datagram."""

    def job(self, machines: int, seed: int) -> JobConfig:
        """The job with this number of machines; with `ALONE`, its part for one machine.

        Raises ConfigurationError for settings that cannot be simulated.
        """
        settings = self.settings
        told = worker_job(settings, switch="", worker=None, cluster=0, seed=seed)
        learner = learner_of(settings, seed)
        switch = json.loads(settings.switch.to_core())
        workers = max(machines, 1)
        job = JobConfig(
            learner=learner,
            loop=LoopConfig(**told.loop),
            server=json.loads(settings.server.to_core()),
            switch=switch,
            worker=told.client,
            edge=Link(self.delay_s, loss=self.loss),
            core=Link(self.delay_s, loss=self.loss),
            workers=workers,
            clusters=min(settings.train.clusters, workers),
            compute=self.turns,
            speeds=self.speeds,
        )
        return dataclasses.replace(job, switch=self._paced(switch, workers))

    def _paced(self, switch: dict[str, Any], workers: int) -> dict[str, Any]:
        """The switch with the uplink of the plan."""
        if self.uplink.kind == "settings":
            return switch
        switch = {**switch, "credits": None, "uplink_bps": None}
        if self.uplink.kind == "rate":
            switch["uplink_bps"] = round(self.uplink.value)
        elif self.uplink.kind == "share":
            switch["uplink_bps"] = max(1, round(self.uplink.value * self.pushed_bps(workers)))
        return switch

    def pushed_bps(self, workers: int) -> float:
        """Bits per second that this number of workers push if they never wait."""
        from olaf._olaf import update_bytes
        from olaf.rl.making import make_learner

        learner = learner_of(self.settings, 0)
        told = worker_job(self.settings, switch="", worker=None, cluster=0, seed=0)
        with closing(make_learner(learner)) as made:
            bits = 8 * update_bytes(made.parameters, json.dumps(told.client))
        worker = self.settings.worker
        pushes = 1 / worker.turns_per_push
        if worker.push_every == "pass" and worker.turns_per_push == 1:
            pushes = learner.passes
        return workers * bits * pushes / self.turns.mean_s(learner.steps_per_update)


def learner_of(settings: Settings, seed: int) -> LearnerConfig:
    """The learner of the settings, as ``olaf train`` makes it."""
    fields = worker_job(settings, switch="", worker=None, cluster=0, seed=seed).learner
    return LearnerConfig(**{**fields, "hidden": tuple(fields["hidden"])}, seed=seed)


def simulable(settings: Settings) -> Settings:
    """Check the settings. Raises ConfigurationError for features that virtual time lacks."""
    if settings.train.leaves:
        raise ConfigurationError(
            f"`train.leaves` = {settings.train.leaves}: virtual time has one switch; for trees of "
            "switches see `olaf simulate network`"
        )
    if settings.switch.admission is not None:
        raise ConfigurationError(
            f"`switch.admission` = {settings.switch.admission!r}: virtual time has no admission; "
            "set it to off"
        )
    return settings


def mark_of(settings: Settings) -> float:
    """The reward that ends a run. Raises ConfigurationError if there is none."""
    from olaf.rl.environments import reward_threshold

    wanted = settings.train.until_reward
    if isinstance(wanted, float):
        return wanted
    environment = settings.learner.environment
    threshold = reward_threshold(environment) if wanted == "solved" else None
    if threshold is None:
        why = "declares no reward at which it counts as solved" if wanted else "is not the question"
        raise ConfigurationError(
            f"`train.until_reward` = {wanted or 'off'!r}: {environment} {why}: give a mean reward, "
            "as in --until-reward 200"
        )
    return threshold
