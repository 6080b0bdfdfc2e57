"""The papers' figures, measured again: ``olaf reproduce olaf/<name>``.

To add a figure, write two files in ``python/olaf/experiments/<paper>/``. They are found by their
names: ``olaf/table1`` is ``olaf/table1.toml`` and ``olaf/table1.py``.

The TOML file is the data of the figure. Every key is one of `catalog.Figure`::

    title = "Updates received, merged and lost at three uplink rates"
    source = "OLAF §8.1, Table 1"
    shows = "Under the same burst FIFO loses most updates, OLAF merges them."
    expected_s = 40                # duration of a whole run on two cores
    seeds = 5                      # the default
    quick_seeds = 2                # the default
    differences = ["Known without measuring: bursts of 135 packets are our reading, because .."]

    [paper]                        # the paper's numbers, under names of your choice
    loss_fifo_40 = 55.8

    [parameters]                   # everything that --set may change: --set rates_gbit=[40]
    rates_gbit = [40, 20]
    updates = 500

    [quick]                        # changes by --quick, for tests of some seconds
    updates = 20

The module has the parameters' types (no defaults: the values are data) and ``run``::

    \"""Table 1: where ..\"""

    from olaf.experiments import Baseline, Chart, Parameters, Result, Row, Series, Spread, Task

    class Parameters(Parameters):  # or under another name, then Parameters = Table1
        rates_gbit: list[float]
        updates: int = Field(ge=1)

    def run(task: Task[Parameters]) -> Result:
        loss = {"fifo": [], "olaf": []}
        for seed in task.each_seed():          # prints "seed 2" and the progress
            for queue in loss:
                task.say(f"seed {seed}: {queue}")    # for steps of more than two seconds
                loss[queue].append(measure(queue, seed, task.parameters))
        fifo = Spread.of(loss["fifo"])         # one value per seed
        row = Row(
            quantity="update loss", where="OLAF, 40 Gbit/s", unit="%",
            paper=task.paper["loss_olaf_40"], ours=Spread.of(loss["olaf"]),
            # gives the row a direction, for the verdict "same direction"; a measured baseline is
            # a spread with the row's own seeds, because its variance counts:
            baseline=Baseline(name="FIFO", paper=task.paper["loss_fifo_40"], ours=fifo),
        )
        chart = Chart(title=.., x=.., y=.., series=[Series(name="OLAF", points=[(0, 1), ..])])
        return Result(rows=[row], charts=[chart], differences=[f"measured: .."])

Verdicts are computed (`result.Row.verdict`), never written. Names in ``Row`` stand beside the
value with its unit. ``Chart`` and ``Series`` describe plots; ``Table`` holds numbers that are too
many for rows. A figure that cannot be measured raises `olaf.errors.outcome.RunError`. Temporary
files of a run go to ``task.scratch``, which is deleted.

Then ``olaf reproduce <paper>/<name> --out experiments`` measures and writes the figure's folder:
results.json (`result.Record`, one result per line), README.md and plot.svg; commit it. ``--render``
writes all pages again without measuring. Test: `tests/experiments` runs every figure with
``--quick``.
"""

from olaf.drawing.charts import Chart, Series
from olaf.experiments.catalog import Figure, Parameters, Task
from olaf.experiments.result import (
    Baseline,
    Bound,
    Column,
    Goal,
    Record,
    Result,
    Row,
    Table,
)
from olaf.statistics.spread import Spread

__all__ = [
    "Baseline",
    "Bound",
    "Chart",
    "Column",
    "Figure",
    "Goal",
    "Parameters",
    "Record",
    "Result",
    "Row",
    "Series",
    "Spread",
    "Table",
    "Task",
]
