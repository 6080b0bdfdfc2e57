"""Scenarios run in the core."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from olaf.errors.usage import ConfigurationError
from olaf.scenarios.outcome import Outcome
from olaf.scenarios.reading import Scenario

T = TypeVar("T")

QUIET_S = 2.0
"""Seconds after which progress is printed."""


def run(scenario: Scenario, seed: int | None = None) -> Outcome:
    """Run a scenario, with another seed if one is given.

    Raises ConfigurationError for an invalid scenario; it names the key.
    """
    from olaf._olaf import simulate

    told = scenario if seed is None else {**scenario, "seed": seed}
    try:
        text = simulate(json.dumps(told))
    except ValueError as error:
        raise ConfigurationError(str(error).removeprefix("scenario: ")) from None
    except TypeError as error:  # a date, for example, which TOML has and scenarios do not
        raise ConfigurationError(str(error)) from None
    return Outcome.model_validate_json(text)


def watched(work: Callable[[], T], say: Callable[[float], None]) -> T:
    """Do the work; every two seconds ``say`` its duration so far.

    It runs in a separate thread, so that Ctrl-C ends the wait at once.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def carry_out() -> None:
        try:
            results.append(work())
        except BaseException as error:  # raised again below, in the caller's thread
            errors.append(error)

    thread = threading.Thread(target=carry_out, daemon=True)
    begin = time.monotonic()
    thread.start()
    while True:
        thread.join(QUIET_S)
        if not thread.is_alive():
            break
        say(time.monotonic() - begin)
    if errors:
        raise errors[0]
    return results[0]
