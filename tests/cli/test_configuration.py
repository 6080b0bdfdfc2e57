import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from olaf.errors.usage import ConfigurationError
from olaf.jobs.queues import NAMES
from olaf.jobs.reading import read_settings, write_toml
from olaf.jobs.section import Section
from olaf.jobs.settings import LearnerSettings, Settings
from olaf.rl.learner import LearnerConfig
from olaf.runs.settings import described, tables_of


def refused(
    tmp_path: Path,
    text: str = "",
    options: dict[str, tuple[str, Any]] | None = None,
    overrides: Sequence[str] = (),
) -> str:
    file = tmp_path / "job.toml"
    file.write_text(text)
    with pytest.raises(ConfigurationError) as error:
        read_settings(file, options, overrides)
    assert error.value.code == 2
    return str(error.value).replace(str(tmp_path) + "/", "")


def test_a_budget_of_steps_replaces_the_default_number_of_updates() -> None:
    by_steps = read_settings(overrides=["train.steps=5000"])
    assert (by_steps.train.steps, by_steps.train.updates) == (5000, None)
    both = read_settings(overrides=["train.steps=5000", "train.updates=70"])
    assert (both.train.steps, both.train.updates) == (5000, 70)
    # A resumed run without that budget has the default again.
    anew = read_settings(overrides=["train.steps=off"], base=tables_of(described(by_steps)))
    assert anew.train.updates == Settings().train.updates is not None
    # And a file that `olaf config` wrote leaves the number of updates to follow.
    assert "# updates = 16000" in write_toml(Settings())


def test_an_unknown_key_is_quoted_with_its_line_and_the_near_one(tmp_path: Path) -> None:
    text = "[switch]\nslots = 4\n\n[worker]\npatiense_s = 1\n"
    assert refused(tmp_path, text) == (
        "job.toml:5: unknown key `worker.patiense_s`; did you mean `worker.patience`?"
    )


def test_a_key_in_the_wrong_section_is_sent_to_the_right_one(tmp_path: Path) -> None:
    message = refused(tmp_path, "[train]\nslots = 4\n")
    assert message == "job.toml:2: unknown key `train.slots`; did you mean `switch.slots`?"


def test_an_unknown_section_suggests_the_near_one(tmp_path: Path) -> None:
    assert "unknown key `swich`; did you mean `switch`?" in refused(tmp_path, "[swich]\na = 1\n")


def test_a_key_like_no_other_lists_those_there_are(tmp_path: Path) -> None:
    message = refused(tmp_path, "[compare]\nxyzzy = 1\n")
    assert "unknown key `compare.xyzzy`; known here: seeds, queues" in message


def test_an_entry_of_a_list_of_tables_is_named_with_its_line(tmp_path: Path) -> None:
    text = """[[switch.jobs]]
job = 1
max_worker = 5
[[switch.jobs]]
max_workers = "many"
[[server.jobs]]
job = 3
max_workers = 0
"""
    assert refused(tmp_path, text).splitlines() == [
        "job.toml:3: unknown key `switch.jobs[0].max_worker`; "
        "did you mean `switch.jobs[0].max_workers`?",
        "job.toml:4: `switch.jobs[1].job`: field required",
        "job.toml:5: `switch.jobs[1].max_workers` = 'many': input should be a valid integer, "
        "unable to parse string as an integer",
        "job.toml:8: `server.jobs[0].max_workers` = 0: input should be greater than or equal to 1",
    ]


def test_a_list_is_written_with_commas_and_what_is_none_is_told_how() -> None:
    for text in ("64,64", "[64, 64]", "(64, 64)"):
        assert read_settings(overrides=[f"learner.hidden={text}"]).model_dump()["learner"][
            "hidden"
        ] == (64, 64)
    with pytest.raises(ConfigurationError, match="write a list, as in 40, 40"):
        read_settings(overrides=["learner.hidden=wide"])


def test_a_list_of_plain_values_is_named_whole(tmp_path: Path) -> None:
    text = '[switch]\nkey_files = "a.key"\n'
    assert refused(tmp_path, text).startswith("job.toml:2: `switch.key_files` = 'a.key': ")
    text = '[compare]\nseeds = [1, "two"]\n'
    assert refused(tmp_path, text).startswith("job.toml:2: `compare.seeds` = 'two': ")


def test_every_wrong_key_is_reported_at_once_with_its_origin(tmp_path: Path) -> None:
    message = refused(
        tmp_path,
        '[switch]\nslots = 0\nqueue = "lifo"\n',
        {"train.workers": ("--workers", -1)},
        ["learner.epochs=none"],
    )
    lines = message.splitlines()
    assert len(lines) == 4
    assert any(line.startswith("--workers: `train.workers` = -1") for line in lines)
    assert any(line.startswith("--set learner.epochs=none: `learner.epochs`") for line in lines)
    assert any(line.startswith("job.toml:2: `switch.slots` = 0") for line in lines)
    queues = ", ".join(NAMES)
    assert f"job.toml:3: `switch.queue` = 'lifo': must be one of {queues}" in lines


@pytest.mark.parametrize(
    ("override", "complaint"),
    [
        ("slots=4", "--set slots=4: write `switch.slots`"),
        ("workers", "--set workers: write it --set section.key=value"),
        ("train.workers.many=1", "`train.workers`"),
        ("switch.listen=localhost", "write it HOST:PORT"),
        ("switch.listen=localhost:99999", "write it HOST:PORT"),
        ("train.clusters=99", "clusters (99) is more than workers (8)"),
        ("learner.learner=jax", "one of numpy, torch"),
        ("learner.clip=0", "`learner.clip` = 0.0: must be above 0"),
        ("train.until_reward=nan", "finite"),
    ],
)
def test_a_wrong_override_says_what_to_write(tmp_path: Path, override: str, complaint: str) -> None:
    assert complaint in refused(tmp_path, overrides=[override])


