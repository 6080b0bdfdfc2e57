"""Options of an environment's constructor, with the numbers of worker and copy filled in."""

import re
from collections.abc import Mapping
from typing import Any

_PLACE = re.compile(r"\{(worker|copy|index)(?:\s*\+\s*(\d+))?\}")


def filled(options: Mapping[str, Any], *, worker: int, copy: int, copies: int) -> dict[str, Any]:
    """The options of one copy of the environment.

    In texts, ``{worker}`` becomes the worker's number, ``{copy}`` that of the copy in its worker,
    and ``{index}`` = worker x copies + copy, which no other copy of the job has. ``{index+9000}``
    adds to it. A text that is nothing else becomes a number.
    """
    numbers = {"worker": worker, "copy": copy, "index": worker * copies + copy}

    def number(match: re.Match[str]) -> int:
        return numbers[match[1]] + int(match[2] or 0)

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            whole = _PLACE.fullmatch(value)
            return number(whole) if whole else _PLACE.sub(lambda m: str(number(m)), value)
        if isinstance(value, list | tuple):
            return [fill(one) for one in value]
        if isinstance(value, Mapping):
            return {key: fill(one) for key, one in value.items()}
        return value

    return {key: fill(value) for key, value in options.items()}
