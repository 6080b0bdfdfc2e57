"""`scripts/build-budget`: what a build costs is measured where it takes place, and compared."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TABLE = "above = 0.1\nreferences = {references}\nlibrary_bytes = 1000\n"
BUILD = """#!/bin/sh
exec scripts/build-budget measure sh -c '
    echo ran >>built
    target=${CARGO_TARGET_DIR:-target}
    mkdir -p $target/release/.fingerprint/some-crate
    head -c '${BYTES:-1000}' /dev/zero >$target/release/lib_olaf.so
    head -c '${BYTES:-1000}' /dev/zero >$target/release/lib_olaf.dylib
    python3 -c "import time
while time.process_time() < 0.2: pass"
'
"""


@dataclass
class Checkout:
    """A project whose build takes a fifth of a second, and a compiler that takes a tenth."""

    root: Path
    environment: dict[str, str]

    def budget(self, *arguments: str, **more: str) -> tuple[int, str]:
        """Run the script; its code and what it prints."""
        ran = subprocess.run(
            [self.root / "scripts/build-budget", *arguments],
            cwd=self.root,
            env=self.environment | more,
            capture_output=True,
            text=True,
            check=False,
        )
        return ran.returncode, ran.stdout + ran.stderr

    def builds(self) -> int:
        """How many builds there were."""
        return len((self.root / "built").read_text().split())

    def table(self, references: float) -> None:
        """Allow that many references."""
        text = TABLE.format(references=references)
        (self.root / "scripts/build-budget.toml").write_text(text)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.delenv("CARGO_TARGET_DIR", raising=False)
    for name, text in (
        ("scripts/release", BUILD),
        (
            "bin/rustc",
            "#!/bin/sh\npython3 -c 'import time\nwhile time.process_time() < 0.1: pass'\n",
        ),
        ("crates/a/src/lib.rs", "// one\n"),
        ("crates/a/tests/all.rs", "// one\n"),
        ("Cargo.toml", ""),
        ("Cargo.lock", ""),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    shutil.copy(ROOT / "scripts/build-budget", tmp_path / "scripts/build-budget")
    path = f"{tmp_path / 'bin'}:/usr/local/bin:/usr/bin:/bin"
    made = Checkout(tmp_path, {"PATH": path, "HOME": str(tmp_path)})
    made.table(1000.0)
    return made


def test_both_figures_are_printed_and_a_build_is_measured_once(checkout: Checkout) -> None:
    code, told = checkout.budget()
    assert code == 0, told
    assert "CPU seconds = " in told
    assert "the library has 1,000 bytes, +0.0% against the table" in told
    assert checkout.budget() == (0, told)
    assert checkout.builds() == 1
    # A test is no part of the library; a source is.
    (checkout.root / "crates/a/tests/all.rs").write_text("// two\n")
    assert checkout.budget() == (0, told)
    (checkout.root / "crates/a/src/lib.rs").write_text("// two\n")
    code, told = checkout.budget()
    assert (code, checkout.builds()) == (0, 2)
    assert "CPU seconds are not known" in told
    assert "the library has 1,000 bytes" in told


def test_a_build_that_costs_more_fails(checkout: Checkout) -> None:
    checkout.table(0.01)
    code, told = checkout.budget()
    assert code == 1
    assert "above the table by more than 10%" in told


@pytest.mark.parametrize(("size", "code"), [("1100", 0), ("1101", 1)])
def test_a_library_that_is_larger_fails(checkout: Checkout, size: str, code: int) -> None:
    assert checkout.budget(BYTES=size)[0] == code


def test_children_count_in_units_of_the_reference(checkout: Checkout) -> None:
    checkout.budget()
    cost = json.loads((checkout.root / "target/build-budget.json").read_text())
    assert cost["cpu_s"] >= 0.2
    assert 0.1 <= cost["reference_s"] < cost["cpu_s"]


def test_a_clean_build_leaves_the_checkout_alone(checkout: Checkout) -> None:
    code, told = checkout.budget("--clean")
    assert code == 0, told
    assert "CPU seconds = " in told
    assert not (checkout.root / "target").exists()


def test_a_failed_build_keeps_its_code_and_is_not_recorded(checkout: Checkout) -> None:
    assert checkout.budget("measure", "sh", "-c", "exit 7")[0] == 7
    assert not (checkout.root / "target/build-budget.json").exists()


def test_the_release_build_is_measured() -> None:
    assert "scripts/build-budget measure cargo build" in (ROOT / "scripts/release").read_text()
