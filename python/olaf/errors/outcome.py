"""How a command ends: an exit code for scripts, a sentence for people."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum


class Exit(IntEnum):
    """The exit codes of ``olaf`` and of each of its roles."""

    OK = 0
    """The command did what it was asked to do."""
    FAILED = 1
    """The run failed, or ended without the requested reward."""
    USAGE = 2
    """Invalid options or configuration; nothing was started."""
    UNREACHABLE = 3
    """A peer did not answer before its deadline; the message names the peer."""
    PORT_IN_USE = 4
    """The address to listen on is in use."""
    REFUSED = 5
    """The switch or the server refused this worker; the message says why."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C; the results so far were reported."""


class RunError(Exception):
    """Ends a run, with a message for the user and an exit code for scripts."""

    def __init__(self, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.code = code


class ConfigurationError(ValueError):
    """The core cannot use its configuration, such as an address or a key."""


@contextmanager
def configuring() -> Iterator[None]:
    """Turn the core's ValueError about its configuration into a NotUsable for the user."""
    try:
        yield
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def failure_of(error: BaseException) -> RunError | None:  # noqa: PLR0911
    """The failure that an error of the core or of the system means, or None if it is a bug."""
    if isinstance(error, RunError):
        return error
    # By name, so that a command without a network needs no extension module.
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if "UnreachableError" in kinds:
        return RunError(str(error), Exit.UNREACHABLE)
    if "RefusedError" in kinds:
        return RunError(str(error), Exit.REFUSED)
    if isinstance(error, ModuleNotFoundError):
        return _missing_extra(error)
    if isinstance(error, ConfigurationError):
        return RunError(str(error), Exit.USAGE)
    if isinstance(error, OSError) and _is_port_in_use(error):
        return RunError(_port_advice(str(error)), Exit.PORT_IN_USE)
    if isinstance(error, OSError) and error.filename and error.strerror:
        return RunError(f"{error.filename}: {error.strerror}", Exit.FAILED)
    known = isinstance(error, OSError) or "OlafError" in kinds
    return RunError(str(error), Exit.FAILED) if known else None


def _missing_extra(error: ModuleNotFoundError) -> RunError | None:
    """The extra that provides the module, or None."""
    from olaf import extras

    if isinstance(error, extras.MissingExtraError):
        return RunError(str(error), Exit.USAGE)
    extra = extras.extra_of(error.name)
    if extra is None:
        return None
    module = str(error.name).partition(".")[0]
    return RunError(extras.missing(module, extra=extra, what="this command"), Exit.USAGE)


def _is_port_in_use(error: OSError) -> bool:
    import errno

    return error.errno == errno.EADDRINUSE or "in use" in str(error).lower()


def _port_advice(message: str) -> str:
    if re.search(r"\b(choose|listen|stop)\b", message):
        return message
    return (
        f"{message}: stop what is listening there (`ss -lunp` shows it), or choose another port "
        "with --listen HOST:PORT (port 0 picks a free one)"
    )
