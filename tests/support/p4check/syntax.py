"""From text to a tree of plain classes. Each node knows its file and line."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError


class Place(NamedTuple):
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class P4Error(Exception):
    """A program that is wrong, or uses a construct that the checker does not know."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(f"{place}: {message}")
        self.place = place


@dataclass
class Node:
    place: Place


@dataclass
class Bits:
    """``bit<width>``."""

    width: int

    def __str__(self) -> str:
        return f"bit<{self.width}>"


@dataclass
class Named(Node):
    name: str


@dataclass
class Number(Node):
    value: int
    width: int | None


@dataclass
class Truth(Node):
    value: bool


@dataclass
class Name(Node):
    name: str


@dataclass
class Member(Node):
    base: Expr
    name: str


@dataclass
class Slice(Node):
    base: Expr
    high: int
    low: int


@dataclass
class Unary(Node):
    operator: str
    operand: Expr


@dataclass
class Binary(Node):
    operator: str
    left: Expr
    right: Expr


@dataclass
class Cast(Node):
    width: int
    operand: Expr


@dataclass
class Invoke(Node):
    target: Expr
    arguments: list[Expr]


@dataclass
class Listed(Node):
    items: list[Expr]


Expr = Number | Truth | Name | Member | Slice | Unary | Binary | Cast | Invoke | Listed
TypeName = Bits | bool | Named
"""``True`` is the type ``bool``."""


@dataclass
class Assign(Node):
    target: Expr
    value: Expr


@dataclass
class Call(Node):
    invoke: Invoke


@dataclass
class If(Node):
    condition: Expr
    then: list[Statement]
    otherwise: list[Statement]


Statement = Assign | Call | If


@dataclass
class Field(Node):
    type: TypeName
    name: str


@dataclass
class Composite(Node):
    """A header or a struct."""

    name: str
    fields: list[Field]
    is_header: bool


@dataclass
class Const(Node):
    type: TypeName
    name: str
    value: Expr


@dataclass
class Param(Node):
    direction: str
    type: TypeName
    name: str


@dataclass
class Instance(Node):
    """``Type<Argument>(..) name;``"""

    type: str
    arguments: list[Expr]
    name: str


@dataclass
class Variable(Node):
    type: TypeName
    name: str
    value: Expr


@dataclass
class Action(Node):
    name: str
    params: list[Param]
    body: list[Statement]


@dataclass
class Table(Node):
    name: str
    keys: list[Expr]
    actions: list[Name]
    default: str
    size: int


@dataclass
class Case(Node):
    values: list[Expr] | None
    state: str


@dataclass
class State(Node):
    name: str
    body: list[Statement]
    keys: list[Expr]
    cases: list[Case]


@dataclass
class Block(Node):
    """A parser or a control."""

    name: str
    params: list[Param]
    instances: dict[str, Instance] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    actions: dict[str, Action] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    body: list[Statement] = field(default_factory=list)

    @property
    def is_parser(self) -> bool:
        return bool(self.states)


@dataclass
class Program:
    """A top file with everything that it includes."""

    architecture: str = ""
    composites: dict[str, Composite] = field(default_factory=dict)
    constants: dict[str, Const] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    main: Instance | None = None


