"""iSwitch §1, Table 1: the sizes of four models, from the layers of the networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from olaf import experiments
from olaf.errors.outcome import RunError
from olaf.experiments import Chart, Column, Result, Row, Series, Spread, Table, Task

VALUE_BYTES = 4
UNITS = {"KB": 1024, "MB": 1024**2}
"""The paper's units: only powers of two give its digits."""


class Parameters(experiments.Parameters):
    """The networks."""

    models: dict[str, list[list[Any]]] = Field(min_length=1)
    """Layers of each model: ``["conv", channels, filters, size]``, ``["dense", inputs, outputs]``,
    ``["norm", units]``, all with a bias."""


def run(task: Task[Parameters]) -> Result:
    """Count the parameters. Nothing is drawn."""
    models = task.parameters.models
    for seed in task.each_seed():
        task.say(f"seed {seed}: counts have no chance")
    return Result(
        rows=[
            row(task.paper["table1"][name], name, layers, len(task.seeds))
            for name, layers in models.items()
        ],
        charts=[chart(task.paper["table1"], models)],
        tables=[table(task.paper["table1"], models)],
    )


def parameters(layer: Sequence[Any]) -> int:
    """Weights and biases of a layer. Raises RunError for an unknown one."""
    match list(layer):
        case ["conv", int(channels), int(filters), int(size)]:
            return filters * (channels * size * size + 1)
        case ["dense", int(inputs), int(outputs)]:
            return outputs * (inputs + 1)
        case ["norm", int(units)]:
            return 2 * units
    raise RunError(f"layer {layer}: must be conv (3 numbers), dense (2 numbers) or norm (1 number)")


def count(layers: Sequence[Sequence[Any]]) -> int:
    """Parameters of a network."""
    return sum(parameters(layer) for layer in layers)


def row(
    paper: Mapping[str, Any], name: str, layers: Sequence[Sequence[Any]], seeds: int = 1
) -> Row:
    """The size, in the paper's unit: the same for every seed."""
    unit = paper["unit"]
    return Row(
        quantity="model size",
        where=name,
        unit=unit,
        paper=paper["size"],
        ours=Spread.of([count(layers) * VALUE_BYTES / UNITS[unit]] * seeds),
        fitted=paper["fitted"],
        digits=2,
    )


def table(paper: Mapping[str, Any], models: Mapping[str, list[list[Any]]]) -> Table:
    """Parameters and bytes, and the paper's number in either reading of its unit."""
    return Table(
        title="Sizes",
        columns=[
            Column(name="model"),
            Column(name="parameters", digits=0),
            Column(name="bytes", digits=0),
            Column(name="the paper's number, bytes if K = 1024", digits=0),
            Column(name="bytes if K = 1000", digits=0),
        ],
        rows=[
            [
                name,
                count(layers),
                count(layers) * VALUE_BYTES,
                paper[name]["size"] * UNITS[paper[name]["unit"]],
                paper[name]["size"] * {"KB": 1e3, "MB": 1e6}[paper[name]["unit"]],
            ]
            for name, layers in models.items()
        ],
    )


def chart(paper: Mapping[str, Any], models: Mapping[str, list[list[Any]]]) -> Chart:
    """Ours over the paper's."""
    return Chart(
        title="bytes of the models, over the paper's",
        x="model",
        y="times",
        kind="bars",
        series=[
            Series(
                name="ours",
                points=[
                    (float(at), row(paper[name], name, layers).ours.mean / paper[name]["size"])
                    for at, (name, layers) in enumerate(models.items())
                ],
            )
        ],
        ticks=list(models),
        from_zero=True,
    )
