"""iSwitch §6.2, Figure 14: rewards of DQN over time, with both asynchronous approaches."""

from __future__ import annotations

from olaf.experiments import Baseline, Chart, Result, Row, Spread, Task
from olaf.experiments.comparing import line
from olaf.experiments.iswitch import asynchronous, table5
from olaf.experiments.iswitch.table5 import APPROACHES, Runs

Parameters = table5.Parameters


def run(task: Task[table5.Parameters]) -> Result:
    """Train with both approaches."""
    runs = table5.train_all(task)
    return Result(
        rows=[row for model in runs for row in rows(task, runs, model)],
        charts=[chart(runs, model) for model in runs],
        tables=[table5.table(runs)],
    )


def rows(task: Task[table5.Parameters], runs: Runs, model: str) -> list[Row]:
    """How long iSwitch takes to the mark."""
    ps, isw = runs[model]["ps"], runs[model]["iswitch"]
    share = [b.seconds / a.seconds for a, b in zip(ps, isw, strict=True)]
    return [
        Row(
            quantity="time to the same reward, over the parameter server's",
            where=f"iSW, {model}",
            paper=task.paper["over_ps"],
            ours=Spread.of(share),
            baseline=Baseline(name="Async PS", paper=1, ours=1),
        )
    ]


def chart(runs: Runs, model: str) -> Chart:
    """Both curves, over the seeds."""
    series = []
    for approach, name in APPROACHES.items():
        curve = asynchronous.rewards(runs[model][approach])
        series.append(line(name, [at for at, _ in curve], [spread for _, spread in curve]))
    return Chart(
        title=f"{model} on a small task, asynchronous",
        x="virtual time, s",
        y="mean reward of the last 20 episodes",
        series=series,
    )