class _Build(Transformer[Token, Any]):
    """From lark's tree to the classes above, from the leaves upwards."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.file = file

    def at(self, meta: Any) -> Place:
        return Place(self.file, getattr(meta, "line", 1))

    def _binary(self, meta: Any, left: Expr, operator: Token, right: Expr) -> Binary:
        return Binary(self.at(meta), str(operator), left, right)

    def _block(self, meta: Any, name: Token, params: list[Param], parts: list[Any]) -> Block:
        block = Block(self.at(meta), str(name), params)
        kinds: dict[type, dict[str, Any]] = {
            Instance: block.instances,
            Variable: block.variables,
            Action: block.actions,
            Table: block.tables,
            State: block.states,
        }
        names = {param.name for param in params}
        for part in parts:
            if part.name in names:
                raise P4Error(part.place, f"`{part.name}` is there already")
            names.add(part.name)
            kinds[type(part)][part.name] = part
        return block

    @v_args(meta=True)
    def start(self, meta: Any, parts: list[Any]) -> list[Any]:
        return parts

    @v_args(meta=True)
    def header(self, meta: Any, parts: list[Any]) -> Composite:
        return Composite(self.at(meta), str(parts[0]), parts[1:], True)

    @v_args(meta=True)
    def struct(self, meta: Any, parts: list[Any]) -> Composite:
        return Composite(self.at(meta), str(parts[0]), parts[1:], False)

    @v_args(meta=True)
    def parser(self, meta: Any, parts: list[Any]) -> Block:
        return self._block(meta, parts[0], parts[1], parts[2:])

    @v_args(meta=True)
    def control(self, meta: Any, parts: list[Any]) -> Block:
        block = self._block(meta, parts[0], parts[1], parts[2:-1])
        block.body = parts[-1]
        return block

    @v_args(meta=True)
    def table(self, meta: Any, parts: list[Any]) -> Table:
        name, *middle, default, size = parts
        keys = [part[0] for part in middle if isinstance(part, tuple)]
        actions = [part for part in middle if isinstance(part, Name)]
        return Table(self.at(meta), str(name), keys, actions, str(default), int(size, 0))

    @v_args(meta=True)
    def key(self, meta: Any, parts: list[Any]) -> tuple[Expr]:
        if parts[1] != "exact":
            raise P4Error(self.at(meta), f"match kind `{parts[1]}` is not supported")
        return (parts[0],)

    @v_args(meta=True)
    def state(self, meta: Any, parts: list[Any]) -> State:
        keys, cases = parts[-1]
        return State(self.at(meta), str(parts[0]), parts[1:-1], keys, cases)

    @v_args(meta=True)
    def goto(self, meta: Any, parts: list[Any]) -> tuple[list[Expr], list[Case]]:
        return [], [Case(self.at(meta), None, str(parts[0]))]

    @v_args(meta=True)
    def select(self, meta: Any, parts: list[Any]) -> tuple[list[Expr], list[Case]]:
        return parts[0], parts[1:]

    def block(self, parts: list[Any]) -> list[Statement]:
        return parts

    def params(self, parts: list[Any]) -> list[Param]:
        return [part for part in parts if part is not None]

    def arguments(self, parts: list[Any]) -> list[Expr]:
        return [part for part in parts if part is not None]

    def otherwise(self, parts: list[Any]) -> None:
        return None

    def values(self, parts: list[Any]) -> list[Expr]:
        return parts

    def bits(self, parts: list[Any]) -> Bits:
        return Bits(int(parts[0], 0))

    def boolean(self, parts: list[Any]) -> bool:
        return True

    @v_args(meta=True)
    def listed(self, meta: Any, parts: list[Any]) -> Listed:
        return Listed(self.at(meta), parts)

    @v_args(meta=True)
    def number(self, meta: Any, parts: list[Any]) -> Number:
        width, sized, value = str(parts[0]).rpartition("w")
        return Number(self.at(meta), int(value, 0), int(width) if sized else None)

    def __default__(self, data: Any, children: list[Any], meta: Any) -> Any:
        at, c = self.at(meta), children
        simple: dict[str, Callable[[], Any]] = {
            "const": lambda: Const(at, c[0], str(c[1]), c[2]),
            "field": lambda: Field(at, c[0], str(c[1])),
            "named": lambda: Named(at, str(c[0])),
            "param": lambda: Param(at, str(c[0] or ""), c[1], str(c[2])),
            "instance": lambda: Instance(at, str(c[0]), c[2], str(c[3])),
            "variable": lambda: Variable(
                at, True if c[0] == "bool" else Bits(int(c[0], 0)), str(c[1]), c[2]
            ),
            "action": lambda: Action(at, str(c[0]), c[1], c[2]),
            "choice": lambda: Name(at, str(c[0])),
            "case": lambda: Case(at, c[0], str(c[1])),
            "assign": lambda: Assign(at, c[0], c[1]),
            "call": lambda: Call(at, _invoked(at, c[0])),
            "if": lambda: If(at, c[0], c[1], [c[2]] if isinstance(c[2], If) else c[2] or []),
            "binary": lambda: Binary(at, str(c[1]), c[0], c[2]),
            "unary": lambda: Unary(at, str(c[0]), c[1]),
            "cast": lambda: Cast(at, int(c[0], 0), c[1]),
            "member": lambda: Member(at, c[0], str(c[1])),
            "slice": lambda: Slice(at, c[0], int(c[1], 0), int(c[2], 0)),
            "invoke": lambda: Invoke(at, c[0], c[1]),
            "yes": lambda: Truth(at, True),
            "no": lambda: Truth(at, False),
            "name": lambda: Name(at, str(c[0])),
        }
        return simple[str(data)]()


def _invoked(place: Place, expr: Expr) -> Invoke:
    if not isinstance(expr, Invoke):
        raise P4Error(place, "a statement is an assignment, a call or an `if`")
    return expr


@cache
def _lark() -> Lark:
    grammar = Path(__file__).with_name("grammar.lark").read_text()
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


ARCHITECTURES = {"v1model.p4", "xsa.p4"}


def read(top: Path, texts: dict[str, str] | None = None) -> Program:
    """Reads a top file and its includes. ``texts`` replaces files, by name."""
    program = Program()
    _read_into(program, top, texts or {}, set())
    return program


def _read_into(program: Program, path: Path, texts: dict[str, str], seen: set[str]) -> None:
    if path.name in seen:  # what an include guard does
        return
    seen.add(path.name)
    lines = (texts[path.name] if path.name in texts else path.read_text()).split("\n")
    for number, line in enumerate(lines, 1):
        if not line.startswith("#"):
            continue
        place = Place(path.name, number)
        lines[number - 1] = ""
        if own := re.fullmatch(r'#include "([\w.]+)"', line):
            _read_into(program, path.with_name(own[1]), texts, seen)
        elif system := re.fullmatch(r"#include <([\w.]+)>", line):
            if system[1] in ARCHITECTURES:
                program.architecture = system[1]
            elif system[1] != "core.p4":
                raise P4Error(place, f"`{system[1]}` is not supported")
        elif not re.fullmatch(r"#(ifndef|define) OLAF_\w+|#endif", line):
            raise P4Error(place, f"`{line}` is not supported")
    _declare(program, _parse("\n".join(lines), path.name))


@cache  # mutations of one file leave the others as they are
def _parse(text: str, file: str) -> list[Any]:
    try:
        tree = _lark().parse(text)
        built: list[Any] = _Build(file).transform(tree)
        return built
    except UnexpectedInput as error:
        found = getattr(error, "token", None) or getattr(error, "char", "")
        raise P4Error(Place(file, error.line), f"`{found}` is not supported here") from None
    except VisitError as error:
        raise error.orig_exc from None


def _declare(program: Program, parts: list[Any]) -> None:
    for part in parts:
        if part.name in {**program.composites, **program.constants, **program.blocks}:
            raise P4Error(part.place, f"`{part.name}` is there already")
        match part:
            case Composite():
                program.composites[part.name] = part
            case Const():
                program.constants[part.name] = part
            case Block():
                program.blocks[part.name] = part
            case Instance(name="main"):
                program.main = part
            case _:
                raise P4Error(part.place, "only `main` is made at the top level")
