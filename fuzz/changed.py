#!/usr/bin/env python3
"""Names the fuzz targets whose crates have changed since they last ran without a failure.

    fuzz/changed.py                     prints them, a line each
    fuzz/changed.py --write TARGET..    these have run: writes their digests into fuzz/passed.csv

A digest covers the target's source, the crates that it uses with what these use, Cargo.lock and the
compiler. A commit draws some of the unchanged ones, too, so that a wrong table is found.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

FUZZ = Path(__file__).resolve().parent
CRATES = FUZZ.parent / "crates"
sys.path.insert(0, str(FUZZ.parent / "rtl" / "tools"))

import record  # noqa: E402

SECONDS = 10.0
"""Of the processor, that a target takes in `make fuzz`."""


def targets() -> list[str]:
    """The names of the targets, as Cargo.toml has them."""
    manifest = tomllib.loads((FUZZ / "Cargo.toml").read_text())
    return sorted(target["name"] for target in manifest["bin"])


def used(target: str) -> list[Path]:
    """The folders of the crates that a target uses, and of those that they use."""
    source = (FUZZ / "fuzz_targets" / f"{target}.rs").read_text()
    wanted = {name.replace("_", "-") for name in re.findall(r"\bolaf_\w+", source)}
    found: set[str] = set()
    while wanted:
        crate = wanted.pop()
        if crate in found or not (CRATES / crate).is_dir():
            continue
        found.add(crate)
        manifest = tomllib.loads((CRATES / crate / "Cargo.toml").read_text())
        wanted |= {name for name in manifest["dependencies"] if name.startswith("olaf-")}
    assert found, f"{target} uses no crate of this project"
    return [CRATES / crate for crate in sorted(found)]


def digest(target: str, compiler: str) -> str:
    """What the target is built from."""
    own = [FUZZ / "Cargo.toml", FUZZ / "Cargo.lock", FUZZ / "fuzz_targets" / f"{target}.rs"]
    own += [FUZZ / "run", FUZZ.parent / "Cargo.toml"]
    for crate in used(target):
        own += [file for name in ("Cargo.toml", "build.rs") if (file := crate / name).is_file()]
        own += sorted(file for file in (crate / "src").rglob("*") if file.is_file())
    parts: list[str | bytes] = [target, compiler]
    for file in own:
        parts += [str(file.relative_to(FUZZ.parent)), file.read_bytes()]
    return record.digest(parts)


def main() -> None:
    """Print or write."""
    compiler = subprocess.run(["rustc", "-Vv"], check=True, capture_output=True, text=True).stdout
    table = record.Record(FUZZ / "passed.csv")
    digests = {target: digest(target, compiler) for target in targets()}
    if sys.argv[1:2] == ["--write"]:
        for target in sys.argv[2:]:
            table.passed(target, digests[target], SECONDS)
        table.write(targets())
        return
    seed = record.commit(FUZZ)
    choice = record.choose(digests, table, cheap=0, budget=2 * SECONDS, seed=seed)
    print(*sorted(choice.run), sep="\n")


if __name__ == "__main__":
    main()