def test_a_file_that_is_not_toml_names_the_line(tmp_path: Path) -> None:
    assert "job.toml: not TOML" in (message := refused(tmp_path, "[switch\n"))
    assert "line 1" in message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nowhere\.toml: No such file"):
        read_settings(tmp_path / "nowhere.toml")


def test_the_last_word_wins(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text("[switch]\nslots = 2\ncredits = 5\n[train]\nworkers = 3\nclusters = 1\n")
    options = {"switch.slots": ("--slots", 3)}
    settings = read_settings(file, options, ["switch.slots=4", "switch.credits=off"])
    assert settings.switch.slots == 4
    assert settings.switch.credits is None
    assert settings.train.workers == 3


def test_what_is_printed_reads_back_the_same(tmp_path: Path) -> None:
    settings = read_settings(
        overrides=["learner.hidden=[8, 4]", "train.until_reward=off", 'switch.routes={"2"="a:1"}']
    )
    for comments in (True, False):
        file = tmp_path / "printed.toml"
        file.write_text(write_toml(settings, comments=comments))
        assert read_settings(file) == settings


def test_clusters_follow_the_workers_where_nobody_gives_them(tmp_path: Path) -> None:
    printed = tmp_path / "printed.toml"
    printed.write_text(write_toml(read_settings()))
    assert "# clusters = 2" in printed.read_text()
    assert read_settings(printed, overrides=["train.workers=1"]).train.clusters == 1
    assert read_settings(overrides=["train.leaves=3"]).train.clusters == 3
    assert "clusters" not in write_toml(read_settings(overrides=["train.workers=1"]), given=True)
    with pytest.raises(ConfigurationError, match=r"clusters \(2\) is more than workers \(1\)"):
        read_settings(overrides=["train.workers=1", "train.clusters=2"])


def test_a_resumed_run_lets_clusters_follow_again() -> None:
    for before, after, expected in [
        (["train.workers=8"], ["train.workers=1"], 1),
        (["train.workers=1"], ["train.workers=8"], 2),
        (["train.clusters=4"], ["train.workers=6"], 4),
    ]:
        told = {"kind": "session", **described(read_settings(overrides=before))}
        now = read_settings(overrides=after, base=tables_of(told))
        assert now.train.clusters == expected


def test_every_key_says_why() -> None:
    for section in dict(Settings()).values():
        assert isinstance(section, Section)
        for key, field in type(section).model_fields.items():
            assert field.description, f"{type(section).__name__}.{key}"


def test_the_learner_section_is_the_learners_own_configuration() -> None:
    default = LearnerConfig()
    own = {field.name: getattr(default, field.name) for field in dataclasses.fields(default)}
    del own["seed"]
    assert dict(LearnerSettings.model_validate({})) == own


def test_only_one_pacer_at_a_time(tmp_path: Path) -> None:
    assert "at most one pacer" in refused(
        tmp_path, overrides=["switch.uplink=2mbit", "switch.credits=3"]
    )


@pytest.mark.parametrize("control", ["paper", "fair"])
def test_rounds_do_not_go_with_holding_updates_back(tmp_path: Path, control: str) -> None:
    options = {
        "worker.transmission": ("--transmission", control),
        "server.aggregate": ("--aggregate", "round"),
    }
    message = refused(tmp_path, options=options)
    assert message.startswith(f"`worker.transmission` = '{control}' does not go with `server.agg")
    assert "set transmission to off, or aggregate to each or periodic" in message
    for aggregate in ("each", "periodic"):
        overrides = [f"worker.transmission={control}", f"server.aggregate={aggregate}"]
        assert read_settings(overrides=overrides).worker.transmission == control


@pytest.mark.parametrize("section", ["switch", "leaf"])
def test_rounds_do_not_go_with_a_gate_before_them(tmp_path: Path, section: str) -> None:
    gated = [f"{section}.gate=5", "server.aggregate=round"]
    message = refused(tmp_path, overrides=gated)
    assert f"`{section}.gate` = 5 does not go with `server.aggregate` = 'round'" in message
    assert "set the gate to off, or aggregate to each or periodic" in message
    read_settings(overrides=[f"{section}.gate=5", "server.aggregate=periodic"])


def test_limits_are_numbers_multiples_or_off() -> None:
    settings = read_settings(
        overrides=["switch.clip_norm=8x", "switch.clip_weight=off", "server.clip_reward=2.5"]
    )
    core = json.loads(settings.switch.to_core())
    assert (core["clip_norm"], core["clip_weight"], core["clip_reward"]) == ("8x", None, "100x")
    assert json.loads(settings.server.to_core())["clip_reward"] == "2.5"


@pytest.mark.parametrize("limit", ["x", "0", "-3x", "infx", "nan"])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, limit: str) -> None:
    message = refused(tmp_path, overrides=[f"switch.clip_norm={limit}"])
    assert "write a number above 0, a multiple" in message


def test_rates_are_as_tc_writes_them(tmp_path: Path) -> None:
    settings = read_settings(overrides=["switch.uplink=1.9mbit"])
    assert '"uplink_bps": 1900000' in settings.switch.to_core()
    narrow = read_settings(
        overrides=["switch.downlink=9kbit", "switch.uplink_ecn_depth_datagrams=3"]
    )
    told = json.loads(narrow.switch.to_core())
    assert (told["downlink_bps"], told["uplink_ecn_depth_datagrams"]) == (9000, 3)
    assert "`switch.uplink` = '2 parsecs'" in refused(
        tmp_path, overrides=["switch.uplink=2 parsecs"]
    )
