"""Decides whether tests of the torch learner run, and never keeps quiet about it."""

import importlib.util
import os
from collections.abc import Iterable

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # as a worker's process has it; read by torch
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

MISSING = [name for name in ("torch", "torchrl") if importlib.util.find_spec(name) is None]
REQUIRED = "OLAF_REQUIRE_TORCH"


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    if not MISSING:
        return
    for item in items:
        if item.get_closest_marker("torch"):
            item.add_marker(pytest.mark.skip(reason=f"{' and '.join(MISSING)} not installed"))


def pytest_report_collectionfinish(items: list[pytest.Item]) -> str:
    waiting = sum(item.get_closest_marker("torch") is not None for item in items)
    if not MISSING:
        return f"torch: installed, {waiting} of its tests run"
    if os.environ.get(REQUIRED):
        raise pytest.UsageError(f"{REQUIRED} is set, but {' and '.join(MISSING)} not installed")
    return (
        f"TORCH IS NOT INSTALLED: {waiting} of its tests do NOT run. "
        f"`scripts/env torch` lets them run, {REQUIRED}=1 insists"
    )
