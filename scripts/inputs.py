"""What a target of the Makefile reads, and a digest of it: scripts/check.toml has the lists.

python scripts/inputs.py [TARGET..]    prints the digest of each target
"""

from __future__ import annotations

import platform
import subprocess
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "rtl" / "tools"))

import record  # noqa: E402


class Inputs:
    """The lists of scripts/check.toml, over the files of a checkout.

    A list has paths of files and folders, names of other lists (`@core`), and paths with `!` that
    take files out again; each path may have `*`.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        lists = tomllib.loads((root / "scripts" / "check.toml").read_text())
        self._groups: dict[str, list[str]] = lists["groups"]
        self._targets: dict[str, dict[str, list[str]]] = lists["targets"]

    def targets(self) -> list[str]:
        """The targets that have a list."""
        return list(self._targets)

    def command(self, target: str) -> str:
        """The command that runs the target whatever has changed."""
        return f"make {target.removesuffix('-if-possible').removesuffix('-changed')}"

    def digests(self) -> dict[str, str]:
        """Target -> digest of its files and of the compilers. Empty without git: then all run."""
        there = known_files(self._root)
        if there is None:
            return {}
        tools = versions()
        return {target: self._digest(target, there, tools) for target in self._targets}

    def files(self, target: str, there: list[str]) -> list[str]:
        """The files that a target reads. A path that leads nowhere is an error: it was moved."""
        patterns = ["Makefile", "scripts/check.toml", *self._expand(self._targets[target]["reads"])]
        taken: set[str] = set()
        for pattern in patterns:
            if not pattern.startswith("!"):
                found = {file for file in there if is_in(file, pattern)}
                assert found, f"scripts/check.toml: {target} reads {pattern}, which is not there"
                taken |= found
        for pattern in patterns:
            if pattern.startswith("!"):
                found = {file for file in taken if is_in(file, pattern[1:])}
                assert found, f"scripts/check.toml: {target} leaves out {pattern}: nothing is there"
                taken -= found
        return sorted(taken)

    def _expand(self, patterns: list[str]) -> list[str]:
        expanded: list[str] = []
        for pattern in patterns:
            if pattern.startswith("@"):
                expanded += self._expand(self._groups[pattern[1:]])
            else:
                expanded.append(pattern)
        return expanded

    def _digest(self, target: str, there: list[str], tools: list[str]) -> str:
        parts: list[str | bytes] = [target, *tools]
        for file in self.files(target, there):
            path = self._root / file
            parts += [file, "link" if path.is_symlink() else oct(path.stat().st_mode & 0o111)]
            parts.append(str(path.readlink()) if path.is_symlink() else path.read_bytes())
        return record.digest(parts)


def is_in(file: str, pattern: str) -> bool:
    """Whether the pattern names the file, or a folder that it lies in. `*` stays in one name."""
    names, words = file.split("/"), pattern.split("/")
    return len(names) >= len(words) and all(map(fnmatchcase, names, words))


def known_files(root: Path) -> list[str] | None:
    """The files that git tracks or would track, as they lie in the checkout. None without git."""
    git = ["git", "-C", str(root), "ls-files", "-z"]
    options = ["--cached", "--others", "--exclude-standard"]
    try:
        said = subprocess.run([*git, *options], check=True, capture_output=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return None
    files = {name for name in said.split("\0") if name}
    return sorted(name for name in files if (root / name).is_file() or (root / name).is_symlink())


def versions() -> list[str]:
    """The compiler, Python, and the release of the system, which decides Debian's packages."""
    rustc = subprocess.run(["rustc", "-Vv"], check=True, capture_output=True, text=True).stdout
    system = Path("/etc/os-release")
    release = system.read_text() if system.exists() else platform.platform()
    return [rustc, sys.version, platform.machine(), release]


def main() -> None:
    """Print digests."""
    inputs = Inputs(ROOT)
    made = inputs.digests()
    for target in sys.argv[1:] or inputs.targets():
        print(made[target], target)


if __name__ == "__main__":
    main()
