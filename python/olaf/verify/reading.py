"""Reads the verifier's TOML files, and reports errors in them."""

from __future__ import annotations

import difflib
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from olaf.errors.usage import ConfigurationError
from olaf.values import units
from olaf.values.parsed import toml_of
from olaf.verify.spec import ClusterSpec, Spec

T = TypeVar("T", bound=BaseModel)


def read(file: Path) -> Spec:
    """Read and check a SPEC.toml. Raises ConfigurationError with the place and what is allowed."""
    return checked(_load(file), Spec, str(file))


def read_newcomer(file: Path) -> ClusterSpec:
    """Read a NEW.toml: one ``[cluster]``. Raises ConfigurationError."""
    tables = _load(file)
    clusters = tables.pop("cluster", None)
    if isinstance(clusters, list) and len(clusters) == 1:
        clusters = clusters[0]
    if not isinstance(clusters, dict) or tables:
        odd = f"; it has {', '.join(tables)} too" if tables else ""
        raise ConfigurationError(f"{file}: must hold one table [cluster] and nothing else{odd}")
    return checked(clusters, ClusterSpec, f"{file}: cluster")


def checked(tables: dict[str, Any], kind: type[T], where: str) -> T:
    """The tables as ``kind``. Raises ConfigurationError with a line for each error."""
    try:
        return kind.model_validate(tables)
    except ValidationError as error:
        lines = [
            _line(kind, _as_written(problem, tables), where)
            for problem in error.errors(include_url=False)
        ]
        raise ConfigurationError("\n".join(dict.fromkeys(lines))) from None


def _load(file: Path) -> dict[str, Any]:
    try:
        return toml_of(file.read_text(encoding="utf-8"), parse_float=Decimal)
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{file}: is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: not TOML: {error}") from None


def _as_written(problem: Any, tables: Any) -> dict[str, Any]:
    """The error for each key, spelled as in the file."""
    path: list[Any] = []
    table = tables
    for part in problem["loc"]:
        has = isinstance(table, dict) and part in table
        spelled = part if has or not isinstance(part, str) else units.key_of(part)
        path.append(spelled)
        try:
            table = table[spelled]
        except (KeyError, IndexError, TypeError):
            table = None
    given = problem.get("input")
    return {
        **problem,
        "loc": path,
        "input": given.value if isinstance(given, units.Bare) else given,
    }


def _line(kind: type[BaseModel], problem: Any, where: str) -> str:
    path = [part for part in problem["loc"] if part not in ("function-after", "constrained-str")]
    key = ".".join(str(part + 1) if isinstance(part, int) else str(part) for part in path)
    if problem["type"] == "extra_forbidden":
        known = _keys_at(kind, path[:-1])
        near = difflib.get_close_matches(str(path[-1]), known, n=1)
        hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(known)}"
        return f"{where}: {key}: no such key; {hint}"
    if problem["type"] == "list_type" and isinstance(problem["input"], dict):
        return f"{where}: {key}: there may be several: write [[{key}]]"
    if problem["type"] == "missing":
        return f"{where}: {key} is missing"
    text = str(problem["msg"]).removeprefix("Value error, ")
    text = text[:1].lower() + text[1:]
    given = problem.get("input")
    shown = f" (is {given})" if isinstance(given, str | int | float | Decimal) else ""
    return f"{where}: {key + ': ' if key else ''}{text}{shown}"


def _keys_at(kind: type[BaseModel], path: list[Any]) -> list[str]:
    """The keys of the table at this path."""
    for part in path:
        if isinstance(part, int):
            continue
        annotation = kind.model_fields[part].annotation if part in kind.model_fields else None
        inner = [a for a in [annotation, *getattr(annotation, "__args__", ())] if _is_table(a)]
        if not inner:
            break
        kind = inner[0]
    return [units.key_of(field) for field in kind.model_fields]


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
