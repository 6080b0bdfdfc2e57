"""Pydantic models whose times, sizes and rates may have their units (`olaf.values.units`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationInfo, field_validator, model_validator

from olaf.values.units import Bare, amount, fold, read, unit_of


class United(BaseModel):
    """Base of models whose fields may be written with their units."""

    @model_validator(mode="before")
    @classmethod
    def _keys_without_units(cls, tables: Any) -> Any:
        return fold(tables, cls.model_fields) if isinstance(tables, Mapping) else tables

    @field_validator("*", mode="before")
    @classmethod
    def _texts_with_units(cls, value: Any, info: ValidationInfo) -> Any:
        unit = unit_of(info.field_name or "")
        if unit is None:
            return value
        if isinstance(value, Bare):
            return amount(unit, str(value.value))
        if not isinstance(value, str):
            return value
        words = {getattr(extra, "word", None) for extra in _metadata(cls, info)}
        return value if value.lower() in words else read(info.field_name or "", value)


def _metadata(cls: type[BaseModel], info: ValidationInfo) -> list[Any]:
    return cls.model_fields[info.field_name or ""].metadata
