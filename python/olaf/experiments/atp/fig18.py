"""ATP §D.3, Figure 18: time to accuracy of three models, as far as an iteration's time gives it."""

from __future__ import annotations

from olaf.experiments import (
    Baseline,
    Bound,
    Chart,
    Column,
    Result,
    Row,
    Series,
    Spread,
    Table,
    Task,
)
from olaf.experiments.atp import fig8
from olaf.experiments.atp.fig8 import Arm, Runs

Parameters = fig8.Parameters
OURS: Arm = "atp"
OTHER: Arm = "ps_n"


def run(task: Task[fig8.Parameters]) -> Result:
    """Train the three models with ATP and with eight servers."""
    given = task.parameters
    models = list(task.paper["speed_up"])
    runs: Runs = {}
    for seed in task.each_seed():
        for model in models:
            for arm in (OURS, OTHER):
                task.say(f"seed {seed}: {model}, {fig8.ARMS[arm]}")
                runs.setdefault((model, arm), []).append(fig8.train(given, model, arm, seed))
    return Result(
        rows=[row(task, runs, model) for model in models],
        charts=[chart(task, runs, models)],
        tables=[table(given, runs, models)],
        bounds=[bound(given, runs, model) for model in models],
    )


def row(task: Task[fig8.Parameters], runs: Runs, model: str) -> Row:
    """Both systems train as many epochs: the times differ as those of an iteration do."""
    return Row(
        quantity="speed-up of the time to accuracy over N servers",
        where=model,
        paper=task.paper["speed_up"][model],
        ours=Spread.of(fig8.speed_ups(task.parameters, runs, model, OTHER)),
        baseline=Baseline(name=fig8.ARMS[OTHER], paper=1, ours=1),
    )


def bound(given: fig8.Parameters, runs: Runs, model: str) -> Bound:
    """What computation allows."""
    most = given.images / given.model_ms(model) * 1e3
    return Bound(
        quantity=f"speed-up, {model}",
        value=most / Spread.of(fig8.speeds(given, runs, model, OTHER)).mean,
        why="without any network a worker computes all the time",
    )


def table(given: fig8.Parameters, runs: Runs, models: list[str]) -> Table:
    """Every model and system."""
    return Table(
        title="Images a second of a worker",
        columns=[
            Column(name="model"),
            Column(name="compute, ms", digits=0),
            *(Column(name=fig8.ARMS[arm], digits=1) for arm in (OURS, OTHER)),
        ],
        rows=[
            [
                model,
                given.model_ms(model),
                *(Spread.of(fig8.speeds(given, runs, model, arm)) for arm in (OURS, OTHER)),
            ]
            for model in models
        ],
    )


def chart(task: Task[fig8.Parameters], runs: Runs, models: list[str]) -> Chart:
    """Ours beside the paper's."""
    ours = [Spread.of(fig8.speed_ups(task.parameters, runs, model, OTHER)).mean for model in models]
    theirs = [task.paper["speed_up"][model] for model in models]
    return Chart(
        title="Time to accuracy over N servers",
        x="model",
        y="times as fast",
        kind="bars",
        series=[
            Series(name="ours", points=[(float(at), one) for at, one in enumerate(ours)]),
            Series(
                name="paper", of="paper", points=[(float(at), one) for at, one in enumerate(theirs)]
            ),
        ],
        ticks=models,
        from_zero=True,
    )
