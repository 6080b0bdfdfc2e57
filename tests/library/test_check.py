"""`scripts/check`: what runs, what is left out and named, and what a failure leaves."""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ["scripts/check", "scripts/inputs.py", "rtl/tools/record.py"]
LISTS = """
[groups]
sources = ["src", "!src/*/tests"]
[targets.engine]
reads = ["@sources"]
[targets.page-if-possible]
reads = ["page.html"]
"""
# A cheap target would always run: these take a third of a second of the processor.
BURN = "import time\nwhile time.process_time() < 0.3:\n    pass\n"
MAKEFILE = """
engine: ; @echo $@ >>ran; python3 burn.py; test ! -e broken
page-if-possible: ; @echo $@ >>ran; python3 burn.py; $(SKIP)
other: ; @echo $@ >>ran
part: ; @echo 'two of three were left' >>$(OLAF_LEFT_OUT)
slow: ; @touch started; sleep 100
fails: ; @until test -e started; do sleep 0.05; done; echo the cause; false
first: ; @touch a; until test -e b; do sleep 0.05; done
second: ; @touch b; until test -e a; do sleep 0.05; done
"""
DEAR = ["engine", "page-if-possible"]


class Checkout:
    """A small project with a copy of the scripts."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for script in SCRIPTS:
            (root / script).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / script, root / script)
        text = (root / "scripts/check").read_text()
        for line, other in (("CHEAP = 3.0", "CHEAP = 0.2"), ("BUDGET = 30.0", "BUDGET = 0.0")):
            assert text.count(f"\n{line}\n") == 1
            text = text.replace(line, other)
        (root / "scripts/check").write_text(text)
        self.put("scripts/check.toml", LISTS)
        self.put("Makefile", MAKEFILE)
        self.put("burn.py", BURN)
        self.put("src/queue/lib.rs", "one")
        self.put("src/queue/tests/all.rs", "one")
        self.put("page.html", "one")
        self.put(".gitignore", "ran\ntarget\n__pycache__\nbroken\n")
        self.git("init", "--quiet")

    def put(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def git(self, *words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a"]
        subprocess.run(["git", "-C", str(self.root), *who, *words], check=True)

    def commit(self) -> None:
        """A commit draws what runs all the same."""
        self.git("commit", "--quiet", "--allow-empty", "--message", "another")

    def check(self, *words: str) -> subprocess.CompletedProcess[str]:
        (self.root / "ran").write_text("")
        command = [str(self.root / "scripts/check"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def ran(self) -> list[str]:
        return sorted((self.root / "ran").read_text().split())

    def times(self) -> str:
        return (self.root / "target/check/times.txt").read_text()


@pytest.fixture(name="checkout")
def _checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_a_target_without_a_change_is_left_out_and_named_with_its_command(
    checkout: Checkout,
) -> None:
    first = checkout.check("engine", "page-if-possible", "other")
    assert (first.returncode, checkout.ran()) == (0, [*DEAR[:1], "other", *DEAR[1:]])
    second = checkout.check("engine", "page-if-possible", "other")
    assert second.returncode == 0
    # Without a commit it is the same one each time that is drawn.
    [left] = set(DEAR) - set(checkout.ran())
    [drawn] = set(DEAR) & set(checkout.ran())
    assert "other" in checkout.ran()
    last = second.stdout[second.stdout.index("target ") :]
    assert last == checkout.times()
    assert f": {left}. `make {left.removesuffix('-if-possible')}` runs it" in last
    assert "`make check ALL=1` runs all of them" in last
    assert f"drawn by this commit, and run all the same: {drawn}" in last
    assert checkout.check("--all", *DEAR).returncode == 0
    assert checkout.ran() == DEAR


def test_each_of_them_is_drawn_by_some_commit(checkout: Checkout) -> None:
    checkout.check(*DEAR)
    drawn: set[str] = set()
    for _ in range(20):
        checkout.commit()
        checkout.check(*DEAR)
        drawn |= set(checkout.ran())
        if drawn == set(DEAR):
            return
    raise AssertionError(drawn)


@pytest.mark.parametrize(
    ("name", "text", "target"),
    [
        ("src/queue/lib.rs", "two", "engine"),
        ("src/queue/new.rs", "", "engine"),
        ("page.html", "two", "page-if-possible"),
        ("Makefile", MAKEFILE + "\n", None),
        ("src/queue/tests/all.rs", "two", ""),
        ("README.md", "two", ""),
    ],
)
def test_what_a_target_reads_makes_it_run(
    checkout: Checkout, name: str, text: str, target: str | None
) -> None:
    """None: both."""
    checkout.check(*DEAR)
    checkout.check(*DEAR)
    [drawn] = checkout.ran()
    checkout.put(name, text)
    checkout.check(*DEAR)
    changed = set(DEAR) if target is None else {target} - {""}
    assert changed <= set(checkout.ran())
    if not changed:
        assert checkout.ran() == [drawn]


def test_a_file_that_is_gone_and_one_that_may_run_are_changes(checkout: Checkout) -> None:
    checkout.put("src/queue/second.rs", "")
    for change in ("none", "mode", "gone"):
        path = checkout.root / "src/queue/second.rs"
        if change == "mode":
            path.chmod(0o755)
        elif change == "gone":
            path.unlink()
        checkout.check("engine")
        assert checkout.ran() == ["engine"], change
        table = (checkout.root / "scripts/checked.csv").read_text()
        checkout.check("--all", "engine")
        assert (checkout.root / "scripts/checked.csv").read_text() == table


def test_a_failure_is_told_with_its_log_and_forgets_that_the_target_passed(
    checkout: Checkout,
) -> None:
    checkout.check("engine")
    assert "engine," in (checkout.root / "scripts/checked.csv").read_text()
    checkout.put("broken", "")
    done = checkout.check("--all", "engine", "other")
    assert done.returncode == 1
    assert checkout.ran() == ["engine"]  # the next stage does not begin
    assert "make engine failed: see target/check/engine.log" in done.stderr
    assert "FAILED" in checkout.times()
    assert "engine," not in (checkout.root / "scripts/checked.csv").read_text()


def test_lanes_run_beside_each_other_and_a_failure_stops_the_other_lane(
    checkout: Checkout,
) -> None:
    assert checkout.check("first | second").returncode == 0
    begin = time.monotonic()
    done = checkout.check("slow other | fails")
    assert done.returncode == 1
    assert time.monotonic() - begin < 50
    assert "the cause" in done.stdout
    assert checkout.ran() == []
    assert "make fails failed" in done.stderr
    assert re.search(r"^slow .* STOPPED$", checkout.times(), re.MULTILINE)


def test_a_target_that_did_nothing_has_not_passed(checkout: Checkout) -> None:
    skips = "SKIP := @echo 'SKIPPED: no browser' >>$(OLAF_LEFT_OUT)\n".replace("@", "")
    checkout.put("Makefile", skips + MAKEFILE)
    done = checkout.check("page-if-possible", "part")
    assert done.returncode == 0
    assert "page-if-possible: SKIPPED: no browser\n" in done.stdout
    assert "part: two of three were left\n" in done.stdout
    assert "page" not in (checkout.root / "scripts/checked.csv").read_text()


def test_a_list_that_names_a_moved_file_is_an_error(checkout: Checkout) -> None:
    (checkout.root / "page.html").rename(checkout.root / "site.html")
    done = checkout.check("engine")
    assert done.returncode != 0
    assert "page-if-possible reads page.html, which is not there" in done.stderr


def test_without_git_everything_runs(checkout: Checkout) -> None:
    shutil.rmtree(checkout.root / ".git")
    for _ in range(2):
        assert checkout.check(*DEAR).returncode == 0
        assert checkout.ran() == DEAR
