"""Where tables and progress are printed: names come from outside and are printed as they are."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


def plain_console(*, stderr: bool = False, file: IO[str] | None = None) -> Console:
    """A console that takes no brackets and colons in a string for markup."""
    from rich.console import Console

    return Console(stderr=stderr, file=file, highlight=False, markup=False, emoji=False)


def plain_text(text: str, style: str = "") -> Text:
    """For a panel's title or a status: they take markup in strings, whatever their console says."""
    from rich.text import Text

    return Text(text, style)
