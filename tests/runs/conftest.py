"""Small runs, made once."""

from pathlib import Path

import pytest
from small_runs import LOCAL, Olaf


@pytest.fixture
def olaf(tmp_path: Path) -> Olaf:
    return Olaf(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Olaf:
    """A folder with ``runs/latest``, a short run of CartPole without a network."""
    made = Olaf(tmp_path_factory.mktemp("trained"))
    made(*LOCAL, "--updates=12")
    return made
