"""Reads a TOML file, named options and ``--set key=value`` as checked settings; writes TOML.

Precedence, lowest first: default, file, named option, ``--set``. An error quotes the key, the place
where it was written and the allowed values.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args, get_origin

import tomlkit
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from tomlkit.items import Table

from olaf.errors.usage import ConfigurationError
from olaf.jobs.section import Explained, NoneIs, Section
from olaf.jobs.settings import Settings
from olaf.values import units
from olaf.values.parsed import toml_of

Tables = dict[str, Any]

FOLLOWING = (
    "train.clusters",
    "train.updates",
    "server.staleness_power",
    "worker.push_every",
)
"""Keys whose default follows other keys."""


def read_settings(
    file: Path | None = None,
    options: Mapping[str, tuple[str, Any]] | None = None,
    overrides: Iterable[str] = (),
    *,
    base: Mapping[str, Mapping[str, Any]] | None = None,
) -> Settings:
    """Check the file, then the named options ``{key: (option, value)}``, then ``key=value``.

    base: tables with lower precedence than all of these, as from a resumed run.
    """
    tables: Tables = {name: dict(table) for name, table in (base or {}).items()}
    origins: dict[str, str] = {}
    if file is not None:
        for name, table in _read_file(file, origins).items():
            known = tables.get(name)
            both = isinstance(known, dict) and isinstance(table, dict)
            tables[name] = {**known, **table} if both and known is not None else table
    for key, (option, value) in (options or {}).items():
        _put(tables, key, value, option)
        origins[key] = option
    for override in overrides:
        key, value = parse_override(override)
        _put(tables, key, value, f"--set {override}")
        origins[key] = f"--set {override}"
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        raise ConfigurationError(_explain(error, origins)) from None


def write_toml(settings: Settings, *, comments: bool = True, given: bool = False) -> str:
    """The settings as a TOML file that `read_settings` reads back unchanged.

    given: write only the keys that the user gave, without the defaults.
    """
    document = tomlkit.document()
    for name, section in settings:
        if given and not section.model_fields_set:
            continue
        if comments and type(section).__doc__:
            document.add(tomlkit.comment(_one_line(str(type(section).__doc__))))
        document.add(name, _toml_table(name, section, comments=comments, given=given))
    return tomlkit.dumps(document).rstrip() + "\n"


def _toml_table(name: str, section: Section, *, comments: bool, given: bool) -> Table:
    """A section; sections within it come last, each a table of its own."""
    table = tomlkit.table()
    inner: dict[str, Section] = {}
    for key, field in type(section).model_fields.items():
        value = getattr(section, key)
        if given and key not in section.model_fields_set:
            continue
        if isinstance(value, Section):
            inner[key] = value
            continue
        if comments and field.description:
            for line in _wrapped(_description(field)):
                table.add(tomlkit.comment(line))
        written = _toml_value(key, value, field)
        if f"{name}.{key}" in FOLLOWING and key not in section.model_fields_set:
            # If it were written as given, it would no longer follow.
            table.add(tomlkit.comment(f"{units.key_of(key)} = {written}"))
        else:
            table.add(units.key_of(key), written)
    table.add(tomlkit.nl())
    for key, value in inner.items():
        if comments and type(value).__doc__:
            table.add(tomlkit.comment(_one_line(str(type(value).__doc__))))
        table.add(key, _toml_table(f"{name}.{key}", value, comments=comments, given=given))
    return table


def _description(field: FieldInfo) -> str:
    more = [extra.text for extra in field.metadata if isinstance(extra, Explained)]
    return " ".join([field.description or "", *more])


def _toml_value(key: str, value: Any, field: FieldInfo) -> Any:
    if isinstance(value, dict):
        inline = tomlkit.inline_table()
        inline.update(value)
        return inline
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, list) and value and isinstance(value[0], Section):
        return [one.model_dump(exclude_none=True) for one in value]
    if value is not None:
        return units.write(key, value) if units.unit_of(key) else value
    words = [extra.word for extra in field.metadata if isinstance(extra, NoneIs)]
    return words[0]


def _read_file(file: Path, origins: dict[str, str]) -> Tables:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8 text"
        raise ConfigurationError(f"{file}: {reason}") from None
    try:
        tables = toml_of(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file}: not TOML: {error}") from None
    for key, line in _key_lines(text):
        origins[key] = f"{file}:{line}"
    return tables


_HEADER = re.compile(r"^\s*\[\s*([^\[\]]+?)\s*\]")
_ELEMENT = re.compile(r"^\s*\[\[\s*([^\[\]]+?)\s*\]\]")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-.\"' ]+?)\s*=")


def _key_lines(text: str) -> Iterable[tuple[str, int]]:
    """The line of each dotted key of a TOML text. Approximate, since only messages use it."""
    table = ""
    elements: Counter[str] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _ELEMENT.match(line):
            name = header[1].replace('"', "")
            table = f"{name}.{elements[name]}"
            elements[name] += 1
            yield table, number
        elif header := _HEADER.match(line):
            table = header[1].replace('"', "")
            yield table, number
        elif key := _KEY.match(line):
            name = re.sub(r"[\"' ]", "", key[1])
            yield (f"{table}.{name}" if table else name), number


def parse_override(text: str) -> tuple[str, Any]:
    """Read the key and the value of a ``--set``: TOML, or else a bare word."""
    key, equals, value = text.partition("=")
    key = key.strip()
    if not equals or not key:
        raise ConfigurationError(f"--set {text}: write it --set section.key=value")
    return key, _toml_or_word(value)  # a bare word: --set switch.queue=fifo


def given_keys(
    options: Mapping[str, tuple[str, Any]], overrides: Iterable[str]
) -> dict[str, tuple[str, Any]]:
    """The given keys by the names of their fields: ``{key: (as it was written, value)}``."""
    given = dict(options)
    for override in overrides:
        key, value = parse_override(override)
        given[key] = (f"--set {override}", value)
    return {_field_of(key): found for key, found in given.items()}


def _field_of(key: str) -> str:
    """The dotted key with the name of its field: ``server.aggregate_ms`` for `aggregate_within`."""
    table, _, last = key.rpartition(".")
    fields = _keys_of(_section_at(table.split(".")))
    return f"{table}.{next((field for field, name in fields.items() if name == last), last)}"


def _listed(value: Any, field: FieldInfo | None) -> Any:
    """A value of a command line for ``field``: of a list, ``64,64`` or a single value will do."""
    if field is None or get_origin(field.annotation) not in (list, tuple):
        return value
    if isinstance(value, str):
        inner = value.strip().removeprefix("[").removesuffix("]")
        inner = inner.removeprefix("(").removesuffix(")")
        return [_toml_or_word(part) for part in inner.split(",") if part.strip()]
    return value if isinstance(value, list | tuple) else [value]


def _toml_or_word(text: str) -> Any:
    try:
        return toml_of(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()


def _put(tables: Tables, key: str, value: Any, origin: str) -> None:
    path = key.split(".")
    if len(path) == 1:
        sections = [
            name
            for name, known in _sections().items()
            if key in {*known.model_fields, *_keys_of(known).values()}
        ]
        if sections:
            raise ConfigurationError(f"{origin}: write `{sections[0]}.{key}`")
        raise ConfigurationError(f"{origin}: unknown key `{key}`{_suggest(key, Settings)}")
    table = tables
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise ConfigurationError(f"{origin}: `{name}` is a value, not a section")
    section = _section_at(path[:-1])
    fields = _keys_of(section)
    for field, spelled in fields.items():
        if path[-1] in (field, spelled):
            # The last value wins, even if an earlier one spelled the key differently.
            table.pop(field, None)
            table.pop(spelled, None)
    table[path[-1]] = _listed(value, section.model_fields.get(path[-1]))


def _keys_of(model: type[BaseModel]) -> dict[str, str]:
    """Each field of a table with its key in the file."""
    return {field: units.key_of(field) for field in model.model_fields}


def _section_at(path: Sequence[str]) -> type[BaseModel]:
    """The section of that path; `Section`, which has no keys, if there is none."""
    model: type[BaseModel] = Settings
    for name in path:
        field = model.model_fields.get(name)
        model = Section if field is None else _model_of(field)
    return model


def _sections() -> dict[str, type[BaseModel]]:
    return {name: _model_of(field) for name, field in Settings.model_fields.items()}


_NAMED_BY_SECTION = re.compile(r"Value error, (\w+) = (.*)", re.DOTALL)


def _explain(error: ValidationError, origins: Mapping[str, str]) -> str:
    lines: dict[str, str] = {}  # one per key: a union reports an error for each of its types
    for problem in error.errors(include_url=False):
        path = [str(part) for part in problem["loc"]]
        key, model = _resolve(problem["loc"])
        named = _NAMED_BY_SECTION.match(problem["msg"])
        if named and named[1] in model.model_fields and key in Settings.model_fields:
            # A check of the whole section, which begins with the key that it is about.
            key = _as_written(f"{key}.{named[1]}", origins)
            lines.setdefault(key, f"{_where(key, origins)}`{key}` = {named[2]}")
            continue
        key = _as_written(key, origins)
        where = _where(key, origins)
        shown = _shown(key, problem["loc"])
        if problem["type"] == "extra_forbidden":
            text = f"unknown key `{shown}`{_suggest(_shown('.'.join(path), problem['loc']), model)}"
        elif key in lines:
            continue
        else:
            # An error of no single key names the keys itself.
            text = (
                (f"`{shown}`" + _complaint_of(path[-1], problem) + _form_of(path))
                if key
                else complaint(problem)[2:]
            )
        lines[key] = f"{where}{text}"
    return "\n".join(lines.values())


def _form_of(path: Sequence[str]) -> str:
    """How a list is written, for a value that is none: its default as an example."""
    field = _section_at(path[:1]).model_fields.get(path[1]) if len(path) > 1 else None
    if field is None or get_origin(field.annotation) not in (list, tuple) or not field.default:
        return ""
    if not isinstance(field.default, list | tuple) or not all(
        isinstance(one, int | float | str) for one in field.default
    ):
        return ""
    return f"; write a list, as in {', '.join(str(one) for one in field.default)}"


def _resolve(path: Sequence[str | int]) -> tuple[str, type[BaseModel]]:
    """The dotted key as it was written (without pydantic's union branches), and its table."""
    model: type[BaseModel] = Settings
    key: list[str] = []
    for part in path:
        key.append(str(part))
        if isinstance(part, int):
            continue  # an element of the list, whose model is known already
        field = model.model_fields.get(part)
        if field is None:
            break
        inner = _model_of(field)
        if inner is Section:
            break
        model = inner
    return ".".join(key), model


def _shown(key: str, path: Sequence[str | int]) -> str:
    """The dotted key with the elements of lists in brackets: ``switch.jobs[0].slots``."""
    parts = zip(key.split("."), path, strict=False)
    named = (f"[{name}]" if isinstance(part, int) else f".{name}" for name, part in parts)
    return "".join(named).removeprefix(".")


def _complaint_of(field: str, problem: Any) -> str:
    """As `complaint`; bounds of times, sizes and rates get their unit."""
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    given = problem.get("input")
    broken = [key for key in words if key in problem.get("ctx", {})]
    if units.unit_of(field) is None or not broken or not isinstance(given, int | float | Decimal):
        return complaint(problem)
    (bound,) = broken
    shown = units.write(field, float(given)) if given >= 0 else str(given)
    return f" = {shown}: must be {words[bound]} {units.write(field, problem['ctx'][bound])}"


def _as_written(key: str, origins: Mapping[str, str]) -> str:
    """The key of a field as the file has it, or as a file should have it."""
    table, _, field = key.rpartition(".")
    spelled = ".".join(part for part in (table, units.key_of(field)) if part)
    in_a_file = not origins.get(key, "--").startswith("--")
    return key if in_a_file and spelled not in origins else spelled


def _model_of(field: FieldInfo) -> type[BaseModel]:
    kind = field.annotation
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else Section


def _where(key: str, origins: Mapping[str, str]) -> str:
    while key:
        if key in origins:
            return f"{origins[key]}: "
        key = key.rpartition(".")[0]
    return ""


def _suggest(shown: str, model: type[BaseModel]) -> str:
    known = list(_keys_of(model).values())
    prefix, _, last = shown.rpartition(".")
    elsewhere = [
        f"{name}.{last}"
        for name, section in _sections().items()
        if last in {*section.model_fields, *_keys_of(section).values()}
    ]
    near = difflib.get_close_matches(last, known, n=1, cutoff=0.6)
    if near and not elsewhere:
        return f"; did you mean `{prefix + '.' if prefix else ''}{near[0]}`?"
    if elsewhere:
        return f"; did you mean `{elsewhere[0]}`?"
    return f"; known here: {', '.join(known)}"


HOW_TO_WRITE = {
    "tuple_type": "write it as a list: [64, 64], or 64,64 on the command line",
    "list_type": "write it as a list: [0, 1], or 0,1 on the command line",
    "dict_type": "write it as a table: {name = value}",
}
"""What to write, in place of pydantic's words, by type of error."""


def complaint(problem: Any) -> str:
    """The text of one of pydantic's errors: `` = 0: must be above 0``."""
    message = HOW_TO_WRITE.get(problem["type"], str(problem["msg"]))
    message = message.removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    given = problem.get("input")
    given = given.value if isinstance(given, units.Bare) else given
    if isinstance(given, str | int | float | bool | list):
        return f" = {given!r}: {message}"
    return f": {message}"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _wrapped(text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(_one_line(text), 96)
