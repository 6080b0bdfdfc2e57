"""What docs/all-reduce.md and the example say runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from workers import switch_here

import olaf

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/all-reduce.md").read_text(encoding="utf-8")


def ran(*argv: str, folder: Path | None = None) -> list[str]:
    """The output of each of two processes of the same program."""
    started = [
        subprocess.Popen([sys.executable, *argv], stdout=subprocess.PIPE, text=True, cwd=folder)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=100)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    return outputs


def test_the_quick_start_runs(tmp_path: Path) -> None:
    (snippet,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    with switch_here() as switch:
        file = tmp_path / "mine.py"
        file.write_text(snippet.replace("127.0.0.1:5555", switch.address), encoding="utf-8")
        assert sorted(ran("mine.py", folder=tmp_path)) == ["0 1.5\n", "1 1.5\n"]


def test_the_example_learns_the_line() -> None:
    example = ROOT / "examples" / "all_reduce.py"
    assert len(example.read_text(encoding="utf-8").splitlines()) < 40
    with switch_here() as switch:
        for output in ran(str(example), switch.address, "2"):
            learnt = [float(word) for word in re.findall(r"-?\d+\.\d*", output)]
            assert learnt == pytest.approx([3.0, -1.0, 0.5], abs=0.01)


def test_the_page_names_every_public_call_and_reason() -> None:
    for kind in (olaf.SumConnection, olaf.SumFuture):
        for name in vars(kind):
            if not name.startswith("_"):
                assert re.search(rf"`(job\.|future\.)?{name}\b", PAGE), name
    reasons = re.findall(r"``(\w+)``", (ROOT / "python/olaf/_olaf.pyi").read_text(encoding="utf-8"))
    for reason in ("worker_died", "mismatch", "switch_restarted", "partial"):
        assert reason in reasons
        assert f"`{reason}`" in PAGE
