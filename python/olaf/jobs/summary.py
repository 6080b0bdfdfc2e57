"""The result of a comparison: means by arm, ratios paired by seed, and the verdict from them.

A ratio has an interval from five seeds on (`olaf.statistics.intervals`). The bootstrap draws the
runs of the baseline and of our queue together, so that the interval contains the spread of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from olaf.jobs.comparison import PLAIN_QUEUES, PUSH_LESS_OFTEN, TCP, arm_of, carried
from olaf.statistics import intervals
from olaf.statistics.intervals import ENOUGH, Interval
from olaf.values.numbers import counted, score

Result = Mapping[str, Any]
Results = Sequence[Result]


def _until(result: Result) -> float:
    """Seconds from the first worker's join to the reward, or to the end of the run.

    The start-up time of processes says nothing about an arm.
    """
    return float(result["wall_s"] - (result.get("joined_s") or 0.0))


MEASURES: dict[str, Callable[[Result], float | None]] = {
    "until_s": _until,
    "reward": lambda run: run["reward"]["mean"],
    "env_steps": lambda run: run["env_steps"],
    "cpu_s": lambda run: run.get("cpu_s"),
    "updates": lambda run: run["updates"],
    "carried": carried,
    "uplink_bytes": lambda run: run.get("uplink_bytes"),
    "loss": lambda run: run["loss"],
    "aom_mean_s": lambda run: run["age_of_model"]["mean_s"],
    "staleness": lambda run: run["staleness"]["mean"],
}
"""The measures of a comparison. ``until_s`` is the training time to the reward, or to the end of a
run that did not reach it."""


def by_arm(results: Results) -> dict[str, list[Result]]:
    """The runs of each arm, in the order of their first runs."""
    arms: dict[str, list[Result]] = {}
    for result in results:
        arms.setdefault(arm_of(result), []).append(result)
    return arms


def summarize(results: Results) -> dict[str, dict[str, Any]]:
    """Means over the runs of each arm; the time to the reward is over the runs that reached it.

    ``intervals`` has every measure of `MEASURES` with its interval over the seeds.
    """
    return {
        arm: {
            "runs": len(runs),
            "reached": sum(run["reached_s"] is not None for run in runs),
            "reached_s": _mean([run["reached_s"] for run in runs]),
            "reward": _mean([run["reward"]["mean"] for run in runs]),
            "wall_s": _mean([run["wall_s"] for run in runs]),
            "updates": _mean([run["updates"] for run in runs]),
            "loss": _mean([run["loss"] for run in runs]),
            "aom_mean_s": _mean([run["age_of_model"]["mean_s"] for run in runs]),
            "aom_peak_mean_s": _mean([run["age_of_model"]["peak_mean_s"] for run in runs]),
            "staleness": _mean([run["staleness"]["mean"] for run in runs]),
            "fairness": _mean([run["fairness"] for run in runs]),
            "env_steps_per_s": _mean([run["env_steps_per_s"] for run in runs]),
            "turns_per_push": sorted({run.get("turns_per_push", 1) for run in runs}),
            "intervals": {
                name: None if (found := intervals.mean(_known(runs, of))) is None else asdict(found)
                for name, of in MEASURES.items()
            },
        }
        for arm, runs in by_arm(results).items()
    }


def _known(runs: Results, of: Callable[[Result], float | None]) -> list[float]:
    return [float(value) for run in runs if (value := of(run)) is not None]


def best_of_ours(results: Results) -> str | None:
    """Our best queue: most runs that reached the reward, then the shortest mean time to it.

    If no run reached it, the highest reward at the end.
    """
    baselines = (*PLAIN_QUEUES, PUSH_LESS_OFTEN, TCP)
    ours = {arm: runs for arm, runs in by_arm(results).items() if arm not in baselines}
    if not ours:
        return None
    any_reached = any(run["reached_s"] is not None for runs in ours.values() for run in runs)

    def rank(arm: str) -> tuple[float, float]:
        runs = ours[arm]
        reached = sum(run["reached_s"] is not None for run in runs)
        time = _mean([_until(run) for run in runs]) or 0.0
        reward = _mean([run["reward"]["mean"] for run in runs])
        low = float("-inf")
        return (-reached, time) if any_reached else (0, -(low if reward is None else reward))

    return min(ours, key=rank)


def ratios(results: Results) -> dict[str, Any] | None:
    """Both baselines relative to our best queue, by measure, paired by seed; None without one.

    ``of[baseline][measure]`` is an `Interval` as a dict, or None if a ratio has no meaning.
    ``bound`` tells how to read a ratio of times when some runs did not reach the reward: ``at
    least``, ``at most``, ``unknown``; otherwise it is empty.
    """
    best = best_of_ours(results)
    if best is None:
        return None
    arms = by_arm(results)
    ours = {run["seed"]: run for run in arms[best]}
    compared = {}
    for baseline in (PUSH_LESS_OFTEN, TCP):
        pairs = [(run, ours[run["seed"]]) for run in arms.get(baseline, ()) if run["seed"] in ours]
        if not pairs:
            continue
        own = {name: _ratio(pairs, of) for name, of in MEASURES.items()}
        compared[baseline] = {
            "seeds": len(pairs),
            "bound": _bound(pairs),
            "measures": {name: None if one is None else asdict(one) for name, one in own.items()},
            "reward_difference": _difference(pairs),
        }
    return {"best": best, "of": compared}


def _ratio(
    pairs: Sequence[tuple[Result, Result]], of: Callable[[Result], float | None]
) -> Interval | None:
    values = [(of(one), of(other)) for one, other in pairs]
    known = [(a, b) for a, b in values if a is not None and b is not None]
    return intervals.ratio([a for a, _ in known], [b for _, b in known])


def _difference(pairs: Sequence[tuple[Result, Result]]) -> dict[str, Any] | None:
    """The baseline's reward minus ours: rewards below 0 have no ratio."""
    of = MEASURES["reward"]
    values = [(of(one), of(other)) for one, other in pairs]
    found = intervals.mean([a - b for a, b in values if a is not None and b is not None])
    return None if found is None else asdict(found)


