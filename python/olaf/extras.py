"""Optional dependencies (extras), and the command that installs a missing one.

The base installation has the roles (switch, server, `olaf.connect`). Everything larger is an extra.
`EXTRAS` is the only list of them in Python; a test compares it with ``pyproject.toml``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

DISTRIBUTION = "olaf-aggregation"
"""Name of this package for pip. On the package index, `olaf` belongs to another project; the import
and the command are still `olaf`."""

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "train": ("gymnasium", "Box2D", "pygame", "matplotlib", "tensorboardX", "rich"),
    "verify": ("z3", "matplotlib", "rich"),
    "schedule": ("fastapi", "uvicorn", "httpx", "highspy", "rich"),
    "torch": ("torch", "torchrl", "torchvision", "tensordict"),
    "ray": ("ray",),
    "sb3": ("stable_baselines3",),
    "lightning": ("lightning",),
    "rllib": ("ray", "tree", "torch"),
    "onnx": ("onnx", "onnxruntime"),
    "video": ("imageio_ffmpeg",),
    "wandb": ("wandb",),
    "doctor": ("psutil",),
}
"""Extra -> the modules of its packages. A module in several extras is offered with the first."""


class MissingExtraError(ModuleNotFoundError):
    """A module of an extra is not installed; the message names the extra and the command."""


def need(extra: str, *modules: str, what: str = "this") -> None:
    """Check that the modules of an extra are installed, without importing them.

    modules: the modules to check; without any, all modules of the extra.
    what: the command or part that needs them, the subject of the message.
    Raises MissingExtraError.
    """
    for module in modules or EXTRAS[extra]:
        if not installed(module):
            raise MissingExtraError(missing(module, extra=extra, what=what), name=module)


def missing(module: str | None, *, extra: str, what: str) -> str:
    """The sentence for a module that is not installed: what needs it, and the command to run."""
    return f"{what} needs {module}, which is not installed: run `{command(extra)}`"


def command(extra: str) -> str:
    """The command that installs an extra for this Python.

    If the package is installed, pip takes the extra's list from the installation, so the command
    also works for a wheel from a file.
    """
    if extra not in EXTRAS:
        raise ValueError(f"no extra {extra!r}: must be one of {', '.join(EXTRAS)}")
    if _checkout() is not None:
        return f"scripts/env {extra}"
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def extra_of(module: str | None) -> str | None:
    """The first extra that provides a module (``a.b`` counts as ``a``), or None."""
    top = (module or "").partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if top in modules), None)


def installed(module: str) -> bool:
    """Whether a module is there, without importing it."""
    if module in sys.modules:
        return sys.modules[module] is not None
    return find_spec(module) is not None


def _checkout() -> Path | None:
    """The checkout to whose environment this Python belongs: `scripts/env` installs there."""
    root = Path(__file__).resolve().parents[2]
    own = (root / "scripts" / "env").is_file() and Path(sys.prefix).resolve().parent == root
    return root if own else None
