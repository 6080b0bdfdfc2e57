"""A run that somebody sent runs no code before the user trusts it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_runs import LOCAL, apart

from olaf.errors.outcome import RunError
from olaf.runs import trust
from olaf.runs.trust import MARK, is_marked, mark, named_by, need_trust

ENVIRONMENT = """
import pathlib
import gymnasium
import numpy as np

pathlib.Path("code-ran").touch()

class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 10
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.left -= 1
        return np.zeros(3, np.float32), float(action), False, self.left == 0, {}
"""

TRAIN = [text for text in LOCAL if not text.startswith("--env")]


@pytest.fixture
def homes(tmp_path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The environments of two users."""
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    return {"XDG_STATE_HOME": str(mine)}, {"XDG_STATE_HOME": str(theirs)}


@pytest.mark.slow
def test_a_run_that_was_sent_runs_nothing_before_it_is_trusted(
    tmp_path: Path, homes: tuple[dict[str, Any], dict[str, Any]]
) -> None:
    mine, theirs = homes
    (tmp_path / "dot.py").write_text(ENVIRONMENT)
    apart(tmp_path, *TRAIN, "--env=dot:Line", "--updates=12", "--out=sent", **theirs)
    ran = tmp_path / "code-ran"
    refused = [
        ("evaluate", "sent", "--episodes=2"),
        ("evaluate", "sent/model.npz", "--episodes=2"),
        ("export", "sent", "--to=npz"),
        ("train", "--resume=sent", "--updates=20"),
    ]
    ran.unlink()
    for command in refused:
        said = apart(tmp_path, *command, code=2, **mine).stderr
        assert "learner.environment = dot:Line" in said
        assert str(tmp_path / "dot.py") in said
        assert "say --trust" in said
        assert not ran.exists(), command
    program = "import olaf; olaf.train(resume='sent', updates=20, display='quiet')"
    python = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, **mine},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "dot:Line" in python.stderr
    assert not ran.exists()
    # Who names the environment himself means the code that he has.
    apart(tmp_path, "evaluate", "sent", "--episodes=2", "--env=dot:Line", **mine)
    ran.unlink()
    apart(tmp_path, "evaluate", "sent", "--episodes=2", code=2, **mine)
    # Its maker is not asked, and whoever trusts it is asked once.
    apart(tmp_path, "evaluate", "sent", "--episodes=2", **theirs)
    apart(tmp_path, "evaluate", "sent", "--episodes=2", "--trust", **mine)
    apart(tmp_path, "train", "--resume=sent", "--updates=20", **mine)
    apart(tmp_path, "evaluate", "sent", "--episodes=2", **mine)


def tables(environment: str, **more: object) -> dict[str, dict[str, object]]:
    return {"learner": {"environment": environment, **more}}


def test_installed_environments_are_no_code_of_the_run(tmp_path: Path) -> None:
    assert named_by(tables("CartPole-v1")) == []
    need_trust(tmp_path, tables("CartPole-v1"), trusts=False)


def test_a_mark_holds_for_what_it_was_made_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mark(tmp_path, tables("mine:Dot"))
    assert is_marked(tmp_path, tables("mine:Dot"))
    for other in (tables("mine:Dots"), tables("mine:Dot", module="net:make")):
        assert not is_marked(tmp_path, other)
        with pytest.raises(RunError, match="carries no mark"):
            need_trust(tmp_path, other, trusts=False)
    secret = tmp_path / "state" / "olaf" / "runs.secret"
    assert secret.stat().st_mode & 0o777 == 0o600
    secret.write_bytes(b"another")
    assert not is_marked(tmp_path, tables("mine:Dot")), "made under another secret"


def test_a_mark_holds_for_the_pickled_code_and_not_for_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (here / "environment.pkl").write_bytes(b"{}\ncode")
    mark(here, tables(f"{here}/environment.pkl:Dot"))
    shutil.copytree(here, there)
    moved = tables(f"{there}/environment.pkl:Dot")
    assert is_marked(there, moved)
    (there / "environment.pkl").write_bytes(b"{}\nother code")
    assert not is_marked(there, moved)
    with pytest.raises(RunError, match=r"environment\.pkl, 13 bytes of pickled code"):
        need_trust(there, moved, trusts=False)


@pytest.mark.parametrize("junk", [b"", b"\xff\xfe", b"0" * 64, "ä".encode()])
def test_a_forged_mark_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, junk: bytes
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    mark(tmp_path, tables("mine:Dot"))
    (tmp_path / MARK).write_bytes(junk)
    assert not is_marked(tmp_path, tables("mine:Dot"))


def test_options_of_a_batch_system_are_code_where_jobs_are_started(tmp_path: Path) -> None:
    told: dict[str, dict[str, object]] = {
        "slurm": {"options": ["--task-prolog=/tmp/x"]},
        **tables("CartPole-v1"),
    }
    need_trust(tmp_path, told, trusts=False)
    with pytest.raises(RunError, match="task-prolog"):
        need_trust(tmp_path, told, trusts=False, starts_jobs=True)


def test_nobody_is_marked_without_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    mark(tmp_path, tables("mine:Dot"))
    assert not is_marked(tmp_path, tables("mine:Dot"))
    assert not (tmp_path / MARK).exists()


def test_looking_for_a_module_imports_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pack" / "inner"
    package.mkdir(parents=True)
    for file in (package.parent / "__init__.py", package / "__init__.py", package / "dot.py"):
        file.write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    (one,) = named_by(tables("pack.inner.dot:Line"))
    assert one.place == str(package / "dot.py")
    (none,) = named_by(tables("nowhere.dot:Line"))
    assert none.place == "not found"
    assert json.loads(json.dumps(one.key)) == trust.KEYS[0]
