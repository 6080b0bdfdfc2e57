"""Extras: what pyproject.toml offers, what the error texts name, and how a command ends without."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from olaf import extras
from olaf.cli.main import run

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_extras_of_the_texts_are_those_of_the_distribution() -> None:
    offered = set(PROJECT["optional-dependencies"]) - {"dev"}
    assert offered == set(extras.EXTRAS)
    assert PROJECT["name"] == extras.DISTRIBUTION


def test_the_base_is_what_the_roles_need() -> None:
    names = {re.split(r"[>=<\[ ]", line)[0] for line in PROJECT["dependencies"]}
    assert names == {"numpy", "click", "pydantic", "tomlkit"}


def test_no_text_offers_the_distribution_of_somebody_else() -> None:
    files = [*(ROOT / "python").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    for file in [*files, *(ROOT / "examples").rglob("*.py")]:
        text = file.read_text(encoding="utf-8")
        assert not re.search(r"pip install\s+['\"`]?olaf(?![\w.-])", text), file
        assert not re.search(r"(?<![\w-])olaf\[[a-z0-9]+\]", text), file


def test_the_advice_is_a_command_that_works_here(monkeypatch: pytest.MonkeyPatch) -> None:
    in_a_checkout = extras.command("torch")
    assert in_a_checkout == "scripts/env torch"
    assert (ROOT / in_a_checkout.split()[0]).is_file()
    monkeypatch.setattr(sys, "prefix", "/somewhere/else")
    assert extras.command("torch") == f"pip install '{extras.DISTRIBUTION}[torch]'"
    with pytest.raises(ValueError, match="one of train, verify"):
        extras.command("trian")


def test_need_is_content_with_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    extras.need("verify", "z3", what="a proof")
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(extras.MissingExtraError, match=r"a proof needs z3.*scripts/env verify"):
        extras.need("verify", what="a proof")


@pytest.mark.parametrize(
    ("line", "module", "extra", "code"),
    [
        ("train --env CartPole-v1", "gymnasium", "train", 2),
        ("compare", "tensorboardX", "train", 2),
        ("worker --env CartPole-v1", "gymnasium", "train", 2),
        ("replay {trace} --rate 1mbit", "rich", "train", 2),
        ("switch --listen 127.0.0.1:0 --admission {spec}", "z3", "verify", 2),
        ("schedule list", "httpx", "schedule", 2),
        ("schedule serve --topology fat-tree:4 --store {folder}/s.db", "uvicorn", "schedule", 2),
        ("schedule record --model mlp --out {folder}/m.json", "torch", "torch", 2),
        # 2 is an answer of theirs.
        ("verify {spec}", "z3", "verify", 3),
        ("verify {spec} --plot {folder}/x.png", "matplotlib", "verify", 3),
        ("admit --cluster {newcomer} --to {spec}", "z3", "verify", 3),
    ],
)
def test_a_missing_extra_is_named_with_its_command(
    line: str,
    module: str,
    extra: str,
    code: int,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("t_ns,cluster,worker,seq,reward,bytes\n0,0,0,0,1.0,256\n")
    examples = ROOT / "examples" / "verify"
    words = {
        "trace": trace,
        "folder": tmp_path,
        "spec": examples / "too-few-slots.toml",
        "newcomer": examples / "new.toml",
    }
    monkeypatch.setitem(sys.modules, module, None)
    for loaded in [name for name in sys.modules if name.startswith("olaf.torch")]:
        monkeypatch.delitem(sys.modules, loaded)
    assert run(line.format(**words).split()) == code
    told = capsys.readouterr().err
    assert f"needs {module}, which is not installed: run `{extras.command(extra)}`" in told, told


def test_a_module_that_no_extra_brings_is_a_bug_and_shown_as_one() -> None:
    from olaf.errors.outcome import failure_of

    assert failure_of(ModuleNotFoundError("no", name="a_module_of_nobody")) is None
    told = failure_of(ModuleNotFoundError("no", name="fastapi.middleware"))
    assert told is not None
    assert told.code == 2
    assert "scripts/env schedule" in str(told)
