"""No default stands twice: settings, `olaf.local` and its page have the core's own."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import click
import pytest

import olaf
from olaf import _olaf
from olaf.cli import schedule_sharing
from olaf.jobs.section import Section
from olaf.jobs.server_settings import ServerSettings
from olaf.jobs.settings import (
    LeafSettings,
    SwitchSettings,
    WorkerSettings,
)
from olaf.jobs.sums_settings import (
    AtpServerSettings,
    AtpSettings,
    IswitchSettings,
    ReduceSettings,
    TrioSettings,
)
from olaf.schedule.sharing import SharingCluster, SharingJob, controller_config
from olaf.tcp.rule import RuleConfig
from olaf.values.units import write

ROOT = Path(__file__).resolve().parents[2]
CORE: dict[str, dict[str, Any]] = json.loads(_olaf.defaults())
SUMMING = ("reduce", "iswitch", "trio", "atp", "atp_server")
CORE |= {engine: CORE["switch"].pop(engine) for engine in SUMMING}
SECTIONS: dict[str, type[Section]] = {
    "switch": SwitchSettings,
    "reduce": ReduceSettings,
    "iswitch": IswitchSettings,
    "trio": TrioSettings,
    "atp": AtpSettings,
    "atp_server": AtpServerSettings,
    "server": ServerSettings,
    "worker": WorkerSettings,
}
OTHER_FORM = {"uplink_bps": "uplink", "downlink_bps": "downlink", "link_bps": "link"}
"""Keys of the core that the settings have as text: rates, as tc writes them."""
OURS_ALONE = {("worker", "seed")}
"""Keys that the settings have with another meaning: theirs is the learner's seed."""
BEYOND_THE_CORE = {
    "switch": {"admission", "admission_mismatch"},
    "reduce": set[str](),
    "iswitch": set[str](),
    "trio": set[str](),
    "atp": set[str](),
    "atp_server": set[str](),
    "server": set[str](),
    "worker": None,
}
"""Fields of the settings that Python reads; of a worker most."""


def as_settings(key: str, value: Any) -> Any:
    if key in OTHER_FORM and value is not None:
        return write(key, value)
    return value


def shared(role: str) -> dict[str, Any]:
    """Of each field that the core knows, the core's default."""
    return {
        OTHER_FORM.get(key, key): as_settings(key, value)
        for key, value in CORE[role].items()
        if (role, key) not in OURS_ALONE
    }


@pytest.mark.parametrize("role", SECTIONS)
def test_every_key_of_the_core_is_in_the_settings_with_its_default(role: str) -> None:
    fields = SECTIONS[role].model_fields
    assert {key: fields[key].default for key in shared(role)} == shared(role)
    beyond = BEYOND_THE_CORE[role]
    if beyond is not None:
        inner = {key for key, field in fields.items() if field.annotation in SECTIONS.values()}
        assert set(fields) - set(shared(role)) - inner == beyond


def test_a_leaf_has_the_queue_of_a_switch() -> None:
    outer = {"engines", "listen", "listen_at", "upstream", "routes", "pass_from"} | {
        *("key_files", "insecure", "metrics", "metrics_token_file", "jobs", "switches_from")
    }
    expected = {key: value for key, value in shared("switch").items() if key not in outer}
    fields = LeafSettings.model_fields
    assert {key: fields[key].default for key in expected} == expected
    assert set(fields) - set(expected) == BEYOND_THE_CORE["switch"]


def test_a_worker_looks_for_a_switch_where_one_listens() -> None:
    assert WorkerSettings.model_fields["switch"].default == CORE["switch"]["listen"]


@pytest.mark.parametrize(("role", "section"), [*SECTIONS.items(), ("switch", LeafSettings)])
def test_no_default_of_the_core_is_written_again(role: str, section: type[Section]) -> None:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    assert isinstance(body, ast.ClassDef)
    for statement in body.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            key = statement.target.id
            if key in shared(role):
                assert statement.value is not None
                told = ast.unparse(statement.value)
                assert f"{role.upper()}['{key}']" in told, f"{section.__name__}.{key} = {told}"


@pytest.mark.parametrize("role", ["switch", "server"])
def test_what_the_settings_tell_the_core_is_what_it_does_anyway(role: str) -> None:
    section = SECTIONS[role]()
    assert isinstance(section, SwitchSettings | ServerSettings)
    told = json.loads(section.to_core())
    # Nobody is asked: the settings then leave the time of an answer out.
    quiet = {"admission_timeout_ms"} if role == "switch" else set[str]()
    core = {key: value for key, value in CORE[role].items() if key not in quiet}
    if role == "switch":
        for engine in SUMMING:
            own = told.pop(engine)
            assert {key: own.get(key) for key in CORE[engine]} == CORE[engine]
            assert set(own) <= set(CORE[engine])
    assert {key: told.get(key) for key in core} == core
    assert set(told) <= set(core)


def test_the_sharing_file_and_its_commands_take_the_core_s_defaults() -> None:
    core = CORE["sharing"]
    assert SharingJob.model_fields["units"].default == core["units"]
    for key in ("silent", "patience"):
        assert SharingCluster.model_fields[f"{key}_ms"].default * 1_000_000 == core[f"{key}_ns"]
    assert inspect.signature(controller_config).parameters["policy"].default == core["policy"]
    share = schedule_sharing.share
    for command in (share, schedule_sharing.predict, schedule_sharing.shared):
        defaults = {parameter.name: parameter.default for parameter in command.params}
        assert defaults["policy"] == core["policy"]
    (ahead,) = (parameter for parameter in share.params if parameter.name == "ahead")
    assert (
        round(ahead.type_cast_value(click.Context(share), ahead.default) * 1e9) == core["ahead_ns"]
    )


def test_the_tcp_baseline_has_the_server_s_rule() -> None:
    own = vars(RuleConfig())
    assert own == {key: CORE["server"][key] for key in own}


def test_local_takes_the_core_s_defaults() -> None:
    parameters = inspect.signature(olaf.local).parameters
    for role, keys in (("switch", ("queue", "slots", "uplink")), ("server", ("learning_rate",))):
        for key in keys:
            assert parameters[key].default == shared(role)[key]


@pytest.mark.parametrize("function", [olaf.local, olaf.connect])
def test_the_page_says_the_defaults_of_the_signature(function: Any) -> None:
    page = (ROOT / "docs/reference/connection.md").read_text(encoding="utf-8")
    section = page.partition(f"## `olaf.{function.__name__}`")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?`) \|(.*?)\| ", section, re.MULTILINE)
    said = {name: value for names, value in rows for name in re.findall(r"`(\w+)`", names)}
    signature = inspect.signature(function).parameters.values()
    ours = {
        parameter.name: "" if parameter.default is parameter.empty else repr(parameter.default)
        for parameter in signature
        if parameter.kind is not parameter.VAR_KEYWORD
    }
    assert {name: said[name].strip(" `").replace('"', "'") for name in ours} == ours
