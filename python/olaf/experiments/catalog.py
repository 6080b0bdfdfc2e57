"""Lists the figures and prepares their runs. Listing imports no figure.

A figure is two files in ``olaf/experiments/<paper>/``: ``<name>.toml`` with everything known before
a run, and ``<name>.py`` with its ``Parameters`` and its ``run``.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from olaf.errors.outcome import Exit, RunError
from olaf.errors.usage import ConfigurationError
from olaf.experiments.result import Result
from olaf.jobs.reading import complaint, parse_override
from olaf.values.parsed import toml_of

PACKAGE = "olaf.experiments"


class Parameters(BaseModel):
    """Base of a figure's parameters, without defaults: the TOML file has the values."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class Figure(BaseModel):
    """The TOML file of a figure."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: str
    """``olaf/table1``: the paper, then the table or figure; follows from the file's path."""
    title: str
    """The comparison, in one line."""
    source: str
    """Its place in the paper: ``OLAF §8.1, Table 1``."""
    shows: str
    """The result that a reader should see, in one sentence."""
    expected_s: float = Field(gt=0)
    """Duration of a whole run on two cores, in seconds."""
    seeds: int = Field(default=5, ge=1)
    """Default number of seeds: 0, 1, 2 .."""
    quick_seeds: int = Field(default=2, ge=1)
    differences: list[str] = []
    """Differences from the paper that do not depend on a measurement."""
    paper: dict[str, Any] = {}
    """The paper's numbers, under names that the module uses."""
    parameters: dict[str, Any]
    quick: dict[str, Any] = {}
    """Parameters that `--quick` changes, for a run of some seconds."""

    def module(self) -> FigureModule:
        """Import the module of the figure."""
        module: Any = import_module(f"{PACKAGE}.{self.name.replace('/', '.')}")
        return module  # type: ignore[no-any-return]


P_co = TypeVar("P_co", bound=Parameters, covariant=True)


class Says(Protocol):
    """Receives the progress of a figure."""

    def __call__(self, text: str, share: float | None = None) -> None:
        """Report the present step; ``share`` of the whole that is done, 0 to 1."""


@dataclass(frozen=True)
class Task(Generic[P_co]):
    """One run of a figure, as its module receives it."""

    parameters: P_co
    paper: dict[str, Any]
    """The ``[paper]`` table of the TOML file."""
    seeds: Sequence[int]
    scratch: Path
    """An empty folder for temporary files of the run."""
    say: Says
    quick: bool = False

    def each_seed(self) -> Iterator[int]:
        """Yield the seeds one after the other, and report each."""
        for index, seed in enumerate(self.seeds):
            self.say(f"seed {seed}", index / len(self.seeds))
            yield seed


class FigureModule(Protocol):
    """The interface of a figure's module."""

    Parameters: type[Parameters]

    def run(self, task: Task[Any]) -> Result:
        """Measure. Raises RunError if it cannot."""


@dataclass(frozen=True)
class Plan:
    """A figure with checked parameters and seeds."""

    figure: Figure
    parameters: Parameters
    seeds: list[int]
    quick: bool = False
    overrides: list[str] = field(default_factory=list)


def figures() -> list[Figure]:
    """All figures, by paper and name."""
    found = []
    for paper in sorted(_children(resources.files(PACKAGE)), key=lambda place: place.name):
        if paper.is_dir():
            files = [file for file in _children(paper) if file.name.endswith(".toml")]
            found += [_read(paper.name, file) for file in sorted(files, key=lambda file: file.name)]
    return found


def _children(place: Traversable) -> Iterable[Traversable]:
    return list(place.iterdir())


def _read(paper: str, file: Traversable) -> Figure:
    name = f"{paper}/{file.name.removesuffix('.toml')}"
    try:
        tables = toml_of(file.read_text(encoding="utf-8"))
        return Figure.model_validate({**tables, "name": name})
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        raise RunError(f"the file of figure {name} is broken: {error}") from None


def find(name: str) -> Figure:
    """The figure of that name. Raises RunError, with the nearest name, if there is none."""
    known = {figure.name: figure for figure in figures()}
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean `{near[0]}`?" if near else f"the figures are {', '.join(known)}"
    raise RunError(f"no figure `{name}`; {hint}", Exit.USAGE)


def plan(
    figure: Figure,
    *,
    seeds: Sequence[int] | None = None,
    quick: bool = False,
    overrides: Sequence[str] = (),
) -> Plan:
    """Check the settings of a run. Raises ConfigurationError, which quotes the error."""
    tables: dict[str, Any] = {**figure.parameters, **(figure.quick if quick else {})}
    kind = figure.module().Parameters
    origins: dict[str, str] = {}
    for override in overrides:
        key, value = parse_override(override)
        if key.partition(".")[0] not in kind.model_fields:
            raise ConfigurationError(
                f"--set {override}: {figure.name} has no parameter `{key}`; {_near(key, kind)}"
            )
        _put(tables, key, value, override)
        origins[key] = f"--set {override}"
    try:
        parameters = kind.model_validate(tables)
    except ValidationError as error:
        raise ConfigurationError(_explain(figure, error, origins)) from None
    usual = range(figure.quick_seeds if quick else figure.seeds)
    chosen = list(seeds) if seeds is not None else list(usual)
    return Plan(figure, parameters, chosen, quick, list(overrides))


def _put(tables: dict[str, Any], key: str, value: Any, override: str) -> None:
    *path, last = key.split(".")
    table = tables
    for name in path:
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise ConfigurationError(f"--set {override}: `{name}` is a value, not a table")
        table[name] = dict(inner)
        table = table[name]
    table[last] = value


def _near(key: str, kind: type[Parameters]) -> str:
    near = difflib.get_close_matches(key, kind.model_fields, n=1, cutoff=0.5)
    return f"did you mean `{near[0]}`?" if near else f"there are {', '.join(kind.model_fields)}"


def _explain(figure: Figure, error: ValidationError, origins: dict[str, str]) -> str:
    lines = {}
    for problem in error.errors(include_url=False):
        key = ".".join(str(part) for part in problem["loc"])
        origin = next((text for known, text in origins.items() if key.startswith(known)), None)
        lines[key] = f"{origin or figure.name}: `{key}`{complaint(problem)}"
    return "\n".join(lines.values())
