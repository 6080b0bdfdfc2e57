"""The values that determine a job's gain, and are therefore in the store: network and patterns.

If a service restarted with other values, the same request would have another gain. The service
refuses them, with both values, unless ``--change`` is given.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from olaf.errors.usage import ConfigurationError
from olaf.schedule.known import NETWORK

SAID = {"bytes_per_second": "--bandwidth", "speedup_millis": "--speedup", "latency_ns": "latency"}


@dataclass(frozen=True)
class Worth:
    """A network and patterns by name, as ``known.read`` returns them."""

    network: dict[str, int] = field(default_factory=dict)
    """The given fields of the core's ``Network``; in a store, all of them."""
    patterns: dict[str, str] = field(default_factory=dict)


def united(
    file: Path,
    kept: Worth | None,
    given: Worth,
    bundled: Mapping[str, str],
    *,
    change: bool,
) -> tuple[Worth, list[str]]:
    """The new contents of the store, and their differences from the old ones, in words.

    kept: None in a new store, and in one of an earlier version. bundled: patterns that come with
    Olaf; they never replace a stored one. Raises ConfigurationError if ``given`` contradicts
    ``kept`` without ``change``.
    """
    before = kept or Worth()
    differing = [
        (SAID[key], show(key, before.network[key]), show(key, value))
        for key, value in given.network.items()
        if before.network.get(key, value) != value
    ]
    differing += [
        (f"--patterns: {name}", _brief(before.patterns[name]), _brief(text))
        for name, text in sorted(given.patterns.items())
        if before.patterns.get(name, text) != text
    ]
    if differing and not change:
        what, was, wanted = differing[0]
        raise ConfigurationError(
            f"--store {file}: made with {what} {was}, now {wanted}: the same job would have "
            "another gain; leave the option out to keep the old value, or add --change (submitted "
            "jobs keep their gain)"
        )
    network = {**NETWORK, **before.network, **given.network}
    patterns = {**bundled, **before.patterns, **given.patterns}
    return Worth(network, patterns), [f"{what} {was} -> {new}" for what, was, new in differing]


def show(key: str, value: int) -> str:
    """``100 Gbit/s``, ``2``."""
    if key == "bytes_per_second":
        bits = value * 8
        for unit, size in (("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3)):
            if bits >= size:
                return f"{bits / size:g} {unit}"
        return f"{bits} bit/s"
    return f"{value / 1000:g}" if key == "speedup_millis" else f"{value} ns"


def _brief(text: str) -> str:
    pattern = json.loads(text)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    total = sum(each["bytes"] for each in pattern["operations"])
    return (
        f"({len(pattern['operations'])} all-reduces, {total} bytes, "
        f"{pattern['compute_ns'] / 1e6:g} ms, contents {digest})"
    )
