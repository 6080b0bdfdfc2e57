"""Times, sizes and rates with their units, in files and options; the old keys still read."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import click
import pytest

from olaf.cli.main import run
from olaf.errors.usage import ConfigurationError
from olaf.jobs.reading import read_settings, write_toml
from olaf.jobs.section import Section
from olaf.jobs.settings import Settings
from olaf.values import units


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "job.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    "line",
    [
        'silent_after = "3s"',
        "silent_after_ms = 3000",
        'silent_after_ms = "3s"',
        'silent_after = "3000ms"',
    ],
)
def test_new_and_old_keys_say_the_same(tmp_path: Path, line: str) -> None:
    settings = read_settings(written(tmp_path, f"[switch]\n{line}\n"))
    assert settings.switch.silent_after_ms == 3000


def test_each_kind_is_read(tmp_path: Path) -> None:
    text = (
        '[worker]\nmtu = "1.5kB"\npatience = "20ms"\n[train]\ntime_limit = "2min"\nevery = "1s"\n'
    )
    text += '[server]\naggregate_within = "1s"\n[switch]\nuplink = "400kbit"\n'
    settings = read_settings(written(tmp_path, text))
    assert settings.worker.mtu_bytes == 1500
    assert settings.worker.patience_s == 0.02
    assert settings.train.time_limit_s == 120
    assert settings.train.every_s == 1
    assert settings.server.aggregate_ms == 1000
    assert settings.switch.uplink == "400kbit"


@pytest.mark.parametrize(
    ("table", "line", "told"),
    [
        (
            "switch",
            "silent_after = 3",
            "`switch.silent_after` = 3: a time needs its unit: ns, us, ms",
        ),
        ("switch", 'silent_after = "3"', "`switch.silent_after` = '3': a time needs its unit"),
        ("switch", 'silent_after = "3kB"', "'3kB': a time is a number and its unit"),
        ("switch", 'silent_after_ms = "soon"', "`switch.silent_after_ms` = 'soon': a time is a"),
        ("switch", 'uplink = "3"', "`switch.uplink` = '3': a rate needs its unit: bit, kbit"),
        ("switch", "downlink = 3", "`switch.downlink` = 3: a rate needs its unit: bit, kbit"),
        ("compare", 'uplink = "0"', "`compare.uplink` = '0': a rate needs its unit: bit, kbit"),
        ("worker", "mtu = 1500", "`worker.mtu` = 1500: a size needs its unit: B, kB"),
        ("switch", 'silent_after = "0s"', "`switch.silent_after` = 0s: must be at least 1ms"),
        ("switch", 'silent_after = "2s"\nsilent_after_ms = 1', "are both given: give one of them"),
        ("switch", 'silent_afer = "2s"', "did you mean `switch.silent_after`?"),
    ],
)
def test_a_wrong_one_is_refused_by_its_key(
    tmp_path: Path, table: str, line: str, told: str
) -> None:
    with pytest.raises(ConfigurationError) as error:
        read_settings(written(tmp_path, f"[{table}]\n{line}\n"))
    assert told in str(error.value)


def test_the_last_word_wins_in_either_spelling(tmp_path: Path) -> None:
    file = written(tmp_path, '[train]\ntime_limit = "5s"\n[switch]\nactive_ms = 7\n')
    settings = read_settings(
        file, {"train.time_limit_s": ("--time-limit", "90s")}, ["switch.active=2s"]
    )
    assert settings.train.time_limit_s == 90
    assert settings.switch.active_ms == 2000
    settings = read_settings(file, {"train.time_limit_s": ("--time-limit", "90")})
    assert settings.train.time_limit_s == 90


def test_the_configuration_is_written_with_units_and_reads_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "config --plain --set switch.silent_after=1500ms --set worker.mtu=9kB"
    assert run(line.split()) == 0
    text = capsys.readouterr().out
    assert 'silent_after = "1500ms"' in text
    assert 'mtu = "9kB"' in text
    assert 'patience = "20ms"' in text
    settings = read_settings(written(tmp_path, text))
    assert settings.switch.silent_after_ms == 1500
    assert write_toml(settings, comments=False) == text
    assert "_ms =" not in text
    assert "_s =" not in text


def test_every_amount_has_a_key_of_its_own() -> None:
    for field in Settings.model_fields.values():
        section = field.annotation
        assert isinstance(section, type)
        assert issubclass(section, Section)
        keys = [units.key_of(name) for name in section.model_fields]
        assert len(set(keys)) == len(keys), section


def test_every_default_is_written_and_read_as_it_is() -> None:
    for table, section in Settings():
        for name in type(section).model_fields:
            value = getattr(section, name)
            if units.unit_of(name) and value is not None:
                text = units.write(name, value)
                assert units.read(name, text) == Decimal(str(value)), f"{table}.{name}"


SCENARIO = """
seed = 1
{duration}

