"""The plots of a run's page and of a comparison's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from olaf.drawing.inline import draw, thinned
from olaf.drawing.style import INK, SERIES
from olaf.jobs.comparison import arm_of
from olaf.values.numbers import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Nothing(NamedTuple):
    """In place of a plot that would be empty: a sentence."""

    why: str


Plot = str | Nothing
"""An ``<svg>`` element, or why there is none."""


def running_mean(episodes: Sequence[Sequence[float]], window: int) -> list[tuple[float, float]]:
    """(x, mean reward of the last ``window`` episodes), from the first full window on."""
    points: list[tuple[float, float]] = []
    total = 0.0
    rewards = [float(episode[2]) for episode in episodes]
    for index, reward in enumerate(rewards):
        total += reward
        if index >= window:
            total -= rewards[index - window]
        if index >= window - 1:
            points.append((float(episodes[index][0]), total / window))
    return points


SMALL = (3.6, 1.9)
"""Width and height of a small plot, in inches."""

TIME = "wall time, s"
STEPS = "environment steps, thousands"


def reward_plot(record: Mapping[str, Any], x: str = TIME) -> Plot:
    """Reward against ``x``, time or environment steps: each episode, and the mean of the last."""
    episodes = _episodes_at(record, x)
    if not record["episodes"]:
        return Nothing("No episode has ended, so there is no reward to draw.")
    if not episodes:
        return Nothing("This record has no steps of its episodes: an older version wrote it.")
    goal = record["result"]["reward"].get("goal")
    window = record["result"]["reward"]["window"]

    def fill(axes: Axes) -> None:
        single = thinned(episodes, 2000)
        xs, ys = [e[0] for e in single], [e[2] for e in single]
        axes.scatter(xs, ys, s=3, alpha=0.25, color=SERIES[0], linewidths=0)
        if goal is not None:
            axes.axhline(
                goal, color=SERIES[2], linewidth=1.0, linestyle="--", label=f"goal {goal:g}"
            )
        mean = thinned(running_mean(episodes, window))
        if mean:
            axes.plot(
                *zip(*mean, strict=True),
                color=SERIES[1],
                label=f"mean of {counted(window, 'episode')}",
            )
        _mark_sessions(axes, record, x)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="lower right")
        axes.set_xlim(left=0)
        axes.set(title=f"Reward against {_name(x)}", xlabel=x, ylabel="episode reward")

    return draw(fill)


def _name(x: str) -> str:
    return x.partition(",")[0]


def _episodes_at(record: Mapping[str, Any], x: str) -> list[tuple[float, int, float]]:
    """``(x, worker, reward)`` of each episode; empty against steps if the record has none."""
    if x == TIME:
        return [(row[0], row[1], row[2]) for row in record["episodes"]]
    return [(row[3] / 1e3, row[1], row[2]) for row in record["episodes"] if len(row) > 3]


def _mark_sessions(axes: Axes, record: Mapping[str, Any], x: str) -> None:
    """A line where the run was resumed."""
    label: str | None = "resumed"
    for session in record.get("sessions", ()):
        at_s = session.get("at_s")
        if not at_s:
            continue
        at = at_s
        if x == STEPS:
            before = [s["steps"] for s in record["history"] if s["at_s"] <= at_s]
            at = before[-1] / 1e3 if before else 0.0
        axes.axvline(at, color=INK, linewidth=0.8, linestyle=":", alpha=0.6, label=label)
        label = None


def age_plot(record: Mapping[str, Any]) -> Plot:
    """Age-of-Model of each cluster against wall time."""
    end_s = record["result"]["wall_s"]  # afterwards ages only grow
    history = [sample for sample in record["history"] if sample["at_s"] <= end_s]
    clusters = sorted({c for sample in history for c in sample["ages_s"]}, key=int)
    if not clusters:
        return Nothing("No update reached the server, so the model has no age to draw.")
    if sum(bool(sample["ages_s"]) for sample in history) < 2:
        return Nothing("The run was too short to draw the Age-of-Model.")

    def fill(axes: Axes) -> None:
        for index, cluster in enumerate(clusters):
            points = thinned(
                [(s["at_s"], s["ages_s"][cluster] * 1e3) for s in history if cluster in s["ages_s"]]
            )
            axes.plot(
                *zip(*points, strict=True),
                color=SERIES[index % len(SERIES)],
                linewidth=1.0,
                label=f"cluster {cluster}",
            )
        if 0 < len(clusters) <= len(SERIES):
            axes.legend(ncols=2)
        _mark_sessions(axes, record, TIME)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set(title="Age-of-Model when reported", xlabel=TIME, ylabel="ms")

    return draw(fill)


def queue_plot(record: Mapping[str, Any]) -> Plot:
    """Queue occupancy against wall time."""
    points = thinned([(s["at_s"], s["queue_used"]) for s in record["history"]])
    slots = record["result"]["slots"]
    if not any(used for _, used in points):
        return Nothing("The queue was empty at every report.")

    def fill(axes: Axes) -> None:
        axes.step(*zip(*points, strict=True), where="post", color=SERIES[2], linewidth=1.0)
        axes.axhline(slots, color=INK, linewidth=0.8, linestyle="--", alpha=0.5)
        axes.set_xlim(left=0)
        axes.set_ylim(0, slots * 1.08)
        axes.set(title=f"Queue, of {slots} slots", xlabel=TIME, ylabel="slots used")

    return draw(fill)


STACK = ("sent_alone", "merged", "replaced", "filtered", "dropped", "rejected")


def fates_plot(record: Mapping[str, Any]) -> Plot:
    """Updates by fate at the switch, cumulative."""
    segments = max(record["result"]["model"].get("segments") or 1, 1)
    history = thinned([(s["at_s"], s["counts"]) for s in record["history"]])
    used = [f for f in STACK if any(counts.get(f) for _, counts in history)]
    if not used:
        return Nothing("No update reached the switch.")

    def fill(axes: Axes) -> None:
        axes.stackplot(
            [at for at, _ in history],
            [[counts.get(fate, 0) / segments for _, counts in history] for fate in used],
            labels=[fate.replace("_", " ") for fate in used],
            colors=[SERIES[STACK.index(fate)] for fate in used],
            alpha=0.75,
        )
        axes.legend(loc="upper left")
        axes.set_xlim(left=0)
        axes.set(title="Fates at the switch", xlabel=TIME, ylabel="updates")

    return draw(fill)


def speed_plot(record: Mapping[str, Any]) -> Plot:
    """Environment steps per second, against wall time."""
    end_s = record["result"]["wall_s"]  # afterwards workers only finish their turn
    history = [sample for sample in record["history"] if sample["at_s"] <= end_s]
    points = [
        (after["at_s"], (after["steps"] - before["steps"]) / (after["at_s"] - before["at_s"]))
        for before, after in zip(history, history[4:], strict=False)
        if after["at_s"] > before["at_s"]
    ]
    if len(points) < 2 or not any(speed for _, speed in points):
        return Nothing("The run was too short to draw its speed.")

    def fill(axes: Axes) -> None:
        axes.plot(*zip(*thinned(points), strict=True), color=SERIES[3], linewidth=1.2)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set(title="Environment steps per second", xlabel=TIME)

    return draw(fill, width=SMALL[0], height=SMALL[1])


def compared_rewards(runs: Sequence[Mapping[str, Any]], x: str) -> Plot:
    """Mean reward of every run against ``wall time`` or ``environment steps``."""
    queues = list(dict.fromkeys(arm_of(run["result"]) for run in runs))
    curves = [(arm_of(run["result"]), points) for run in runs if (points := _rewards(run, x))]
    goals = {run["result"]["reward"].get("goal") for run in runs}
    if not curves:
        return Nothing("No run has a mean reward to draw.")

    def fill(axes: Axes) -> None:
        named: set[str] = set()
        for queue, points in curves:
            axes.plot(
                *zip(*thinned(points), strict=True),
                color=SERIES[queues.index(queue) % len(SERIES)],
                linewidth=1.3,
                label=None if queue in named else queue,
            )
            named.add(queue)
        for goal in goals - {None} if len(goals) == 1 else ():
            axes.axhline(goal, color=INK, linewidth=0.8, linestyle="--", label=f"goal {goal:g}")
        axes.legend(loc="lower right")
        label = "seconds since the first worker joined" if x == TIME else x
        axes.set(title=f"Reward against {_name(x)}", xlabel=label, ylabel="mean reward")

    return draw(fill)


def _rewards(run: Mapping[str, Any], x: str) -> list[tuple[float, float]]:
    """The mean reward of a run against seconds of training or thousands of steps."""
    if x == STEPS:
        history = run["history"]
        return [(s["steps"] / 1e3, s["reward"]) for s in history if s["reward"] is not None]
    # The start-up time of processes says nothing about an arm.
    joined_s = run["result"].get("joined_s") or 0.0
    mean = running_mean(run["episodes"], run["result"]["reward"]["window"])
    return [(at_s - joined_s, reward) for at_s, reward in mean]


def compared_dots(runs: Sequence[Mapping[str, Any]], title: str, unit: str, key: Any) -> Plot:
    """A dot per run and a line at the mean of each arm, for a measure that ``key`` reads."""
    arms: dict[str, list[float]] = {}
    for run in runs:
        values = arms.setdefault(arm_of(run["result"]), [])
        if (value := key(run["result"])) is not None:
            values.append(value)
    if not any(value for values in arms.values() for value in values):
        return Nothing(f"{title}: 0 or unknown in every run.")

    def fill(axes: Axes) -> None:
        for index, values in enumerate(arms.values()):
            color = SERIES[index % len(SERIES)]
            if not values:
                continue
            axes.scatter([index] * len(values), values, s=14, alpha=0.6, color=color, linewidths=0)
            mean = sum(values) / len(values)
            axes.plot([index - 0.25, index + 0.25], [mean, mean], color=color, linewidth=2.4)
        axes.set_xticks(range(len(arms)), list(arms))
        axes.grid(visible=False, axis="x")
        axes.set_xlim(-0.6, len(arms) - 0.4)
        axes.set_ylim(bottom=0)
        axes.set(title=f"{title}, run by run", ylabel=unit)

    return draw(fill, height=2.2)


RATIOS = {
    "until_s": "time to the reward",
    "env_steps": "environment steps",
    "cpu_s": "CPU seconds",
    "uplink_bytes": "bytes on the uplink",
    "aom_mean_s": "Age-of-Model",
    "staleness": "staleness",
}


TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def ratio_plot(ratios: Mapping[str, Any], arms: Sequence[str]) -> str:
    """Each baseline relative to our best queue, by measure, with its interval, on a log scale.

    arms: in the order of the other plots, for the colours.
    """

    def fill(axes: Axes) -> None:
        names = list(RATIOS)
        for index, (baseline, own) in enumerate(ratios["of"].items()):
            color = SERIES[arms.index(baseline) % len(SERIES)]
            label: str | None = baseline
            for row, name in enumerate(names):
                found = own["measures"].get(name)
                if found is None or (name == "until_s" and own["bound"] == "unknown"):
                    continue
                at = row + 0.16 * (2 * index - 1)
                axes.plot([found["value"]], [at], "o", markersize=4, color=color, label=label)
                label = None
                if found["low"] is not None:
                    axes.plot([found["low"], found["high"]], [at, at], color=color, linewidth=1.6)
        axes.axvline(1.0, color=INK, linewidth=0.8, linestyle="--", alpha=0.6)
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xlim(min(low, 0.8), max(high, 1.25))
        low, high = axes.get_xlim()
        shown = [tick for tick in TICKS if low <= tick <= high]
        axes.set_xticks(shown, [f"{tick:g}" for tick in shown])
        axes.set_xticks([], minor=True)
        axes.set_yticks(range(len(names)), list(RATIOS.values()))
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        if axes.get_legend_handles_labels()[0]:
            axes.legend(loc="best")
        axes.set(title=f"Baselines over {ratios['best']}", xlabel="ratio; 1 is no difference")

    return draw(fill, height=3.0)
