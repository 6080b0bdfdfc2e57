"""Runs scenarios in the core."""

from __future__ import annotations

import json
from collections.abc import Callable

from olaf.errors.usage import ConfigurationError
from olaf.scenarios.sums.outcome import Outcome
from olaf.scenarios.sums.reading import Scenario


def run(
    scenario: Scenario, seed: int | None = None, told: Callable[[int], object] = lambda ended: None
) -> Outcome:
    """Run a scenario, with another seed if one is given.

    ``told`` is called with the number of iterations of workers that have ended. Raises
    ConfigurationError for an invalid scenario; its message begins with the key.
    """
    from olaf._olaf import simulate_sums

    given = scenario if seed is None else {**scenario, "seed": seed}
    try:
        text = simulate_sums(json.dumps(given), told)
    except ValueError as error:
        raise ConfigurationError(str(error).removeprefix("scenario: ")) from None
    except TypeError as error:  # a date, for example, which TOML has and scenarios do not
        raise ConfigurationError(str(error)) from None
    return Outcome.model_validate_json(text)


def iterations(scenario: Scenario) -> int:
    """Iterations of all workers of all jobs, as far as the scenario says them in numbers."""
    jobs = scenario.get("jobs")
    counts = [
        (job.get("workers"), job.get("iterations"))
        for job in (jobs if isinstance(jobs, list) else [])
        if isinstance(job, dict)
    ]
    return sum(
        workers * count
        for workers, count in counts
        if isinstance(workers, int) and isinstance(count, int)
    )
