"""Shows a running job on a terminal: the reward, the queue, the clusters."""

from __future__ import annotations

import time
from collections import deque

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from olaf.drawing.braille import bar, curve
from olaf.jobs.instruments import phrases
from olaf.jobs.progress import Happening, Progress
from olaf.values.numbers import counted, score

REDRAW_S = 0.4
"""Redrawing takes CPU time from the workers, so the screen is redrawn this rarely."""

EVENTS = 5
FRAME = 4
"""Columns of the panel's frame."""
BETWEEN = 4
"""Columns between fates and clusters."""
LEAST_BAR = 4
MOST_BAR = 30
FATES = (
    ("sent_alone", "left alone", "green"),
    ("merged", "left merged", "cyan"),
    ("replaced", "replaced", "blue"),
    ("filtered", "filtered", "magenta"),
    ("dropped", "dropped", "red"),
    ("rejected", "rejected", "red"),
    ("waiting", "waiting", "yellow"),
)


class Display:
    """Redraws one part of the screen in place; a context manager."""

    def __init__(self, console: Console, title: str) -> None:
        self._title = title
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._events: deque[Happening] = deque(maxlen=EVENTS)
        self._drawn = float("-inf")
        self._phase = ""

    def happened(self, happening: Happening) -> None:
        """Keep an event for the next drawing."""
        if happening.echo:
            return
        self._events.append(happening)
        self._drawn = float("-inf")

    def stands(self, progress: Progress, phase: str) -> None:
        """Draw, if the last drawing is old enough."""
        now = time.monotonic()
        if now < self._drawn + REDRAW_S and phase == self._phase:
            return
        self._drawn, self._phase = now, phase
        self._live.update(self._draw(progress, phase), refresh=True)

    def __enter__(self) -> Display:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def _draw(self, progress: Progress, phase: str) -> RenderableType:
        width = self._console.width
        parts: list[RenderableType] = [
            _headline(progress, phase, self._title),
            _reward(progress, width),
        ]
        if line := _learning(progress, width - FRAME):
            parts.append(line)
        parts.append(self._side(progress, width - FRAME))
        if self._events:
            parts.append(_events(self._events))
        return Panel(Group(*parts), title="olaf", title_align="left", border_style="dim")

    def _side(self, progress: Progress, room: int) -> RenderableType:
        """Fates and clusters: side by side where there is room."""
        clusters = _clusters(progress)
        bare = self._console.measure(_fates(progress, 0)).maximum
        left = room - bare - self._console.measure(clusters).maximum - BETWEEN
        if left < LEAST_BAR:
            return Group(_fates(progress, min(room - bare, MOST_BAR)), clusters)
        side = Table.grid(padding=(0, 2))
        side.add_row(_fates(progress, min(left, MOST_BAR)), clusters)
        return side


def _headline(progress: Progress, phase: str, title: str) -> Text:
    text = Text(title + "\n", style="dim")
    text.append(f"{progress.now_s:6.1f} s  ", style="bold")
    text.append(phase, style="bold green" if phase == "training" else "bold yellow")
    text.append(
        f"   updates {progress.updates:,} ({progress.updates_per_s:.0f}/s)"
        f"   steps {progress.steps:,}   episodes {len(progress.episodes):,}"
        f"   model version {progress.version:,}"
    )
    return text


def _reward(progress: Progress, width: int) -> RenderableType:
    reward = progress.reward_so_far
    text = Text("reward ", style="bold")
    if reward is None:
        text.append("no episode has ended yet", style="dim")
    else:
        best = progress.best_reward
        text.append(score(reward), style="bold green")
        window = progress.settings.train.reward_window
        last = counted(min(window, len(progress.episodes)), "episode")
        text.append(f"  mean of the last {last}")
        text.append("" if best is None else f", best {score(best)}", style="dim")
    points = [(s.at_s, s.reward) for s in progress.samples if s.reward is not None]
    plot = Text("\n".join(curve(points, width - 6, 8)), style="green")
    return Group(text, plot)


def _learning(progress: Progress, width: int) -> Text | None:
    """The learners' numbers in one line: as many as there is room for."""
    learning = progress.learning
    text = Text("learning", style="bold")
    for said in phrases(learning.latest, learning.steps, learning.numbers):
        if len(text) + len(said) + 2 > width:
            break
        text.append(f"  {said}", style="not bold")
    return text if len(text) > len("learning") else None


def _fates(progress: Progress, room: int) -> Table:
    counts = progress.switch_counts()
    total = max(sum(counts.values()), 1)
    used, slots = progress.queue
    table = Table.grid(padding=(0, 1))
    table.add_row(
        Text("queue", style="bold"),
        f"{used}/{slots}",
        Text(bar(used / max(slots, 1), room), "yellow"),
    )
    for key, name, style in FATES:
        count = counts.get(key, 0)
        table.add_row(name, f"{count:,}", Text(bar(count / total, room), style))
    return table


def _clusters(progress: Progress) -> Table:
    table = Table(box=None, padding=(0, 1), header_style="bold")
    for column in ("cluster", "age", "mean", "peaks", "updates", "behind"):
        table.add_column(column, justify="right", no_wrap=True)
    clusters = sorted(progress.clusters.items())
    for number, one in clusters[:7]:
        table.add_row(
            str(number),
            _age(one.age_s),
            _age(one.mean_s),
            _age(one.peak_s),
            f"{one.contributions:,}",
            "-" if one.staleness_mean is None else f"{one.staleness_mean:.1f}",
        )
    if len(clusters) > 7:
        table.add_row(f"+{len(clusters) - 7}")
    return table


def _age(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.0f} ms"


def _events(events: deque[Happening]) -> Text:
    text = Text()
    for happening in events:
        line = f"{happening.at_s:6.1f} s  {happening.text}\n"
        text.append(line, style="yellow" if happening.trouble else "dim")
    text.rstrip()
    return text
