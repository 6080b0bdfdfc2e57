"""SwitchML, the baseline of two papers, as profiles of `reduce`."""

from __future__ import annotations

import numpy as np
import pytest
from workers import switch_here, together

import olaf
from olaf import SumConnection


@pytest.mark.parametrize("protocol", ["switchml-atp", "switchml-trio"])
def test_switchml_sums_in_fixed_point(protocol: str) -> None:
    def work(connection: SumConnection) -> dict[str, object]:
        array = np.linspace(-1, 1, 30_000, dtype=np.float32)
        connection.all_reduce(array)
        expected = 3 * np.linspace(-1, 1, 30_000, dtype=np.float32)
        assert np.abs(array - expected).max() <= 2e-8 + 2.0**-22
        coarse = connection.all_reduce(np.full(4, 1e-9, np.float32))
        assert (coarse == 0).all(), "below the step of the scale"
        assert (connection.all_reduce(np.full(4, 2, np.int32), "max") == 2).all()
        return connection.stats()

    with switch_here() as switch:
        stats = together(switch.address, 3, work, protocol=protocol)
    lanes = {"switchml-atp": 32, "switchml-trio": 256}[protocol]
    for one in stats:
        pieces = one["pieces"]
        assert pieces["sent"] == -(-30_000 // lanes) + 2  # type: ignore[index]
        assert one["asks"] == 0, "nobody asks"


def test_a_timer_alone_recovers_what_is_lost() -> None:
    loss = {"probability": 0.01, "seed": 3}

    def work(connection: SumConnection) -> int:
        array = np.ones(50_000, np.float32)
        assert np.allclose(connection.all_reduce(array), 2)
        stats = connection.stats()
        assert stats["asks"] == 0
        return int(stats["pieces"]["resent"])

    with switch_here(receive_loss=loss) as switch:
        resent = together(switch.address, 2, work, protocol="switchml-atp", receive_loss=loss)
    assert sum(resent) > 10


def test_without_recovery_a_loss_ends_with_the_time_out() -> None:
    def work(connection: SumConnection) -> str:
        with pytest.raises((TimeoutError, olaf.SumError)) as error:
            connection.all_reduce(np.ones(50_000, np.float32), timeout_s=1.0)
        return str(error.value)

    with switch_here(receive_loss={"probability": 0.1, "seed": 3}) as switch:
        together(switch.address, 2, work, protocol="switchml-trio")


def test_an_unknown_protocol_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="switchml-atp"):
        olaf.connect_sum("127.0.0.1:1", protocol="switchml")
