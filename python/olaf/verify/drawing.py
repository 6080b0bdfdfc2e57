"""Draws a run as sawtooths: each cluster's age over time, the offending pair in colour."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from olaf import extras
from olaf.drawing.style import COLOURS, PAGE, PAGE_INK
from olaf.errors.usage import ConfigurationError
from olaf.verify.instance import Kind
from olaf.verify.schedule import Run, lost_of, mean_peak, on_ticks
from olaf.verify.verdict import Answer, Verdict
from olaf.verify.words import claim, found

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENDINGS = ("png", "svg", "pdf")
OTHERS = "#b8b8c0"


def sawtooth(run: Run, cluster: int) -> list[tuple[int, int]]:
    """(t, age) in ns: the corners of the cluster's AoM from its first delivery to the horizon."""
    corners: list[tuple[int, int]] = []
    newest_ns: int | None = None
    for each in run.deliveries[cluster]:
        if newest_ns is not None:
            corners.append((each.end_ns, each.end_ns - newest_ns))
        corners.append((each.end_ns, each.end_ns - each.newest_ns))
        newest_ns = each.newest_ns
    if newest_ns is not None and corners[-1][0] < run.horizon_ns:
        corners.append((run.horizon_ns, run.horizon_ns - newest_ns))
    return corners


def draw(verdict: Verdict, file: Path) -> None:
    """Write the verdict's run to ``file``: PNG, SVG or PDF by its ending."""
    extras.need("verify", "matplotlib", what="--plot")
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    if verdict.witness is None:
        raise ValueError("there is no run to draw")
    kind = check_ending(file)
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    metadata = {"svg": nothing, "png": {"Software": None}, "pdf": {"CreationDate": None}}[kind]
    # A cluster's name must not be read as a formula.
    with mpl.rc_context({**PAGE, "text.parse_math": False}):
        figure = Figure(figsize=(9.0, 3.8), layout="constrained")
        FigureCanvasAgg(figure)
        if verdict.objective.kind is Kind.LOSS:
            figure.suptitle(_title(verdict), x=0.01, ha="left", fontsize="medium")
            above, below = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
            _fill_with_losses(above, below, verdict)
        else:
            _fill(figure.add_subplot(), verdict)
        figure.savefig(file, dpi=120, metadata=metadata)


def check_ending(file: Path) -> str:
    """The picture format of ``file``. Raises ConfigurationError."""
    kind = file.suffix.lstrip(".").lower()
    if kind not in ENDINGS:
        raise ConfigurationError(f"{file}: a plot ends with .{', .'.join(ENDINGS)}")
    return kind


def _title(verdict: Verdict) -> str:
    word = {Answer.VIOLATED: "Violated", Answer.HOLDS: "Nearest to the limit"}
    said = word.get(verdict.answer, "Best run found")
    return f"{said}: {claim(verdict.instance, verdict.objective)}\n{found(verdict)}"


def losses(verdict: Verdict) -> list[tuple[float, int, bool]]:
    """(ms, cluster, whether it was lost) of each update that the objective counts, in order."""
    witness, instance = verdict.witness, verdict.instance
    assert witness is not None
    tick_ms = instance.tick_ns / 1e6
    return [
        (send.tick * tick_ms, cluster, lost)
        for send, lost in lost_of(instance, witness.schedule)
        if (cluster := instance.senders[send.sender].cluster) in verdict.objective.clusters
    ]


def _fill_with_losses(above: Axes, below: Axes, verdict: Verdict) -> None:
    """Above each cluster's updates, below the share that was lost so far."""
    instance, updates = verdict.instance, losses(verdict)
    rows = {cluster: row for row, cluster in enumerate(verdict.objective.clusters)}
    for is_lost, colour, marker, label in (
        (False, OTHERS, "|", "taken"),
        (True, COLOURS[1], "x", "lost: the queue is full"),
    ):
        points = [(at, rows[cluster]) for at, cluster, lost in updates if lost == is_lost]
        times, heights = [at for at, _ in points], [row for _, row in points]
        above.plot(times, heights, linestyle="", marker=marker, color=colour, label=label)
    above.set_yticks(range(len(rows)), [instance.clusters[cluster] for cluster in rows])
    above.set_ylim(-0.6, len(rows) - 0.4)
    above.invert_yaxis()
    above.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    shares, lost = [0.0], 0
    for number, (_, _, is_lost) in enumerate(updates, 1):
        lost += is_lost
        shares.append(100 * lost / number)
    ends_ms = instance.horizon * instance.tick_ns / 1e6
    times = [0.0, *(at for at, _, _ in updates), ends_ms]
    below.step(times, [*shares, shares[-1]], where="post", color=COLOURS[1], linewidth=1.2)
    limit = float(verdict.objective.limit) * 100
    name = f"limit {limit:.4g} %"
    below.axhline(limit, color=PAGE_INK, linewidth=0.9, linestyle=":", label=name)
    below.set(xlabel="time, ms", ylabel="lost so far, %")
    below.set_xlim(0, ends_ms)
    below.set_ylim(bottom=0)
    below.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def _fill(axes: Axes, verdict: Verdict) -> None:
    witness, instance = verdict.witness, verdict.instance
    assert witness is not None
    run = on_ticks(instance, witness.run)
    pair = list(dict.fromkeys(witness.pair or ()))
    for cluster in sorted(verdict.objective.clusters, key=lambda c: c in pair):
        points = [(at / 1e6, age / 1e6) for at, age in sawtooth(run, cluster)]
        name = instance.clusters[cluster]
        if not points:
            axes.plot([], [], color=OTHERS, label=f"{name}: never delivered")
            continue
        colour = COLOURS[pair.index(cluster)] if cluster in pair else OTHERS
        width = 1.6 if cluster in pair else 0.9
        mean = mean_peak(run, cluster)
        label = name if mean is None else f"{name}, mean peak {float(mean) / 1e6:.4g} ms"
        axes.plot(*zip(*points, strict=True), color=colour, linewidth=width, label=label)
        if cluster in pair and mean is not None:
            axes.axhline(float(mean) / 1e6, color=colour, linewidth=0.9, linestyle="--")
    if verdict.objective.kind.is_time and len(pair) == 1 and verdict.clause is None:
        limit = float(verdict.objective.limit) / 1e6
        axes.axhline(
            limit, color=PAGE_INK, linewidth=0.9, linestyle=":", label=f"limit {limit:.4g} ms"
        )
    axes.set_title(_title(verdict), fontweight="normal")
    axes.set(xlabel="time, ms", ylabel="Age-of-Model, ms")
    axes.set_xlim(0, run.horizon_ns / 1e6)
    axes.set_ylim(bottom=0)
    if len(instance.clusters) <= 12:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
