"""One browser for a test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from browser import Browser, program


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    if program() is None:
        reason = "Chromium is not installed"
        if os.environ.get("OLAF_REQUIRE_BROWSER"):
            pytest.fail(f"OLAF_REQUIRE_BROWSER is set, but {reason}")
        pytest.skip(reason)
    with Browser(tmp_path / "profile") as browser:
        yield browser
