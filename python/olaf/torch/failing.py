"""Errors of a sum, as users of torch know them: a `DistBackendError`, which is a RuntimeError."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

from olaf.torch.distributed import dist


def failure(error: BaseException, what: str) -> BaseException:
    """The error for the user: what failed, where, why, and which rank is to blame."""
    known: type[BaseException] = dist.DistBackendError
    if isinstance(error, known):
        return error
    failed = known(f"olaf: {what} failed: {blame(error)}")
    failed.__cause__ = error
    return failed


def blame(error: BaseException) -> str:
    """The error's text, with the rank that caused it."""
    reason = str(error) or type(error).__name__
    culprit = getattr(error, "culprit", None)
    return (
        reason if culprit is None or f"rank {culprit}" in reason else f"{reason} (rank {culprit})"
    )


OF_THE_PROGRAM = frozenset(("mismatch", "not_finite", "partial", "refused"))
"""Reasons that gloo would not help against: the ranks' calls do not fit together."""


def of_the_program(error: BaseException) -> bool:
    """The program made the error, not the way through the switch."""
    return isinstance(error, TypeError | ValueError) or (
        str(getattr(error, "reason", "")) in OF_THE_PROGRAM
    )
