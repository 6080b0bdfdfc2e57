"""docs/doctor.md explains each line that `olaf doctor` prints."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
SOURCES = [*(ROOT / "python/olaf/doctor").glob("*.py"), ROOT / "python/olaf/cli/doctor.py"]
TELLS = re.compile(r"section\.(?:ok|note|fix|check)\(\s*\"([^\"]+)\"|Finding\(\s*\"([^\"]+)\"")


def test_the_page_explains_each_line_of_the_output() -> None:
    told = {a or b for source in SOURCES for a, b in TELLS.findall(source.read_text("utf-8"))}
    assert {"psutil", "answers", "clock", "links"} <= told
    rows = re.findall(r"^\| ([a-zA-Z, ]+) \|", PAGE, re.MULTILINE)
    explained = {name.strip() for row in rows for name in row.split(",")}
    assert told <= explained, told - explained
