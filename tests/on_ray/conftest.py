"""Decides whether tests on Ray run, and never keeps quiet about it. `make test-ray` insists."""

import importlib.util
import os
from collections.abc import Iterable

import pytest

MISSING = importlib.util.find_spec("ray") is None
REQUIRED = "OLAF_REQUIRE_RAY"


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    if MISSING:
        for item in items:
            if item.get_closest_marker("ray"):
                item.add_marker(pytest.mark.skip(reason="ray not installed"))


def pytest_report_collectionfinish(items: list[pytest.Item]) -> list[str]:
    waiting = sum(item.get_closest_marker("ray") is not None for item in items)
    if not waiting or not MISSING:
        return []
    if os.environ.get(REQUIRED):
        raise pytest.UsageError(f"{REQUIRED} is set, but ray is not installed")
    return [f"RAY IS NOT INSTALLED: {waiting} tests do NOT run. `scripts/env ray` lets them run"]
