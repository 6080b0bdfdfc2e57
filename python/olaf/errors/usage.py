"""The error for an invalid configuration; separate from its reader, which imports slowly."""

from __future__ import annotations

from olaf.errors.outcome import Exit, RunError


class ConfigurationError(RunError):
    """The configuration is invalid; the message names every wrong key."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.USAGE)
