"""A file that is nested without end gets a sentence and an exit code, in every command."""

from pathlib import Path

import pytest
from commands import olaf

DEEP_TOML = "a = " + "[" * 5000 + "\n"
DEEP_JSON = "[" * 100_000

NESTED = "nested too deeply"

COMMANDS = [
    ("train --config deep.toml", NESTED),
    ("switch --config deep.toml", NESTED),
    ("train --set learner.hidden=" + "[" * 5000, "learner.hidden"),
    ("train --resume run", "run/history.jsonl: not the journal of a run: line 1 is not JSON"),
    ("evaluate run", "run/history.jsonl: not the journal of a run: line 1 is not JSON"),
    ("export run --to npz", "run/history.jsonl: not the journal of a run: line 1 is not JSON"),
    ("verify deep.toml", NESTED),
    ("simulate network deep.toml", NESTED),
    ("simulate mina --jobs mix.jobs --topology deep.toml", NESTED),
    ("schedule share --cluster deep.toml", NESTED),
    ("schedule predict --cluster deep.toml", NESTED),
    ("schedule timeline deep.json --out page.html", "maximum recursion depth exceeded"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "reason"), COMMANDS, ids=[command[:20] for command, _ in COMMANDS]
)
def test_a_deep_file_is_refused_in_words(tmp_path: Path, command: str, reason: str) -> None:
    (tmp_path / "deep.toml").write_text(DEEP_TOML)
    (tmp_path / "deep.json").write_text(DEEP_JSON)
    (tmp_path / "mix.jobs").write_text("vgg 4 10\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "history.jsonl").write_text(DEEP_JSON + "\n{}\n{}\n")
    done = olaf(*command.split(), folder=tmp_path)
    assert done.returncode in (2, 3), (done.returncode, done.stdout, done.stderr)
    assert reason in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
