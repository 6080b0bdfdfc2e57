"""Scalars of a run for TensorBoard and Weights & Biases, while it runs.

The x axis is environment steps, of all workers together and over all sessions of a resumed run.
`TAGS` is the list of tags; docs/reference/tensorboard.md explains them to users.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Self, cast

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.evaluation import Evaluation
from olaf.jobs.instruments import INSTRUMENTS, SUCCESS
from olaf.jobs.progress import Episode, Happening, Progress, Sample

TAGS: Mapping[str, str] = {
    "train/reward": "mean reward of the last `train.reward_window` training episodes",
    "train/episode_reward": "reward of each training episode that ended, of all workers",
    "train/episode_length": "mean length of the last `train.reward_window` episodes, in steps",
    "train/success": "share of them that the environment calls a success (`info`), if it says so",
    "info/<NAME>": "mean of another number that the environment's last `info` of an episode has",
    **{f"train/{one.tag}": one.meaning for one in INSTRUMENTS.values()},
    "train/updates": "updates pushed by all workers",
    "train/version": "version of the model at the server",
    "train/env_steps_per_s": "environment steps per second, over the last seconds",
    "train/updates_per_s": "updates pushed per second, over the last seconds",
    "evaluation/greedy": "mean reward of an evaluation with the most likely actions",
    "evaluation/sampled": "mean reward of an evaluation with sampled actions",
    "time/seconds": "seconds since the run began, without the time between its sessions",
    "queue/used": "slots of the switch's queue in use",
    "age_s/cluster_<C>": "Age-of-Model of cluster C at the server, in seconds",
    "fates/<FATE>": "contributions that met this fate at the switch, in all",
    "episode/worker_<W>": "reward of each training episode of worker W",
}
"""Every tag with its meaning; ``<..>`` stands for a number or a name."""

RATES_OVER_S = 5.0
FLUSH_S = 2.0
"""Longest time in seconds between a number and the file, while numbers come."""


def values_of(sample: Sample, before: Sample | None) -> dict[str, float]:
    """The scalars of a sample; ``before`` is an earlier sample, for the rates."""
    values: dict[str, float | None] = {
        "train/reward": sample.reward,
        "train/updates": sample.updates,
        "train/version": sample.version,
        "time/seconds": sample.at_s,
        "queue/used": sample.queue_used,
    }
    if before is not None and sample.at_s > before.at_s:
        seconds = sample.at_s - before.at_s
        values["train/env_steps_per_s"] = (sample.steps - before.steps) / seconds
        values["train/updates_per_s"] = (sample.updates - before.updates) / seconds
    values["train/episode_length"] = sample.episode_steps
    values |= {_tag_of_number(name): value for name, value in sample.episode_numbers.items()}
    values |= {
        f"train/{INSTRUMENTS[key].tag}": value
        for key, value in sample.losses.items()
        if key in INSTRUMENTS
    }
    values |= {f"age_s/cluster_{c}": age for c, age in sample.ages_s.items()}
    values |= {f"fates/{fate}": count for fate, count in sample.counts.items()}
    return {tag: float(value) for tag, value in values.items() if value is not None}


def _tag_of_number(name: str) -> str:
    return "train/success" if name == SUCCESS else f"info/{name}"


def values_of_evaluation(evaluation: Evaluation) -> dict[str, float]:
    """The scalars of an evaluation."""
    return {
        "evaluation/greedy": evaluation.greedy.mean,
        "evaluation/sampled": evaluation.sampled.mean,
    }


def values_of_episode(episode: Episode) -> dict[str, float]:
    """The scalars of an episode that ended."""
    return {
        "train/episode_reward": episode.reward,
        f"episode/worker_{episode.worker}": episode.reward,
    }


class _Following(ABC):
    """An observer of a run that passes on each sample, episode and evaluation once."""

    def __init__(self) -> None:
        self._samples = self._episodes = self._evaluations = -1
        self._recent: list[Sample] = []

    def happened(self, happening: Happening) -> None:  # noqa: B027 - not all draw it
        """Do nothing: events have no scalars."""

    def stands(self, progress: Progress, phase: str) -> None:
        """Pass on the new samples and episodes."""
        if self._samples < 0:  # the earlier sessions have written theirs
            self._samples = len(progress.earlier.samples)
            self._episodes = len(progress.earlier.episodes)
            self._evaluations = len(progress.earlier.evaluations)
        if len(progress.samples) == self._samples:
            return
        for episode in progress.episodes[self._episodes :]:
            self.write(values_of_episode(episode), episode.steps)
        for evaluation in progress.evaluations[self._evaluations :]:
            self.write(values_of_evaluation(evaluation), evaluation.steps)
        for sample in progress.samples[self._samples :]:
            while self._recent and self._recent[0].at_s < sample.at_s - RATES_OVER_S:
                self._recent.pop(0)
            self.write(values_of(sample, self._recent[0] if self._recent else None), sample.steps)
            self._recent.append(sample)
        self._samples, self._episodes = len(progress.samples), len(progress.episodes)
        self._evaluations = len(progress.evaluations)

    @abstractmethod
    def write(self, values: Mapping[str, float], steps: int) -> None:
        """Write scalars at ``steps`` environment steps on the x axis."""

    @abstractmethod
    def close(self) -> None:
        """Write everything that is still in memory."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


