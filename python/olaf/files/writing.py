"""Files that are written in one step: nobody finds half a file, and a full disk leaves none."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def in_one_step(file: Path) -> Iterator[Path]:
    """A path to write to; it becomes ``file`` at the end.

    Where something fails, ``file`` stays as it was. An `OSError` names ``file``.
    """
    half = file.with_name(file.name + ".part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        yield half
        half.replace(file)
    except BaseException as error:
        with contextlib.suppress(OSError):
            half.unlink()
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror or str(error), str(file)) from error
        raise


def write_text(file: Path, text: str) -> None:
    """Write a text file (UTF-8) in one step. Raises OSError, which names the file."""
    with in_one_step(file) as half:
        half.write_text(text, encoding="utf-8")
