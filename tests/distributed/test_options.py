"""The options of the backend `olaf`: from the program, then from the environment."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.torch

SWITCH = {"OLAF_SWITCH": "10.0.0.1:5555"}


def test_the_environment_is_enough() -> None:
    from olaf.torch.options import Settings, settings

    assert settings(None, SWITCH) == Settings(switch="10.0.0.1:5555")
    more = {"OLAF_JOB": "7", "OLAF_PARTIAL": "1", "OLAF_DEADLINE_S": "0.5"}
    connection = {"OLAF_CONNECTION": '{"window": 8}', "OLAF_CONNECT_TIMEOUT_S": "3"}
    chosen = settings(None, SWITCH | more | connection)
    assert (chosen.job, chosen.partial, chosen.deadline_s) == (7, True, 0.5)
    assert (chosen.connection, chosen.connect_timeout_s) == ({"window": 8}, 3.0)
    assert settings(None, SWITCH | {"OLAF_FALL_BACK": "gloo"}).falls_back


def test_the_program_has_the_last_word() -> None:
    from olaf.torch import SumOptions
    from olaf.torch.options import settings

    given = SumOptions(switch="10.0.0.2:1", job=2, partial=False)
    chosen = settings(given, SWITCH | {"OLAF_JOB": "7", "OLAF_PARTIAL": "1"})
    assert (chosen.switch, chosen.job, chosen.partial) == ("10.0.0.2:1", 2, False)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "set OLAF_SWITCH=host:port"),
        (SWITCH | {"OLAF_JOB": "many"}, "OLAF_JOB = 'many': must be a number"),
        (SWITCH | {"OLAF_JOB": "70000"}, "OLAF_JOB = 70000: must be from 1 to 65535"),
        (SWITCH | {"OLAF_PARTIAL": "perhaps"}, "OLAF_PARTIAL = 'perhaps': must be 1 or 0"),
        (SWITCH | {"OLAF_FALL_BACK": "nccl"}, "OLAF_FALL_BACK = 'nccl': must be 'gloo' or empty"),
        (SWITCH | {"OLAF_PROTOCOL": "tcp"}, "OLAF_PROTOCOL = 'tcp': must be one of reduce"),
        (SWITCH | {"OLAF_CONNECTION": "{"}, "OLAF_CONNECTION is not JSON"),
        (SWITCH | {"OLAF_CONNECTION": "[]"}, "must be a JSON object"),
        (SWITCH | {"OLAF_PARTIAL": "1", "OLAF_FALL_BACK": "gloo"}, "exclude each other"),
    ],
)
def test_a_wrong_value_is_named(environment: dict[str, str], said: str) -> None:
    from olaf.torch.options import settings

    with pytest.raises(ValueError, match="OLAF_") as error:
        settings(None, environment)
    assert said in str(error.value)


def test_options_of_another_backend_are_refused() -> None:
    from olaf.torch.options import settings

    other: Any = object()
    with pytest.raises(TypeError, match=r"olaf\.torch\.SumOptions"):
        settings(other, SWITCH)
