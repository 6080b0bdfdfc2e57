"""The snippets of README and of the reference page run as they stand, in a stranger's folder."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python *(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def snippets(page: str, *kinds: str) -> list[str]:
    """The Python snippets of a page; a word behind ``python`` says what they need."""
    found = FENCE.findall((ROOT / page).read_text(encoding="utf-8"))
    return [text for kind, text in found if kind in ("", *kinds)]


def run(folder: Path, script: str) -> tuple[str, str]:
    """Run it as a file of a folder that holds nothing else; both outputs."""
    file = folder / "mine.py"
    file.write_text(script, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(file)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


@pytest.mark.timeout(240)
def test_the_reference_page_is_a_script_that_runs(tmp_path: Path) -> None:
    script = "\n".join(snippets("docs/reference/connection.md"))
    assert script.count("switch.") > 8
    out, errors = run(tmp_path, script)
    assert "the server does model += 1 * k^-0.7 * update, while k workers push" in out
    assert "pushes are applied at 1.0" in errors


@pytest.mark.timeout(240)
@pytest.mark.torch
def test_the_reference_page_runs_with_torch_and_a_training(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out, _ = run(tmp_path, "\n".join(snippets("docs/reference/connection.md", "torch", "train")))
    lines = out.splitlines()
    assert any(line.endswith("report.html") for line in lines)
    assert any(line.endswith("best.npz") for line in lines)
    assert lines[-1].startswith("on_evaluation returned False")
    assert (tmp_path / "runs" / "latest" / "report.html").exists()


def test_the_page_names_every_public_call() -> None:
    import olaf

    page = (ROOT / "docs/reference/connection.md").read_text(encoding="utf-8")
    calls = [name for name in vars(olaf.Connection) if not name.startswith("_")]
    assert "push_delta" in calls
    for name in (*calls, *(n for n in vars(olaf.LocalJob) if not n.startswith("_"))):
        assert re.search(rf"`(job\.|switch\.)?{name}\b", page), name


@pytest.mark.timeout(240)
def test_what_readme_pastes_learns(tmp_path: Path) -> None:
    (snippet,) = snippets("README.md")
    out, errors = run(tmp_path, snippet)
    learnt = [float(word) for word in out.strip("[] \n").split()]
    assert learnt == pytest.approx([1.0, 2.0, 3.0], abs=0.02)
    assert "pushes are applied at 1.0" in errors
    assert "hardly follows" not in errors


def test_readme_and_the_pages_say_the_same_of_a_push() -> None:
    sentence = "model += factor * k^-power * update"
    for page in (
        "docs/training.md",
        "docs/reference/connection.md",
        "python/olaf/push_pull/connection.py",
    ):
        assert sentence in (ROOT / page).read_text(encoding="utf-8"), page
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([\w./-]+)(?:#[\w-]+)?\)", readme):
        assert (ROOT / link).exists(), link


COMMAND = re.compile(r"(?:^|[\s$;&|(])olaf [a-z-]", re.MULTILINE)
BLOCK = re.compile(r"^```[^\n`]*\n.*?^```$|(?:^    \S.*\n)+", re.MULTILINE | re.DOTALL)
ON_THE_PATH = "source .venv/bin/activate"
PAGES = [
    file.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "deploy/**/*.md", "experiments/*/README.md")
    for file in sorted(ROOT.glob(pattern))
    # What was decided and what changed is read, not typed.
    if "design" not in file.parts and file.name != "CHANGELOG.md"
]


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_says_how_olaf_is_on_the_path_before_it_types_it(page: Path) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    typed = [
        block.start() + command.start()
        for block in BLOCK.finditer(text)
        if (command := COMMAND.search(block[0]))
    ]
    if typed:
        assert ON_THE_PATH in text[: typed[0]], (
            f"{page} types `olaf ..`. Say above the first such block, as the other pages do: "
            f"Commands run in the activated environment: `{ON_THE_PATH}`"
        )
    assert "uv run olaf" not in text, f"{page}: the pages write `olaf`, without uv"


def test_the_pages_that_type_olaf_are_found() -> None:
    assert {Path("README.md"), Path("docs/runs.md"), Path("docs/reference/commands.md")} <= {*PAGES}
    text = (ROOT / "docs/runs.md").read_text(encoding="utf-8")
    assert any(COMMAND.search(block) for block in BLOCK.findall(text))
    assert not COMMAND.search("import olaf\nolaf.train(1)\n")


def test_the_files_that_the_readmes_name_in_commands_are_there() -> None:
    pages = (ROOT / "README.md", ROOT / "docs/README.md")
    readme = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    named = re.findall(r"\b(?:examples|wireshark|scripts)/[\w./-]+", readme)
    assert len(named) > 3
    for name in named:
        assert (ROOT / name).exists(), name
    for command in re.findall(r"`(olaf [^`]*)`", readme):
        for word in command.split():
            if re.fullmatch(r"[\w/-]+\.(txt|toml|csv)", word):
                assert (ROOT / word).exists(), command


SAID = (
    "must return (observation, info)",
    "the same error ",
    " environment steps a second: a turn ",
    " s for a step or an update of ",
    "learning: no episode has ended in ",
    "unknown environment",
    "there is no module",
    " more line",
    "learning: each pass changes the policy much: KL ",
)


@pytest.mark.parametrize("sentence", SAID)
def test_the_page_on_runs_that_misbehave_quotes_what_is_said(sentence: str) -> None:
    page = (ROOT / "docs/debugging.md").read_text(encoding="utf-8")
    sources = (file.read_text(encoding="utf-8") for file in (ROOT / "python/olaf").rglob("*.py"))
    assert sentence in page
    assert any(sentence.removeprefix("learning: ") in source for source in sources), sentence


def test_links_lead_to_a_page_and_to_a_heading_of_it() -> None:
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/reference/*.md"), *ROOT.glob("*/README.md")]
    found = 0
    for page in (ROOT / "README.md", *pages):
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = link.partition("#")
            if ":" in link or not anchor or not path.endswith((".md", "")):
                continue
            target = page.parent / path if path else page
            assert target.is_file(), f"{page}: {link}"
            text = re.sub(r"^```.*?^```", "", target.read_text(encoding="utf-8"), flags=re.M | re.S)
            headings = {anchor_of(heading) for heading in re.findall(r"^#+ (.*)$", text, re.M)}
            assert anchor in headings, f"{page}: {link}"
            found += 1
    assert found > 50


def anchor_of(heading: str) -> str:
    """The anchor that a heading gets on a web page."""
    plain = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return plain.replace(" ", "-")
