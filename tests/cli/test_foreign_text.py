"""Names from outside are printed as they are: no bracket or colon in them is markup."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from olaf.cli import asking, consoles, looking_view, options
from olaf.cli.looking import Look
from olaf.cli.main import run as olaf
from olaf.jobs.course import Happening

NAMES = ["[/x]boo", "[red]x[/red]", ":bomb:", "[link=x]y"]
PACKAGE = Path(consoles.__file__).parents[1]
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal of our consoles shows."""
    shown = io.StringIO()

    def made(**_: Any) -> Console:
        return Console(
            file=shown, width=200, force_terminal=True, color_system=None,
            highlight=False, markup=False, emoji=False,
        )  # fmt: skip

    monkeypatch.setattr(asking, "plain_console", made)
    return shown


def test_every_console_is_made_where_markup_is_off() -> None:
    made = [
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if re.search(r"\bConsole\(|rich import print|from_markup|\brich\.print", file.read_text())
    ]
    assert made == ["cli/consoles.py"]


@pytest.mark.parametrize("name", NAMES)
def test_the_title_of_a_role_is_no_markup(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = {
        "role": name,
        "address": name,
        "uptime_s": 3.0,
        "olaf": {"version": name, "wire_version": name, "pid": 1, "at_unix_s": 1.0},
        "ready": {"ready": False, "reasons": [name]},
        "recent_events": [{"event": name, "s_ago": 1.0, "of": name}],
        "refused": {name: 3},
    }
    looks = [Look(name, status), Look(name, error=name)]
    options.console(json_out=False).print(looking_view.view(looks))
    # Twice in a title, once in a subtitle, in the reasons, in an event and its detail, in a
    # refusal; and twice for the role that does not answer.
    assert capsys.readouterr().out.count(name) >= 9


def test_a_role_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    name = "\x1b]0;owned\x07\x1b[2J\x9b2Jx\u202e\ud800"
    status = {
        "role": name,
        "address": name,
        "olaf": {"version": name, "wire_version": 1, "pid": 1, "at_unix_s": 1.0},
        "ready": {"ready": False, "reasons": [name]},
        "recent_events": [{"event": name, "s_ago": 1.0, name: name}],
        "refused": {name: 3},
    }
    looks = [Look("h:1", status), Look("h:2", error=name)]
    options.console(json_out=False).print(looking_view.view(looks))
    out = capsys.readouterr().out
    assert "owned" in out
    assert not set(out) & set("\x1b\x07\x9b\u202e\ud800")


def test_a_worker_does_not_steer_the_terminal_of_a_run() -> None:
    text = "\x1b[2J\x1b[31mloss\x1b[0m\t3.5\x9b2J\r\x1b]0;owned\x07\u202e"
    happening = Happening(1.0, "worker\x1b[2J 1", text, printed=True)
    assert happening.who == "worker 1"
    assert happening.text == "loss\t3.5\ufffd\ufffd]0;owned\ufffd\ufffd"


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_a_scenario_are_no_markup(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(f"""
seed = 3
duration_ns = 50_000_000
[[switches]]
name = "{name}"
queue = "olaf"
slots = 4
rate_bps = 300_000
[[groups]]
name = "{name} G"
switch = "{name}"
clusters = 2
workers = 3
interval_ns = 20_000_000
late_ns = 5_000_000
packet_bytes = 250
""")
    assert olaf(["simulate", "network", str(file)]) == 0
    out = capsys.readouterr().out
    assert f"{name} G" in out
    assert out.count(name) >= 3


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_clusters_to_verify_are_no_markup(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("z3")
    file = tmp_path / "few.toml"
    text = (EXAMPLES / "verify" / "too-few-slots.toml").read_text()
    file.write_text(text.replace('name = "edge"', f'name = "{name}"'))
    assert olaf(["verify", str(file), "--objective", "loss"]) == asking.NO
    assert name in capsys.readouterr().out


def test_a_step_of_the_work_is_no_markup(
    terminal: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "QUIET_S", 0.0)
    with asking.Thinking() as thinking:
        for name in NAMES:
            thinking.say(name)
            assert thinking._status is not None
            thinking._status._live.refresh()
            assert name in terminal.getvalue()
