"""One finding: what was looked at, what was found, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Level = Literal["ok", "note", "fix"]
"""``ok``: as it should be. ``note``: worth knowing, nothing to do. ``fix``: do what it says."""


@dataclass(frozen=True)
class Finding:
    """What was found about one thing."""

    about: str
    level: Level
    found: str
    to_do: str = ""
    """What to do about it; only a finding to fix has it."""


@dataclass
class Section:
    """Findings about one place: this machine, the switch, the server."""

    name: str
    findings: list[Finding] = field(default_factory=list)
    measured: dict[str, Any] = field(default_factory=dict)
    """Numbers behind the findings, for scripts. Names end with their unit."""

    def ok(self, about: str, found: str) -> None:
        """Something is as it should be."""
        self.findings.append(Finding(about, "ok", found))

    def note(self, about: str, found: str) -> None:
        """Something is worth knowing."""
        self.findings.append(Finding(about, "note", found))

    def fix(self, about: str, found: str, to_do: str) -> None:
        """Something needs a hand."""
        self.findings.append(Finding(about, "fix", found, to_do))

    def check(self, about: str, found: str, *, to_do: str, if_bad: bool) -> None:
        """Something is as it should be, or needs a hand."""
        if if_bad:
            self.fix(about, found, to_do)
        else:
            self.ok(about, found)

    @property
    def is_good(self) -> bool:
        """Whether nothing needs a hand."""
        return all(finding.level != "fix" for finding in self.findings)

    def told(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.name,
            "findings": [asdict(finding) for finding in self.findings],
            "measured": self.measured,
        }
