"""The base class of the configuration's tables."""

from __future__ import annotations

from typing import Any

from pydantic import ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from olaf.values.united import United


class NoneIs:
    """The word that stands for None in a field, since TOML has no null."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        def read(value: Any) -> Any:
            return None if isinstance(value, str) and value.lower() == self.word else value

        return core_schema.no_info_before_validator_function(read, handler(source))


class Explained:
    """Text that is appended to the description of a field."""

    def __init__(self, text: str) -> None:
        self.text = text


class Section(United):
    """A table of the configuration; an unknown key is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
