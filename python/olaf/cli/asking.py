"""Shared by ``olaf verify`` and ``olaf admit``: their exit codes, amounts and progress."""

from __future__ import annotations

import signal
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from threading import Event, current_thread, main_thread
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

from olaf.cli.consoles import plain_console, plain_text
from olaf.errors.outcome import RunError, failure_of

if TYPE_CHECKING:
    from rich.status import Status

YES, NO, UNDECIDED, BAD_INPUT, BUG = 0, 1, 2, 3, 70
"""Exit codes. 1 is an answer, so invalid input and our own bugs must have other codes."""

QUIET_S = 2.0
"""Work that takes less time prints no progress."""
LINE_EVERY_S = 5.0


class Question(click.Command):
    """A command whose exit code is an answer."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """As click does, but invalid options end with BAD_INPUT."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            error.show()
            raise click.exceptions.Exit(BAD_INPUT) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; invalid input and bugs have codes of their own."""
        try:
            return super().invoke(ctx)
        except (click.exceptions.Exit, click.Abort, KeyboardInterrupt, BrokenPipeError):
            raise
        except click.ClickException as error:
            error.show()
            raise click.exceptions.Exit(BAD_INPUT) from None
        except (RunError, ModuleNotFoundError) as error:
            if (failure := failure_of(error)) is None:
                raise
            click.echo(f"olaf: {failure}", err=True)
            raise click.exceptions.Exit(BAD_INPUT) from None
        except Exception:
            traceback.print_exc()
            click.echo("olaf: this is a bug in Olaf and not an answer; please report it", err=True)
            raise click.exceptions.Exit(BUG) from None


def time_of(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Decimal | None:
    """Callback of a time option: its value in milliseconds."""
    if value is None:
        return None
    try:
        return milliseconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def milliseconds(text: str) -> Decimal:
    """Read ``100ms``, ``1.5s`` or ``20us`` as milliseconds. Raises ValueError."""
    from olaf._olaf import parse_time

    try:
        return Decimal(parse_time(text)) / 1_000_000
    except ValueError:
        raise ValueError(f"{text!r} is not a time: write 100ms, 1.5s or 2min") from None


def above_zero(timeout: Decimal) -> None:
    """Refuse a ``--timeout`` of 0 or less. Raises click.BadParameter."""
    if timeout <= 0:
        raise click.BadParameter("must be above 0", param_hint="--timeout")


def share(text: str) -> Decimal:
    """Read ``5%`` or ``0.05`` as a share of one. Raises ValueError."""
    try:
        if text.strip().endswith("%"):
            return Decimal(text.strip()[:-1]) / 100
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a share: write 5% or 0.05") from None


class Thinking:
    """Prints progress to stderr once the work takes longer than ``QUIET_S``."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._due_s = QUIET_S
        self._status: Status | None = None

    def __enter__(self) -> Thinking:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show the current step of the work."""
        elapsed_s = time.monotonic() - self._begin
        if self._status is not None:
            self._status.update(plain_text(f"{elapsed_s:.0f} s  {text}"))
        elif elapsed_s >= self._due_s:
            console = plain_console(stderr=True)
            if console.is_terminal:
                self._status = console.status(plain_text(f"{elapsed_s:.0f} s  {text}"))
                self._status.start()
            else:
                self._due_s = elapsed_s + LINE_EVERY_S
                click.echo(f"{elapsed_s:7.1f} s  {text}", err=True)


@contextmanager
def interruptible() -> Iterator[Event]:
    """Ctrl-C and SIGTERM set the event, so that a partial answer can be given.

    The second Ctrl-C raises KeyboardInterrupt.
    """
    stop = Event()
    if current_thread() is not main_thread():
        yield stop
        return

    def handle(number: int, frame: Any) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
