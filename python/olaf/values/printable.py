"""Text of others, such as a worker's line, as a terminal may show it."""

from __future__ import annotations

import re

COLOURS = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
"""Control sequences of ECMA-48: colours, moves of the cursor. Many libraries print in colour."""


def printable(text: str, keep: str = "") -> str:
    """Without characters that steer a terminal. keep: such characters that may stay.

    Control sequences go; other such characters are shown as a replacement character.
    """
    rest = COLOURS.sub("", text)
    if rest.isprintable():
        return rest
    return "".join(each if each.isprintable() or each in keep else "\ufffd" for each in rest)
