"""Messages of the library to a person, through the logger ``olaf``.

Without configured logging, a script would see only warnings. But it should see the effect of its
pushes, so without any handler the sentence goes to stderr. A program that configures logging
decides for itself, as with every other library.
"""

from __future__ import annotations

import logging
import sys

LOGGER = logging.getLogger("olaf")


def tell(level: int, text: str) -> None:
    """Log ``text``; print it to stderr if logging is not configured."""
    if LOGGER.hasHandlers():
        LOGGER.log(level, text)
    elif level >= (LOGGER.level or logging.INFO) and not LOGGER.disabled:
        name = "" if level < logging.WARNING else logging.getLevelName(level).lower() + ": "
        print(f"olaf: {name}{text}", file=sys.stderr)
