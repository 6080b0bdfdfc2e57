"""Summary of the runs: medians, spreads, and the speed-up of N machines over one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from olaf.statistics.intervals import ENOUGH, RESAMPLES, expanded_tail
from olaf.virtual.plan import ALONE
from olaf.virtual.running import Run


class Ends(BaseModel):
    """A median over the seeds, and the lowest and highest; None: not reached within the limit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    median: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Ends:
        """The ends of one value per seed, infinite if the target was not reached."""
        return cls(
            median=_finite(float(np.median(values))),
            low=_finite(min(values)),
            high=_finite(max(values)),
        )


class Arm(BaseModel):
    """One number of machines, over all seeds."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    machines: int
    """0: one machine without a network."""
    reached: int
    """Number of seeds whose run reached the target."""
    seeds: int
    time_s: Ends
    """Virtual seconds to the target reward."""
    steps_per_machine: Ends
    """Environment steps to the target, divided by the machines."""
    speed_up: float | None = None
    """Median time of one machine without a network divided by the median time of these."""
    speed_up_low: float | None = None
    speed_up_high: float | None = None
    """Its 95 % interval, a bootstrap over the seeds of both; None below 5 seeds."""
    staleness_mean: float | None = None
    merged: float | None = None
    replaced: float | None = None
    lost: float | None = None
    age_of_model_s: float | None = None
    """Means over the seeds."""


def summarize(runs: Sequence[Run]) -> list[Arm]:
    """An arm for each number of machines, in the order of the runs."""
    counts = list(dict.fromkeys(run.machines for run in runs))
    alone = _times([run for run in runs if run.machines == ALONE])
    return [_arm([run for run in runs if run.machines == count], alone) for count in counts]


def _arm(runs: Sequence[Run], alone: Sequence[float]) -> Arm:
    machines = runs[0].machines
    times = _times(runs)
    steps = [run.steps / max(machines, 1) if run.reached else math.inf for run in runs]
    gains = (None, None, None) if machines == ALONE or not alone else speed_up(alone, times)
    return Arm(
        machines=machines,
        reached=sum(run.reached for run in runs),
        seeds=len(runs),
        time_s=Ends.of(times),
        steps_per_machine=Ends.of(steps),
        speed_up=gains[0],
        speed_up_low=gains[1],
        speed_up_high=gains[2],
        staleness_mean=_mean([run.staleness_mean for run in runs]),
        merged=_mean([run.merged for run in runs]),
        replaced=_mean([run.replaced for run in runs]),
        lost=_mean([run.lost for run in runs]),
        age_of_model_s=_mean([run.age_of_model_s for run in runs]),
    )


def where_it_stops(arms: Sequence[Arm]) -> str | None:
    """A sentence if more machines took longer than fewer; None if each row is faster.

    Times that no seed, or less than half of them, reached are longer than all others.
    """
    rows = sorted((arm for arm in arms if arm.machines != ALONE), key=lambda arm: arm.machines)
    if not rows or all(arm.time_s.median is None for arm in rows):
        return None
    best = min(rows, key=_time)
    slower = [arm for arm in rows if arm.machines > best.machines and _time(arm) > _time(best)]
    alone = [arm for arm in arms if arm.machines == ALONE]
    if alone and _time(alone[0]) < _time(best):
        return (
            "No number of machines here is faster than one machine without a network: look at "
            "staleness and replaced, and give the uplink more or each update more steps "
            "(learner.steps_per_update)."
        )
    if not slower:
        return None
    rows_said = ", ".join(f"{arm.machines}{_gain(arm)}" for arm in slower)
    return (
        f"More machines stop helping beyond {best.machines}{_gain(best)}: slower with "
        f"{rows_said}. Their updates are computed on older models (staleness)."
    )


def _gain(arm: Arm) -> str:
    if arm.time_s.median is None:
        return " (not reached)"
    return "" if arm.speed_up is None else f" ({arm.speed_up:.1f}x)"


def _time(arm: Arm) -> float:
    return math.inf if arm.time_s.median is None else arm.time_s.median


def speed_up(
    alone: Sequence[float], times: Sequence[float]
) -> tuple[float | None, float | None, float | None]:
    """Ratio of medians, and its interval over independent resamples of the seeds of both.

    As in `olaf.statistics.intervals` the percentiles are moved outwards for few seeds. A time is
    infinite if the target was not reached. Infinite results and NaN become None: the ratio if an
    arm's median never reached the target, and an end of the interval if the resamples beyond it
    did not.
    """
    rng = np.random.default_rng(0)
    above, below = np.array(alone, float), np.array(times, float)
    with np.errstate(invalid="ignore"):
        value = _finite(float(np.median(above) / np.median(below)))
        fewest = min(len(above), len(below))
        if fewest < ENOUGH:
            return value, None, None
        drawn = [
            np.median(values[rng.integers(len(values), size=(RESAMPLES, len(values)))], axis=1)
            for values in (above, below)
        ]
        ratios = np.sort(drawn[0] / drawn[1])  # NaN sorts last
    tail = expanded_tail(fewest)
    low, high = (ratios[round(at * (RESAMPLES - 1))] for at in (tail, 1 - tail))
    return value, _finite(float(low)), _finite(float(high))


def _times(runs: Sequence[Run]) -> list[float]:
    return [run.time_s if run.reached else math.inf for run in runs]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
