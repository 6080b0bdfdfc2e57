#!/usr/bin/env python3
"""Chooses the inputs that fuzz/corpus keeps for each target: at most 30, by the edges they reach.

    fuzz/cover.py BINARIES FOUND [TARGET ..]

BINARIES is the folder of the built targets, FOUND the folder of the inputs that fuzzing has found.
`fuzz/run --cover` calls this. An input that a person has named stays, 20 of a target at most. Then
the input that reaches most new edges is taken, until none reaches a new one or 30 are there. These
are called edges-01, edges-02 and so on.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus"
MOST, MOST_NAMED = 30, 20
# What libFuzzer calls an input, and what this program does.
UNNAMED = re.compile(r"[0-9a-f]|[0-9a-f]{12}|[0-9a-f]{40}|edges-\d\d")


def main() -> int:
    """Choose the inputs of all targets, or of those that are named."""
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    binaries, found = Path(sys.argv[1]), Path(sys.argv[2])
    for target in sys.argv[3:] or sorted(folder.name for folder in CORPUS.iterdir()):
        edges = edges_of(binaries / target, [CORPUS / target, found / target])
        kept = choose(edges)
        every, have = (len(set().union(*part.values())) for part in (edges, kept))
        print(f"fuzz: {target} keeps {len(kept)} of {len(edges)} inputs, {have} of {every} edges")
        write(CORPUS / target, kept)
    return 0


def edges_of(binary: Path, folders: list[Path]) -> dict[Path, set[str]]:
    """The edges that each input reaches, by libFuzzer's own account of a merge."""
    with tempfile.TemporaryDirectory() as scratch:
        account, out = Path(scratch) / "account", Path(scratch) / "out"
        out.mkdir()
        how = [
            "-set_cover_merge=1",
            "-use_counters=0",
            "-use_cmp=0",
            "-max_len=4096",
            "-timeout=20",
        ]
        places = [str(folder) for folder in folders if folder.is_dir()]
        subprocess.run(
            [str(binary), *how, f"-merge_control_file={account}", str(out), *places],
            check=True,
            capture_output=True,
        )
        lines = account.read_text(encoding="utf-8").splitlines()
    # The number of the files, the first that is new, their names, and what each reaches ("FT").
    count = int(lines[0])
    files = [Path(line) for line in lines[2 : 2 + count]]
    edges: dict[Path, set[str]] = {}
    for line in lines[2 + count :]:
        kind, *rest = line.split()
        if kind == "FT":
            edges.setdefault(files[int(rest[0])], set()).update(rest[1:])
    return edges


def choose(edges: dict[Path, set[str]]) -> dict[Path, set[str]]:
    """The named inputs, then always the one that reaches most new edges, the shortest of equals."""
    named = sorted(file for file in edges if not UNNAMED.fullmatch(file.name))[:MOST_NAMED]
    kept = {file: edges[file] for file in named}
    have = set().union(*kept.values())
    size = {file: file.stat().st_size for file in edges}
    while len(kept) < MOST:
        best = min(edges, key=lambda file: (-len(edges[file] - have), size[file], file))
        if not edges[best] - have:
            break
        kept[best] = edges[best]
        have |= edges[best]
    return kept


def write(folder: Path, kept: dict[Path, set[str]]) -> None:
    """Make the inputs the only ones of a folder."""
    data: dict[str, bytes] = {}
    for file in kept:
        is_named = not UNNAMED.fullmatch(file.name)
        number = sum(name.startswith("edges-") for name in data) + 1
        data[file.name if is_named else f"edges-{number:02}"] = file.read_bytes()
    folder.mkdir(exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for name, content in data.items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    sys.exit(main())
