"""What a person sees of a run while it goes: the live display, plain lines, and no echoes."""

import io
import re
from typing import Any

import pytest
from rich.console import Console

from olaf.cli.display import Lines
from olaf.cli.live import Display
from olaf.jobs.progress import Happening, Progress
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Said

LOSSES = {"entropy": 1.21, "kl": 0.0081, "explained_variance": 0.85, "gradient_norm": 0.43}


def turn(worker: int = 0, updates: int = 1, reward: float = 0.00312, **more: Any) -> Said:
    message = {
        "event": "update",
        "worker": worker,
        "updates": updates,
        "steps": updates * 100,
        "episode_rewards": [reward],
        "episode_steps": [230],
        "episode_numbers": [{"success": 1.0}],
        "losses": LOSSES,
        "reward": reward,
        **more,
    }
    return Said(f"worker {worker}", 1, message)


def progress_of_a_turn() -> Progress:
    progress = Progress(Settings())
    progress.take(turn(), 1.0)
    progress.sample(1.0)
    progress.take(turn(updates=2), 2.0)
    fates = dict.fromkeys(("sent_alone", "merged", "replaced"), 1_234_567)
    queue = {"used": 3, "slots": 8}
    switch = {"received": 9, "departures": 9, "fates": fates, "queue": queue}
    progress.take(Said("switch", 1, {"event": "stats", "stats": switch}), 2.0)
    cluster = {
        **dict.fromkeys(("aom_now_ns", "aom_mean_ns", "aom_peak_mean_ns"), 1.5e9),
        "cluster": 0,
        "deliveries": 3,
        "contributions": 1_234_567,
        "staleness_mean": 12.3,
        "staleness_max": 40,
        "clock_error_ns": 1,
    }
    server = {"jobs": [{"job": 1, "version": 9, "clusters": [cluster]}]}
    progress.take(Said("server", 1, {"event": "stats", "stats": server}), 2.0)
    progress.sample(2.0)
    return progress


def shown(width: int) -> list[str]:
    file = io.StringIO()
    console = Console(file=file, width=width, height=60, force_terminal=True, color_system=None)
    with Display(console, "CartPole-v1") as display:
        display.stands(progress_of_a_turn(), "training")
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", file.getvalue()).splitlines()


@pytest.mark.parametrize("width", [80, 140])
def test_the_display_has_one_line_of_the_learners_numbers(width: int) -> None:
    lines = shown(width)
    (line,) = {line.strip("│ ") for line in lines if "learning" in line}
    assert line.startswith("learning  length 230 steps  success 100 %  entropy 1.21")
    assert ("gradient norm 0.43" in line) == (width == 140)  # what has no room is left out
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [60, 80, 140])
def test_nothing_is_cut_whatever_the_width_and_the_room_is_used(width: int) -> None:
    lines = shown(width)
    text = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert "…" not in text
    for word in ("left merged", "cluster", "peaks", "behind", "1,234,567", "12.3"):
        assert word in text
    (heads,) = {line for line in lines if "behind" in line}
    assert ("queue" in heads) == (width > 80)  # side by side, or one below the other
    assert max(len(line.rstrip(" │").lstrip("│ ")) for line in lines) > width - 16


def test_a_tiny_reward_is_shown_with_the_digits_that_tell() -> None:
    assert any("reward 0.00312  mean of the last 2 episodes" in line for line in shown(140))
    out = io.StringIO()
    Lines(out).stands(progress_of_a_turn(), "training")
    assert "  reward 0.00312  age" in out.getvalue()


def test_plain_lines_have_the_learners_numbers_every_few_status_lines() -> None:
    out = io.StringIO()
    lines = Lines(out, every_s=1.0)
    progress = progress_of_a_turn()
    for second in range(11):
        progress.now_s = float(second)
        lines.stands(progress, "training")
    told = out.getvalue().splitlines()
    assert sum("  updates 2 " in line for line in told) == 11
    learning = [line.strip() for line in told if "learning:" in line]
    assert [line[:5] for line in learning] == ["0.0 s", "5.0 s", "10.0 "]
    assert learning[0].endswith("explained variance 0.85, gradient norm 0.43")


def said_by(worker: int, at_s: float, progress: Progress, **message: Any) -> Happening:
    happening = progress.take(Said(f"worker {worker}", 1, message), at_s)
    assert happening is not None
    return happening


def test_what_holds_for_all_workers_all_the_time_is_said_once() -> None:
    progress = Progress(Settings())
    path = {"event": "path", "mtu_bytes": 9000, "segment_lanes": 1}
    said = [said_by(worker, 10.0 * worker, progress, **path) for worker in range(8)]
    assert [happening.echo for happening in said] == [False] + [True] * 7
    assert said[0].text.endswith("packets of 9,000 bytes: segments of 1 value")
    # Another path is news, and so is a switch that is silent again.
    assert not said_by(3, 90.0, progress, **{**path, "mtu_bytes": 1500}).echo
    silent = {"event": "switch_silent", "address": "x"}
    assert [said_by(0, at_s, progress, **silent).echo for at_s in (1.0, 2.0, 50.0)] == [
        False, True, False,
    ]  # fmt: skip
