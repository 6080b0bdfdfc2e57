"""How the library tells a person something: through the logger ``olaf``.

A script that has not configured logging would see nothing below a warning. It should see what its
pushes do, so that without any handler the sentence goes to standard error. A program that has
configured logging decides for itself, as with every other library.
"""

from __future__ import annotations

import logging
import sys

LOGGER = logging.getLogger("olaf")


def tell(level: int, text: str) -> None:
    """Log ``text``; print it on standard error where nobody has configured logging."""
    if LOGGER.hasHandlers():
        LOGGER.log(level, text)
    elif level >= (LOGGER.level or logging.INFO) and not LOGGER.disabled:
        name = "" if level < logging.WARNING else logging.getLevelName(level).lower() + ": "
        print(f"olaf: {name}{text}", file=sys.stderr)
