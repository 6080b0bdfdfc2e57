"""Where a party finds the key of its job, if nobody tells it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

VARIABLE = "OLAF_KEY_FILE"
"""Variable of the environment that names the key file of parties which are not told one."""

PUBLIC = "public"
"""In the place of a key file: the key that everybody knows (`docs/keys.md`). It is no path."""


def with_key(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a worker, with the key file of the environment if they name none."""
    named = any(options.get(option) is not None for option in ("key_file", "key"))
    given = None if named else key_file(None)
    return dict(options) if given is None else dict(options) | {"key_file": given}


def key_file(named: str | None) -> str | None:
    """The key file that is named, or that of the environment; None without any."""
    return named or os.environ.get(VARIABLE) or None


def key_files(named: Sequence[str]) -> list[str]:
    """The key files of a switch or a server: those that are named, or that of the environment."""
    given = os.environ.get(VARIABLE)
    return list(named) if named or not given else [given]