EVENTS = "events.out.tfevents.*"
"""Event files in a run's folder."""


class Scalars(_Following):
    """Writes TensorBoard's event files to the run's folder, one per session.

    It takes tensorboardX's writer of files, and not its `SummaryWriter`: that hands each number to
    a thread of its own through a pipe, which took most of the time of `olaf train`'s process.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        with _without_torch():
            from tensorboardX.event_file_writer import EventsWriter  # type: ignore[import-untyped]
            from tensorboardX.proto.event_pb2 import Event  # type: ignore[import-untyped]
            from tensorboardX.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
            from tensorboardX.summary import scalar  # type: ignore[import-untyped]
        # The writer names its file by the second and truncates an existing file: a session that is
        # resumed within a second would destroy the previous one's scalars. Readers sort by name.
        earlier = len(list(folder.glob(EVENTS)))
        suffix = f".{earlier:04d}" if earlier else ""
        self._writer: Any = EventsWriter(str(folder / "events"), suffix)
        self.written_to = folder / EVENTS
        self._event, self._summary, self._scalar = Event, Summary, scalar
        self._tags: dict[str, str] = {}
        """Tags as tensorboardX writes them, without characters that TensorBoard refuses."""
        self._flush_at_s, self._is_flushed = 0.0, False

    def write(self, values: Mapping[str, float], steps: int) -> None:
        """Add scalars."""
        for tag in values:
            if tag not in self._tags:
                self._tags[tag] = self._scalar(tag, 0.0).value[0].tag
        one = self._summary.Value
        summary = self._summary(
            value=[one(tag=self._tags[tag], simple_value=value) for tag, value in values.items()]
        )
        event = self._event(wall_time=time.time(), step=steps, summary=summary)
        self._writer.write_event(event)
        self._is_flushed = False

    def stands(self, progress: Progress, phase: str) -> None:
        """See `Observer.stands`; what is new reaches the file now, or `FLUSH_S` later."""
        super().stands(progress, phase)
        if not self._is_flushed and time.monotonic() >= self._flush_at_s:
            self._writer.flush()
            self._is_flushed = True
            self._flush_at_s = time.monotonic() + FLUSH_S

    def close(self) -> None:
        """Flush and close the file."""
        self._writer.close()


@contextmanager
def _without_torch() -> Iterator[None]:
    """Hide torch from an import that uses it if it is there.

    tensorboardX does, for tensors that we never log; it would delay a run by three seconds.
    """
    hides = "torch" not in sys.modules
    if hides:
        sys.modules["torch"] = cast("ModuleType", None)
    try:
        yield
    finally:
        if hides:
            del sys.modules["torch"]


RUN_ID = "wandb-id"
"""File in a run's folder with the run's id at Weights & Biases."""


def run_id(folder: Path) -> str:
    """The id of a run at Weights & Biases: drawn once and kept, so no two runs share one."""
    file = folder / RUN_ID
    if file.exists():
        return file.read_text(encoding="utf-8").strip()
    # Earlier versions used the folder's name: such a run keeps it.
    drawn = folder.resolve().name if (folder / "wandb").exists() else secrets.token_hex(8)
    file.write_text(drawn + "\n", encoding="utf-8")
    return drawn


class WeightsAndBiases(_Following):
    """Logs to a project of Weights & Biases. A resumed run continues the same run there."""

    def __init__(self, folder: Path, project: str, settings: Mapping[str, Any]) -> None:
        """Begin or continue the run there. Needs the extra `wandb`."""
        super().__init__()
        from olaf import extras

        extras.need("wandb", "wandb", what="--wandb")
        import wandb

        os.environ.setdefault("WANDB_SILENT", "true")
        name = folder.resolve().name
        try:
            self._run: Any = wandb.init(
                project=project,
                name=name,
                id=run_id(folder),
                resume="allow",
                dir=str(folder),
                config=dict(settings),
                settings=wandb.Settings(console="off"),
            )
        except wandb.Error as error:
            raise RunError(
                f"--wandb: Weights & Biases could not start: {error}; run `wandb login`, or set "
                "WANDB_MODE=offline to log into the run's folder without a network",
                Exit.USAGE,
            ) from None
        self._run.define_metric("env_steps")
        self._run.define_metric("*", step_metric="env_steps")

    def write(self, values: Mapping[str, float], steps: int) -> None:
        """Log scalars."""
        self._run.log({**values, "env_steps": steps})

    def close(self) -> None:
        """End the session there."""
        self._run.finish()