[[switches]]
name = "A"
queue = "olaf"
slots = 4
{rate}

[[groups]]
name = "S"
switch = "A"
clusters = 2
workers = 1
{group}
"""
OLD = {
    "duration": "duration_ns = 1_000_000_000",
    "rate": "rate_bps = 1_900_000",
    "group": "interval_ns = 100_000_000\npacket_bytes = 1030",
}
NEW = {
    "duration": 'duration = "1s"',
    "rate": 'rate = "1.9mbit"',
    "group": 'interval = "100ms"\npacket = "1030B"',
}


def test_a_scenario_says_the_same_in_both_ways(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = []
    for words in (OLD, NEW):
        file = written(tmp_path, SCENARIO.format(**words))
        for override in ("switches.A.rate=800kbit", "switches.A.rate_bps=800000"):
            line = ["simulate", "network", str(file), "--seed", "3", "--json", "--set", override]
            assert run(line) == 0
            answers.append(json.loads(capsys.readouterr().out))
    assert answers[0]
    assert all(answer == answers[0] for answer in answers)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"duration": "duration = 5"}, "duration = 5: a time needs its unit"),
        ({"rate": 'rate = "fast"'}, "switches[0]: rate = 'fast': a rate ends in bit"),
        ({"rate": "rate = 190"}, "switches[0]: rate = 190: a rate needs its unit"),
        ({"group": 'interval = "1s"\ninterval_ns = 1'}, "`interval` and `interval_ns` are both"),
    ],
)
def test_a_scenario_with_a_wrong_amount_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], told: str
) -> None:
    file = written(tmp_path, SCENARIO.format(**{**NEW, **change}))
    assert run(["simulate", "network", str(file)]) == 2
    assert told in capsys.readouterr().err


def test_a_question_to_the_verifier_says_the_same_in_both_ways(tmp_path: Path) -> None:
    from olaf.verify.reading import read

    new = '[queue]\nslots = 2\nservice = "2ms"\n[[cluster]]\nname = "a"\ninterval = "12.5ms"\n'
    old = "[queue]\nslots = 2\nservice_ms = 2\n[[cluster]]\nname = 'a'\ninterval_ms = 12.5\n"
    assert read(written(tmp_path, new)) == read(written(tmp_path, old))
    with pytest.raises(ConfigurationError, match=r"cluster.1.interval: a time needs its unit"):
        read(written(tmp_path, new.replace('"12.5ms"', "12.5")))


def test_jobs_that_share_say_the_same_in_both_ways(tmp_path: Path) -> None:
    from olaf.schedule.sharing import read_cluster

    text = 'controller = "127.0.0.1:1"\ncapacity = {{ 0 = 1 }}\n{}\n'
    text += (
        '[[jobs]]\njob = 1\nhosts = ["127.0.0.1:2"]\nresources = [0]\npattern = "x"\nsteps = 1\n'
    )
    new = 'silent = "1s"\nnetwork = { rate = "1600mbit", latency = "50us" }'
    old = "silent_ms = 1000\nnetwork = { bytes_per_second = 200000000, latency_ns = 50000 }"
    clusters = [read_cluster(written(tmp_path, text.format(words))) for words in (new, old)]
    assert clusters[0] == clusters[1]
    assert clusters[0].network.bytes_per_second == 200_000_000


@pytest.mark.parametrize("every", ["0.5", "500ms", "0.5s"])
def test_an_option_that_is_a_time_takes_a_unit(every: str) -> None:
    from olaf.cli.options import Seconds

    assert Seconds(least=0.01).convert(every, None, None) == 0.5
    with pytest.raises(click.BadParameter, match="must be at least 10ms"):
        Seconds(least=0.01).convert("1ms", None, None)
    with pytest.raises(click.BadParameter, match="a time is a number and its unit"):
        Seconds().convert("soon", None, None)
