"""What a group needs to know to sum through a switch, from the program or from the environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from olaf.sums.protocols import PROTOCOLS

GLOO = "gloo"
TRUE, FALSE = ("1", "true", "yes", "on"), ("", "0", "false", "no", "off")


@dataclass(frozen=True)
class SumOptions:
    """The ``pg_options`` of the backend ``olaf``. What is None comes from the environment.

    switch: ``OLAF_SWITCH``, as in ``10.0.0.1:5555``.
    job: ``OLAF_JOB``, from 1 to 65535. Two programs on one switch need two numbers. Default: 1.
    protocol: ``OLAF_PROTOCOL``, see ``protocol`` of `olaf.connect_sum`. Default: ``reduce``.
    partial: ``OLAF_PARTIAL``. Take sums that lack workers. They are scaled, so that their mean is
        the mean over their contributors.
    deadline_s: ``OLAF_DEADLINE_S``. The switch sends a block that is older without the missing
        workers. Without ``partial`` such a sum is an error. Default: it waits.
    exact: ``OLAF_EXACT``. Sum float32 in fixed point: the same inputs give the same bits in every
        run. It costs one round trip more for each operation.
    fall_back: ``OLAF_FALL_BACK``, ``gloo`` or empty. Finish over gloo when the switch fails.
    connect_timeout_s: ``OLAF_CONNECT_TIMEOUT_S``. Time for the join at the switch. Default: 30.
    connection: further options of `olaf.connect_sum`; ``OLAF_CONNECTION``, as JSON.
    """

    switch: str | None = None
    job: int | None = None
    protocol: str | None = None
    partial: bool | None = None
    exact: bool | None = None
    deadline_s: float | None = None
    fall_back: str | None = None
    connect_timeout_s: float | None = None
    connection: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Settings:
    """The options of one group, checked. No value is open."""

    switch: str
    job: int = 1
    protocol: str = "reduce"
    partial: bool = False
    exact: bool = False
    deadline_s: float | None = None
    falls_back: bool = False
    connect_timeout_s: float = 30.0
    connection: Mapping[str, Any] = field(default_factory=dict)


MAX_JOB = 0xFFFF
"""Larger numbers belong to subgroups: see `olaf.torch.connecting`."""


def settings(given: object, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings from ``pg_options`` and the environment.

    Raises ValueError, which names the option and its variable.
    """
    if given is None:
        given = SumOptions()
    if not isinstance(given, SumOptions):
        raise TypeError(
            f"pg_options of the backend olaf must be olaf.torch.SumOptions, "
            f"not {type(given).__name__}"
        )
    read = _Reader(environment)
    switch = given.switch or environment.get("OLAF_SWITCH")
    if not switch:
        raise ValueError("no switch: set OLAF_SWITCH=host:port, or SumOptions(switch=..)")
    chosen = Settings(
        switch=switch,
        job=_or(given.job, read.number("OLAF_JOB", int), 1),
        protocol=_or(given.protocol, environment.get("OLAF_PROTOCOL"), "reduce"),
        partial=_or(given.partial, read.truth("OLAF_PARTIAL"), False),
        exact=_or(given.exact, read.truth("OLAF_EXACT"), False),
        deadline_s=_or(given.deadline_s, read.number("OLAF_DEADLINE_S", float), None),
        falls_back=_fall_back(_or(given.fall_back, environment.get("OLAF_FALL_BACK"), "")),
        connect_timeout_s=_or(
            given.connect_timeout_s, read.number("OLAF_CONNECT_TIMEOUT_S", float), 30.0
        ),
        connection=_or(given.connection, read.mapping("OLAF_CONNECTION"), {}),
    )
    if not 1 <= chosen.job <= MAX_JOB:
        raise ValueError(f"OLAF_JOB = {chosen.job}: must be from 1 to {MAX_JOB}")
    if chosen.protocol not in PROTOCOLS:
        raise ValueError(
            f"OLAF_PROTOCOL = {chosen.protocol!r}: must be one of {', '.join(PROTOCOLS)}"
        )
    if chosen.exact and PROTOCOLS[chosen.protocol].sums_floats:
        raise ValueError(f"OLAF_EXACT: the protocol {chosen.protocol} has no order-free sums")
    if chosen.partial and chosen.falls_back:
        # The fall-back needs to know that every worker took part in the last sum.
        raise ValueError("OLAF_PARTIAL and OLAF_FALL_BACK exclude each other: choose one")
    return chosen


def _fall_back(given: str) -> bool:
    if given not in ("", GLOO):
        raise ValueError(f"OLAF_FALL_BACK = {given!r}: must be {GLOO!r} or empty")
    return given == GLOO


def _or(*choices: Any) -> Any:
    """The first that is not None; None if all are."""
    return next((choice for choice in choices if choice is not None), None)


@dataclass(frozen=True)
class _Reader:
    environment: Mapping[str, str]

    def number(self, name: str, kind: type[int] | type[float]) -> float | None:
        text = self.environment.get(name)
        if not text:
            return None
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"{name} = {text!r}: must be a number") from None

    def truth(self, name: str) -> bool | None:
        text = self.environment.get(name)
        if text is None:
            return None
        if text.lower() not in TRUE + FALSE:
            raise ValueError(f"{name} = {text!r}: must be 1 or 0")
        return text.lower() in TRUE

    def mapping(self, name: str) -> Mapping[str, Any] | None:
        text = self.environment.get(name)
        if not text:
            return None
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ValueError(f"{name} is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise ValueError(f"{name} = {text!r}: must be a JSON object")
        return value
