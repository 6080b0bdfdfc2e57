"""Small runs, made once, and the tests that need torch."""

import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from small_runs import LOCAL, Olaf

HAS_TORCH = all(importlib.util.find_spec(name) for name in ("torch", "torchrl"))


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    if HAS_TORCH:
        return
    if os.environ.get("OLAF_REQUIRE_TORCH"):
        raise pytest.UsageError("OLAF_REQUIRE_TORCH is set, but torch is not installed")
    for item in items:
        if item.get_closest_marker("torch"):
            item.add_marker(pytest.mark.skip(reason="torch is not installed"))


@pytest.fixture
def olaf(tmp_path: Path) -> Olaf:
    return Olaf(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Olaf:
    """A folder with ``runs/latest``, a short run of CartPole without a network."""
    made = Olaf(tmp_path_factory.mktemp("trained"))
    made(*LOCAL, "--updates=12")
    return made
