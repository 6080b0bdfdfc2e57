"""Keys without effect are errors that say what to do; a command line's lists need no brackets."""

from pathlib import Path

import pytest
from commands import olaf

from olaf.api.training import train
from olaf.errors.usage import ConfigurationError
from olaf.jobs.effects import refuse_useless
from olaf.jobs.reading import read_settings
from olaf.jobs.settings import Settings


def refused(*overrides: str) -> str:
    """What is said about the last of these settings; all others are fine."""
    settings = read_settings(overrides=overrides)
    refuse_useless(settings, {}, overrides[:-1])
    with pytest.raises(ConfigurationError) as raised:
        refuse_useless(settings, {}, overrides)
    said = str(raised.value)
    assert said.startswith(f"--set {overrides[-1]}: `")
    assert "leave" in said
    return said


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["train.local=true", "train.workers=4"], "`train.local` = true"),
        (["train.local=true", "switch.queue=fifo"], "no switch"),
        (["train.local=true", "switch.uplink=2mbit"], "`switch.uplink`"),
        (["train.local=true", "worker.patience=1s"], "`worker.patience_s`"),
        (["leaf.slots=4"], "--leaves N"),
        (["tcp.timeout=3s"], "--transport tcp"),
        (["train.transport=tcp", "switch.queue=fifo"], "a plain TCP server does without it"),
        (["train.transport=tcp", "worker.ecn=true"], "a plain TCP server does without it"),
        (["switch.reduce.jobs=2"], "olaf switch --engines"),
        (["switch.atp_server.jobs=2"], "olaf switch --engines"),
        (["ray.gpus_per_worker=1"], "--on ray"),
        (["slurm.nodes=2"], "--on slurm"),
        (["train.on=ray", "slurm.nodes=2"], "--on slurm"),
        (["compare.seeds=1,2"], "`olaf compare`"),
        (["worker.seed=3"], "--seed"),
        (["worker.switch=1.2.3.4:5"], "chooses it for each process"),
        (["server.aggregate_within=1s"], "--aggregate periodic or round"),
        (["server.aggregate=round", "server.aggregate_updates=4"], "--aggregate periodic"),
        (["server.gate_margin=3"], "best or recent"),
        (["worker.threshold=5ms"], "--transmission paper"),
        (["worker.unsent=retry"], "--transmission paper or fair"),
        (["worker.turns_per_push=2", "worker.push_every=turn"], "`worker.turns_per_push`"),
        (["switch.credit_timeout=1s"], "--credits N"),
        (["switch.downlink_limit_datagrams=9"], "--downlink RATE"),
        (["train.evaluate_episodes=3"], "--evaluate-every N"),
    ],
)
def test_a_key_without_effect_says_what_to_do(overrides: list[str], says: str) -> None:
    assert says in refused(*overrides)


@pytest.mark.parametrize(
    "overrides",
    [
        ["train.local=true", "worker.push_every=turn", "train.leaves=0", "switch.gate=off"],
        ["train.leaves=2", "leaf.slots=4"],
        ["train.transport=tcp", "tcp.timeout=3s", "switch.uplink=2mbit"],
        ["train.on=srun", "slurm.nodes=2"],
        ["server.aggregate=periodic", "server.aggregate_updates=4", "server.aggregate_within=1s"],
        ["worker.transmission=paper", "worker.threshold=5ms", "worker.unsent=retry"],
    ],
)
def test_keys_with_an_effect_and_what_is_off_anyway_are_fine(overrides: list[str]) -> None:
    refuse_useless(read_settings(overrides=overrides), {}, overrides)


def test_what_a_file_says_for_other_runs_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "olaf.toml"
    file.write_text('[switch]\nqueue = "fifo"\n')
    arguments = ("train", "--local", "--print-config")
    assert olaf(*arguments, folder=tmp_path).returncode == 0
    done = olaf(*arguments, "--queue", "fifo", folder=tmp_path)
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert "--queue: `switch.queue` has no effect with `train.local` = true" in said


def test_a_call_from_python_is_told_too() -> None:
    with pytest.raises(
        ValueError, match=r"olaf\.train\(workers=4\): `train\.workers` has no effect"
    ):
        train("CartPole-v1", local=True, workers=4)


@pytest.mark.parametrize("value", ["64,32", "[64, 32]", "[64,32]", "(64, 32)"])
def test_a_list_may_be_written_without_brackets(value: str) -> None:
    assert tuple(hidden_of(f"learner.hidden={value}")) == (64, 32)
    assert tuple(hidden_of("learner.hidden=64")) == (64,)
    settings = read_settings(overrides=["compare.seeds=3", "switch.engines=[queue,reduce]"])
    assert settings.compare.seeds == [3]
    assert settings.switch.engines == ["queue", "reduce"]


def hidden_of(override: str) -> tuple[int, ...]:
    found: tuple[int, ...] = read_settings(overrides=[override]).learner.model_dump()["hidden"]
    return found


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("learner.hidden=big", "`learner.hidden` = 'big': input should be a valid integer"),
        ("switch.shares=1:3", "write it as a table: {name = value}"),
        ("learner.module=no:such", "`learner.module` = 'no:such' has no effect with learner"),
        ("learner.discount=2", "`learner.discount` = 2.0: must be from 0 to 1"),
        ("learner.recurrent=lstm", "`learner.recurrent` = 'lstm' has no effect"),
    ],
)
def test_messages_name_the_key_and_where_it_was_written(override: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        read_settings(overrides=[override])
    assert str(raised.value).startswith(f"--set {override}: ")
    assert says in str(raised.value)


def test_a_file_s_list_must_be_one_and_the_message_shows_how(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text('[learner]\nhidden = "64,64"\n')
    with pytest.raises(ConfigurationError, match=r"write it as a list: \[64, 64\]"):
        read_settings(file)


def test_the_rules_name_keys_that_exist() -> None:
    from olaf.jobs.effects import RULES

    for rule in RULES:
        for key in (*rule.keys, *rule.but):
            section, _, field = key.partition(".")
            fields = type(getattr(Settings(), section)).model_fields
            assert "*" in field or field in fields, key
