"""A run for a terminal: one line per cluster, and a sketch of the sawtooths."""

from __future__ import annotations

from fractions import Fraction

from rich.table import Table
from rich.text import Text

from olaf.drawing.braille import curve
from olaf.values.numbers import number
from olaf.verify.drawing import sawtooth
from olaf.verify.schedule import longest_gap, mean_age, mean_peak, on_ticks, peaks
from olaf.verify.verdict import Verdict

SKETCH_WIDTH, SKETCH_HEIGHT = 100, 4


def run_table(verdict: Verdict) -> Table:
    """The deliveries of the verdict's run; the offending clusters are marked."""
    witness, instance = verdict.witness, verdict.instance
    assert witness is not None
    run = on_ticks(instance, witness.run)
    marked = set(witness.pair or ())
    table = Table(box=None)
    table.add_column("cluster", style="bold")
    for name in ("sent", "lost", "deliveries"):
        table.add_column(name, justify="right")
    for name in ("mean peak", "mean age", "worst age", "longest gap"):
        table.add_column(f"{name}, ms", justify="right")
    table.add_column("")
    for cluster, name in enumerate(instance.clusters):
        table.add_row(
            Text(name),
            str(run.sent[cluster]),
            str(run.dropped[cluster]),
            str(len(run.deliveries[cluster])),
            _ms(mean_peak(run, cluster)),
            _ms(mean_age(run, cluster)),
            _ms(max(peaks(run, cluster, last=True), default=None)),
            _ms(longest_gap(run, cluster)),
            "<--" if cluster in marked else "",
            style="yellow" if cluster in marked else "",
        )
    return table


def sketch(verdict: Verdict) -> list[str]:
    """The ages of the offending clusters over time, in ms, as lines of text."""
    witness, instance = verdict.witness, verdict.instance
    assert witness is not None
    run = on_ticks(instance, witness.run)
    lines: list[str] = []
    for cluster in dict.fromkeys(witness.pair or ()):
        points = [(at / 1e6, age / 1e6) for at, age in sawtooth(run, cluster)]
        if len(points) > 1:
            span = f"{points[0][0]:g} to {points[-1][0]:g} ms"
            lines.append(f"{instance.clusters[cluster]}: Age-of-Model, ms, from {span}")
            lines += curve(points, SKETCH_WIDTH, SKETCH_HEIGHT)
    return lines


def _ms(value_ns: Fraction | int | None) -> str:
    return number(None if value_ns is None else float(value_ns) / 1e6, 3).removesuffix(".000")
