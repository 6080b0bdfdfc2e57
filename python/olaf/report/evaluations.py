"""The evaluations of a run in its report: a plot, and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from olaf.drawing.inline import draw, thinned
from olaf.drawing.style import SERIES
from olaf.values.numbers import score

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Record = Mapping[str, Any]

ROWS = 12
"""Rows of the table: the best evaluation and the last ones."""

POLICIES = ("greedy", "sampled")


def evaluation_plot(record: Record) -> str:
    """Mean reward of each evaluation against environment steps, with its standard deviation."""
    evaluations = record["evaluations"]

    def fill(axes: Axes) -> None:
        for policy, colour in zip(POLICIES, SERIES, strict=False):
            points = thinned(
                [
                    (one["steps"] / 1e3, one[policy]["mean"], one[policy]["std"])
                    for one in evaluations
                ]
            )
            steps = [x for x, _, _ in points]
            means = [mean for _, mean, _ in points]
            axes.plot(steps, means, color=colour, marker="o", markersize=3, label=policy)
            low = [mean - std for _, mean, std in points]
            high = [mean + std for _, mean, std in points]
            axes.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
        axes.legend(loc="lower right")
        axes.set_xlim(left=0)
        axes.set(
            title="Evaluations, and one standard deviation",
            xlabel="environment steps, thousands",
            ylabel="mean reward",
        )

    return draw(fill)


def evaluation_rows(record: Record) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table: the last evaluations, and the best one marked."""
    evaluations: Sequence[Mapping[str, Any]] = record["evaluations"]
    best = record["result"]["evaluation"]["best"]
    shown = list(evaluations[-ROWS:])
    if best not in shown:
        shown = [best, *shown[1:]]
    heads = ["model version", "updates", "greedy", "deviation", "sampled", "deviation", ""]
    rows = [
        [
            f"{one['version']:,}",
            f"{one['updates']:,}",
            *(score(one[policy][key]) for policy in POLICIES for key in ("mean", "std")),
            "the best, kept as best.npz" if one == best else "",
        ]
        for one in shown
    ]
    return heads, rows


def measure(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The best and the last evaluation, as rows of the final table."""
    found = result.get("evaluation")
    if not found:
        return []
    best, last = found["best"], found["last"]
    text = (
        f"best {score(best['greedy']['mean'])} greedy, {score(best['sampled']['mean'])} sampled "
        f"(model version {best['version']:,})"
    )
    if last != best:
        text += (
            f"; last {score(last['greedy']['mean'])} greedy, "
            f"{score(last['sampled']['mean'])} sampled"
        )
    return [("evaluation", text)]
