"""Types of fields that several sections of the configuration have."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator

from olaf.jobs.section import NoneIs
from olaf.values import units


def _address(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    bare = value.removeprefix("udp://")
    host, _, port = bare.rpartition(":")
    if not host or not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ValueError("write it HOST:PORT, for IPv6 [HOST]:PORT")
    return bare


def _rate(value: Any) -> Any:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        units.rate(str(value))
    return value


def _clip(value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value:g}"
    if isinstance(value, str):
        try:
            limit = float(value.removesuffix("x"))
        except ValueError:
            limit = 0.0
        if not 0 < limit < float("inf"):
            raise ValueError('write a number above 0, a multiple such as "100x", or off')
    return value


Address = Annotated[str, BeforeValidator(_address)]
Rate = Annotated[str, BeforeValidator(_rate)]
OffFloat = Annotated[float | None, NoneIs("off")]
OffInt = Annotated[int | None, NoneIs("off")]
OffClip = Annotated[Annotated[str, BeforeValidator(_clip)] | None, NoneIs("off")]
OffText = Annotated[str | None, NoneIs("off")]
OffRate = Annotated[Rate | None, NoneIs("off")]