def _bound(pairs: Sequence[tuple[Result, Result]]) -> str:
    one, other = (any(pair[n]["reached_s"] is None for pair in pairs) for n in (0, 1))
    if one and other:
        return "unknown"
    return "at least" if one else "at most" if other else ""


NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def seeds_in_words(count: int) -> str:
    """``five seeds``."""
    number = NUMBERS[count] if count < len(NUMBERS) else str(count)
    return f"{number} seed{'' if count == 1 else 's'}"


def verdict(summary: Mapping[str, Mapping[str, Any]], results: Results) -> str:
    """The result of the comparison in a few lines; the load of the uplink comes first."""
    lines = [*_of_the_queues(summary, results)]
    found = ratios(results)
    if found is not None:
        lines += [sentence(baseline, found["best"], own) for baseline, own in found["of"].items()]
        if any(own["seeds"] < ENOUGH for own in found["of"].values()):
            wanted = ",".join(str(seed) for seed in range(ENOUGH))
            lines.append(f"An interval needs {seeds_in_words(ENOUGH)}: --seeds {wanted}.")
    return " ".join(lines)


def sentence(baseline: str, best: str, own: Mapping[str, Any]) -> str:
    """The sentence for a ratio, according to its interval.

    It compares the time to the reward if one arm always reached it, and otherwise the final reward.
    """
    time, ahead = own["measures"]["until_s"], own["reward_difference"]
    ours, seeds = best.upper(), seeds_in_words(own["seeds"])
    if time is not None and own["bound"] != "unknown":
        found, same, more = time, 1.0, "is faster"
        bound = f"{own['bound']} " if own["bound"] else ""
        text = f"{bound}{time['value']:.2f}x the time of {ours} to the reward"
        ends = f"[{time['low'] or 0:.2f}, {time['high'] or 0:.2f}]"
        less_is_better = True
    elif ahead is not None:
        found, same, more = ahead, 0.0, "learns more in the time"
        text = f"{ahead['value']:+.1f} of reward at the end, to {ours}"
        ends = f"[{ahead['low'] or 0:+.1f}, {ahead['high'] or 0:+.1f}]"
        less_is_better = False
    else:
        return f"{baseline}: no episode has ended."
    if found["low"] is None:
        return f"{baseline}: {text} ({seeds})."
    if found["low"] <= same <= found["high"]:
        return f"{baseline}: {text} {ends}, no difference that {seeds} can show."
    ours_wins = (found["low"] > same) == less_is_better
    return f"{baseline}: {text} {ends}: {ours if ours_wins else baseline} {more}."


def _of_the_queues(summary: Mapping[str, Mapping[str, Any]], results: Results) -> list[str]:
    fifo, olaf = summary.get("fifo"), summary.get("olaf")
    if fifo is None or olaf is None:
        return []
    lines = []
    first = next(result for result in results if arm_of(result) == "fifo")
    if fifo["loss"] is not None:
        lines.append(
            f"With an uplink of {first['uplink']} and {counted(first['slots'], 'slot')}, FIFO lost "
            f"{fifo['loss']:.0%} of the updates, OLAF {olaf['loss'] or 0:.0%}."
        )
    if fifo["aom_mean_s"] and olaf["aom_mean_s"]:
        lines.append(f"FIFO's models were {fifo['aom_mean_s'] / olaf['aom_mean_s']:.1f}x as old.")
    freshest = summary.get("freshest")
    if freshest is not None and freshest["aom_mean_s"] and olaf["aom_mean_s"]:
        lines.append(f"OLAF's were {olaf['aom_mean_s'] / freshest['aom_mean_s']:.2f}x freshest's.")
    if fifo["reward"] is not None and olaf["reward"] is not None:
        ahead = olaf["reward"] - fifo["reward"]
        share = f" ({ahead / fifo['reward']:+.0%})" if fifo["reward"] > 0 else ""
        lines.append(
            f"OLAF ended at {score(olaf['reward'])}, FIFO at {score(fifo['reward'])}{share}; "
            "the paper's Figure 8 has OLAF 82 to 86.5 % above, in a setting it does not give in "
            "full."
        )
    return lines


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
