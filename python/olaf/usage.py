"""A configuration that cannot be used: apart from what reads it, which takes long to import."""

from __future__ import annotations

from olaf.outcome import Exit, RunError


class ConfigurationError(RunError):
    """A configuration that cannot be used, with every key that is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)
