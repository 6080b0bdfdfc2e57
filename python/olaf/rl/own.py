"""The user's own modules: environments and networks in the current folder.

``olaf`` is a program, so Python looks for modules beside the program and not in the current folder.
`import_own` looks in the current folder first, as ``python script.py`` would.
"""

import importlib
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from olaf.rl.learner import LearnerError


class RaisedElsewhereError(Exception):
    """An error of the user's code in another process, with the frames that it had there."""

    def __init__(self, text: str, frames: list[tuple[str, int, str, str | None]]) -> None:
        super().__init__(text)
        self.text, self.frames = text, frames

    @classmethod
    def of(cls, error: BaseException) -> "RaisedElsewhereError":
        """The error, in a form that can be pickled."""
        text = "".join(traceback.format_exception_only(error)).strip()
        frames = traceback.extract_tb(error.__traceback__)
        return cls(text, [(one.filename, one.lineno or 0, one.name, one.line) for one in frames])

    def __reduce__(self) -> Any:
        return type(self), (self.text, self.frames)


def import_own(name: str, option: str, error: type[LearnerError] = LearnerError) -> ModuleType:
    """Import module ``name`` from the current folder, or else from the installed packages.

    option: the user's text, such as ``environment 'mine:Dot-v0'``; messages begin with it.
    Raises ``error``, which says where Python looked or where in the module it failed.
    """
    here = os.getcwd()
    if "" not in sys.path and here not in sys.path:
        # Each worker is a process of its own and imports the module itself.
        sys.path.insert(0, here)
        importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name and (name == missing.name or name.startswith(missing.name + ".")):
            raise error(f"{option}: {nowhere(name, here)}") from None
        raise error(
            f"{option}: module {name!r} needs {missing.name!r}, which is not installed "
            f"({where(missing)})"
        ) from missing
    except Exception as failed:
        raise error(f"{option}: importing {name!r} failed: {described(failed)}") from failed


def nowhere(name: str, here: str) -> str:
    """The sentence for a module that does not exist, with the places where Python looked."""
    if name.endswith(".py") and Path(here, name).exists():
        return f"write the module without '.py': {name[:-3]!r}"
    file = name.replace(".", "/")
    return (
        f"there is no module {name!r}: neither {file}.py nor {file}/__init__.py is in the current "
        f"folder {here}, and no installed package has this name. Run the command in the folder "
        f"that holds {file}.py, or add that folder to PYTHONPATH"
    )


def described(error: BaseException) -> str:
    """An exception in one line: type, text, and the line of code that raised it."""
    text = f"{type(error).__name__}: {error}"
    return text if isinstance(error, SyntaxError) else f"{text} ({where(error)})"


def where(error: BaseException) -> str:
    """File and line of the innermost frame in the user's code."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen")
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "no line known"
