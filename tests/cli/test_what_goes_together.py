"""What `olaf train` chooses where nobody did, because it follows from another setting."""

from pathlib import Path

import pytest

from olaf.jobs.reading import read_settings, write_toml
from olaf.jobs.rehearsal import with_power
from olaf.runs.settings import described, tables_of


@pytest.mark.parametrize(
    ("given", "push_every", "power"),
    [
        ([], "pass", 0.33),
        (["worker.push_every=turn"], "turn", 0.7),
        (["worker.turns_per_push=2"], "pass", 0.7),
        (["server.staleness_power=0.5"], "pass", 0.5),
        (["server.aggregate=round"], "turn", 0.7),
        (["server.aggregate=periodic"], "turn", 0.7),
        (["server.aggregate=round", "worker.push_every=pass"], "pass", 0.7),
    ],
)
def test_passes_are_for_asynchronous_training(
    given: list[str], push_every: str, power: float
) -> None:
    settings = with_power(read_settings(overrides=given))
    assert settings.worker.push_every == push_every
    assert settings.server.staleness_power == power


def test_a_written_configuration_leaves_both_to_follow(tmp_path: Path) -> None:
    file = tmp_path / "olaf.toml"
    file.write_text(write_toml(read_settings()))
    settings = with_power(read_settings(file))
    assert (settings.worker.push_every, settings.server.staleness_power) == ("pass", 0.33)


def test_a_run_of_before_there_were_passes_goes_on_with_whole_turns() -> None:
    line = described(read_settings())
    del line["settings"]["worker"]["push_every"]
    settings = with_power(read_settings(base=tables_of(line)))
    assert settings.worker.push_every == "turn"
    assert settings.server.staleness_power == 0.7
