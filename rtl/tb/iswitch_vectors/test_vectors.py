"""Gradient vectors through the verilated accelerator: the bits of each sum, and the cycles."""

from __future__ import annotations

import json
import subprocess

import pytest
from bench import RTL
from verilated import verilated

# They share a build.
pytestmark = pytest.mark.xdist_group("iswitch_vectors")


@pytest.fixture(scope="module", name="built")
def _built() -> str:
    program = RTL / "tb" / "iswitch_vectors" / "vectors.cpp"
    return verilated("iswitch_accelerator", program, undefined="unique", name="iswitch_vectors")


@pytest.mark.long
@pytest.mark.parametrize(
    ("workers", "packet_floats", "beats"), [(4, 366, 46), (2, 300, 38), (4, 8, 2), (1, 8, 2)]
)
def test_one_beat_a_cycle(built: str, workers: int, packet_floats: int, beats: int) -> None:
    packets = 200
    numbers = (workers, packets * packet_floats, packet_floats, 0, 5)
    run = [built, *(str(number) for number in numbers)]
    found = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    assert found["wrong"] == 0
    assert found["packets"] == packets * workers
    assert found["cycles_in"] == found["beats"] == packets * workers * beats
    assert found["latency_most"] == 9, "cycles from the last beat in to the first beat out"


def test_a_packet_of_one_beat_takes_two_cycles(built: str) -> None:
    run = [built, "4", "1000", "1", "0", "5"]
    found = json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)
    assert found["wrong"] == 0
    assert 1.9 < found["cycles_in"] / found["packets"] <= 2
