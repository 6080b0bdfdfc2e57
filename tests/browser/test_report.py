"""The report of a run in a real browser: on a desk and on a phone, light and dark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from browser import Browser
from olaf.errors.outcome import Exit
from olaf.jobs.progress import Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.result import conclude, write_run
from olaf.jobs.supervisor import Ended, Printed, Said
from olaf.jobs.training import Outcome
from olaf.report.page import run_page

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

TALLEST_TEXT_PX = (
    "Math.max(...[...document.querySelectorAll('figure svg text')]"
    ".map(text => text.getBoundingClientRect().height))"
)
COLOUR = "getComputedStyle(document.querySelector('{0}')).{1}"


def report(folder: Path) -> str:
    """The page of a failed run that had learnt for a while, with long words and lines."""
    settings = read_settings(overrides=[f"train.out='{folder}'", "train.until_reward=190"])
    progress = Progress(settings)
    for second in range(1, 30):
        told: dict[str, Any] = {
            "event": "update",
            "worker": second % 8,
            "updates": second,
            "steps": 100 * second,
            "episode_rewards": [float(second)],
            "episode_steps": [second],
            "episode_numbers": [{"a_very_long_name_of_a_number_of_an_environment": 0.5}],
            "losses": {"entropy": 1 / second, "explained_variance": -0.5},
            "reward": float(second),
        }
        progress.take(Said(f"worker {second % 8}", 1, told), float(second))
        progress.sample(float(second))
    for worker in range(8):
        progress.take(Printed(f"worker {worker}", 1, f"{'deep' * 60}Error: 'x'"), 31.0)
        progress.take(Ended(f"worker {worker}", 1, 1, False, None), 31.0)
    reason = f"no worker is left: {'deep' * 60}Error: 'x'"
    model = folder / "model.npz"
    outcome = Outcome("failed", reason, Exit.FAILED, 31.0, 29.0, progress, {}, model)
    return run_page(write_run(folder, outcome, conclude(outcome)))


@pytest.mark.parametrize("width", [390, 1280])
def test_the_report_fits_its_window_and_is_light_or_dark(
    browser: Browser, tmp_path: Path, width: int
) -> None:
    file = tmp_path / "report.html"
    file.write_text(report(tmp_path), encoding="utf-8")
    papers = set()
    for dark in (False, True):
        browser.open(file.as_uri(), width=width, dark=dark)
        assert browser.value("document.documentElement.scrollWidth") <= width
        assert browser.value("document.querySelectorAll('figure').length") >= 5
        assert browser.value(TALLEST_TEXT_PX) > 11  # a plot's title, on a phone, too
        ink, paper = (browser.value(COLOUR.format("body", k)) for k in ("color", "backgroundColor"))
        assert ink != paper
        papers.add(paper)
        assert browser.value(COLOUR.format("h1.bad", "color")) != ink
    assert len(papers) == 2
    assert browser.thrown == []
    assert browser.requested == [file.as_uri()] * 2
