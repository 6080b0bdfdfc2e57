"""A training program learns through the protocols of the papers, which `OLAF_PROTOCOL` chooses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from summing import torchrun

from olaf import _olaf
from olaf.sums.protocols import PROTOCOLS

pytestmark = [pytest.mark.torch, pytest.mark.timeout(200)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "ddp_sum.py"
RANKS = 4
PAPERS = [name for name, protocol in PROTOCOLS.items() if protocol.sums_floats]


@pytest.mark.parametrize("protocol", PAPERS)
def test_the_example_learns(protocol: str) -> None:
    engines = [protocol, *PROTOCOLS[protocol].beside]
    switch = _olaf.Switch(json.dumps({"engines": engines, "listen": "127.0.0.1:0"}))
    switch.start()
    try:
        ran = torchrun(EXAMPLE, ranks=RANKS, switch=switch.address, OLAF_PROTOCOL=protocol)
        counted = json.loads(switch.stats())[protocol]
    finally:
        switch.stop()
    assert ran.returncode == 0, ran.stderr[-3000:]
    (loss,) = re.findall(r"loss (\S+) after 200 steps", ran.stdout)
    # The function's own variance is 0.17.
    assert float(loss) < 0.03
    # Each of 200 steps has at least one sum, to which every rank sends a piece.
    assert counted["pieces"]["received"] >= 200 * RANKS
