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
    reason = advised(str(error) or type(error).__name__)
    culprit = getattr(error, "culprit", None)
    return (
        reason if culprit is None or f"rank {culprit}" in reason else f"{reason} (rank {culprit})"
    )


ADVICE = {
    "allow more time (timeout_s)": "allow more time (OLAF_CONNECT_TIMEOUT_S)",
    "Allow more time with timeout_s": "Allow more time with init_process_group(timeout=..)",
    "allow partial sums (partial=True), or raise deadline_s": (
        "allow partial sums (OLAF_PARTIAL=1), or raise OLAF_DEADLINE_S"
    ),
    "give another job number (job=)": "give another OLAF_JOB",
    "give another job number": "give another OLAF_JOB",
    "Give another job number (job=)": "Give another OLAF_JOB",
    "use another job number": "use another OLAF_JOB",
    "connect again": "make the group again",
}
"""What the errors of `olaf.connect_sum` advise, and what that is for a user of torch."""


def advised(text: str) -> str:
    """The text with the options of this backend in place of those of `olaf.connect_sum`."""
    for there, here in ADVICE.items():
        text = text.replace(there, here)
    return text


OF_THE_PROGRAM = frozenset(
    (
        *("mismatch", "not_finite", "partial", "refused"),
        *("other_program", "rank_taken", "contested"),
    )
)
"""Reasons that gloo would not help against: the ranks' calls do not fit together."""


def of_the_program(error: BaseException) -> bool:
    """The program made the error, not the way through the switch."""
    return isinstance(error, TypeError | ValueError) or (
        str(getattr(error, "reason", "")) in OF_THE_PROGRAM
    )
