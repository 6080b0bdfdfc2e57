"""The list of queue disciplines is the core's, in every place that shows one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click
import pytest

from olaf import _olaf
from olaf.cli import compare, replay, roles, train
from olaf.cli.main import run
from olaf.jobs import queues
from olaf.jobs.settings import CompareSettings, LeafSettings

ROOT = Path(__file__).resolve().parents[2]
LISTED = [name for name, _ in _olaf.queues()]


def option(command: click.Command, name: str) -> click.Option:
    (found,) = [p for p in command.params if name in p.opts and isinstance(p, click.Option)]
    return found


def test_every_list_is_the_core_s() -> None:
    assert list(queues.NAMES) == LISTED
    for command in (roles.switch, train.train):
        assert option(command, "--queue").metavar == "|".join(LISTED)
    engine: Any = option(replay.replay, "--engine").type
    assert list(engine.choices) == LISTED
    assert all(name in str(option(compare.compare, "--queues").help) for name in LISTED)


@pytest.mark.parametrize("name", LISTED)
def test_each_can_be_chosen(name: str) -> None:
    assert LeafSettings(queue=name).queue == name
    assert CompareSettings(queues=[name]).queues == [name]


def test_the_configuration_explains_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["config"]) == 0
    told = " ".join(re.sub(r"^# ", "", line) for line in capsys.readouterr().out.splitlines())
    for name, about in _olaf.queues():
        assert f"{name} {about}" in told


def test_what_is_none_is_refused_with_the_list() -> None:
    with pytest.raises(ValueError, match=", ".join(LISTED)):
        LeafSettings(queue="lifo")
    with pytest.raises(ValueError, match=" or ".join([", ".join(LISTED[:-1]), LISTED[-1]])):
        _olaf.Switch('{"upstream": "127.0.0.1:1", "queue": "lifo"}')


def test_the_reference_names_all_of_them() -> None:
    text = (ROOT / "docs" / "reference" / "statistics.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `queue` \|([^|]*)\|", text, re.MULTILINE)
    assert re.findall(r"`(\w+)`", row) == LISTED
