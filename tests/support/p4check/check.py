"""Types, widths, and validity: a header's field is used only where the header is valid.

Each block is judged alone, by `isValid()` in conditions, `extract` and `setValid()`: a block
assumes nothing of its callers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .architecture import ARCHITECTURES, Architecture
from .syntax import (
    Action,
    Assign,
    Binary,
    Bits,
    Block,
    Call,
    Cast,
    Composite,
    Expr,
    If,
    Instance,
    Invoke,
    Listed,
    Member,
    Name,
    Named,
    Number,
    P4Error,
    Place,
    Program,
    Slice,
    State,
    Statement,
    Table,
    Truth,
    TypeName,
    Unary,
)

Type = Bits | Composite | str
"""A text is ``bool``, ``packet_in``, ``packet_out``, ``literal``, ``list`` or ``enum``."""
ARITHMETIC = {"+", "-", "*", "&", "|"}


@dataclass
class Checked:
    """A program that was checked, with the type of each expression by its identity."""

    program: Program
    architecture: Architecture
    types: dict[int, Type]
    main: list[Block]
    used: set[tuple[str, str]] = field(default_factory=set)

    def type_of(self, expr: Expr) -> Type:
        return self.types[id(expr)]

    def composite(self, name: str) -> Composite | None:
        if name == "standard_metadata_t":
            return self.architecture.standard
        return self.program.composites.get(name)


def check(program: Program) -> Checked:
    """Checks a program. Raises P4Error."""
    if program.main is None or program.architecture not in ARCHITECTURES:
        raise P4Error(Place("program", 0), "no architecture, or no `main`")
    checked = Checked(program, ARCHITECTURES[program.architecture], {}, [])
    _check_names(checked)
    for composite in program.composites.values():
        _check_composite(checked, composite)
    for constant in program.constants.values():
        _BlockChecker(checked, Block(constant.place, "constant", [])).constant(
            constant.type, constant.value
        )
    for block in program.blocks.values():
        _BlockChecker(checked, block).check()
    _check_main(checked, program.main)
    return checked


def _check_names(checked: Checked) -> None:
    program = checked.program
    parts = {**program.composites, **program.constants, **program.blocks}
    for name, part in parts.items():
        if name in checked.architecture.declared:
            raise P4Error(part.place, f"`{name}` is declared by {program.architecture} already")


def _check_composite(checked: Checked, composite: Composite) -> None:
    width = 0
    for item in composite.fields:
        if isinstance(item.type, Bits):
            width += item.type.width
        elif composite.is_header or not isinstance(item.type, Named):
            raise P4Error(item.place, f"`{item.name}` has a type that is not supported here")
        elif checked.composite(item.type.name) is None:
            raise P4Error(item.place, f"unknown type `{item.type.name}`")
    if len({item.name for item in composite.fields}) < len(composite.fields):
        raise P4Error(composite.place, f"`{composite.name}` has a field twice")
    if composite.is_header and width % 8:
        raise P4Error(
            composite.place, f"header `{composite.name}` has {width} bits: no whole bytes"
        )


def _check_main(checked: Checked, main: Instance) -> None:
    wanted = checked.architecture
    if main.type != wanted.package or len(main.arguments) != len(wanted.blocks):
        raise P4Error(
            main.place, f"`main` is not a {wanted.package} of {len(wanted.blocks)} blocks"
        )
    meaning: dict[str, str] = {"S": "standard_metadata_t"}
    for argument, params in zip(main.arguments, wanted.blocks, strict=True):
        target = argument.target if isinstance(argument, Invoke) else argument
        block = checked.program.blocks.get(target.name) if isinstance(target, Name) else None
        if block is None or len(block.params) != len(params):
            raise P4Error(argument.place, "not a block with the parameters of this place")
        for param, pattern in zip(block.params, params, strict=True):
            direction, _, name = pattern.rpartition(" ")
            actual = param.type.name if isinstance(param.type, Named) else str(param.type)
            name = meaning.setdefault(name, actual) if len(name) == 1 else name
            if (direction, name) != (param.direction, actual):
                raise P4Error(param.place, f"`{param.name}` is not `{direction} {name}`")
        if block.is_parser != (params[0] == "packet_in"):
            raise P4Error(argument.place, f"`{block.name}` is in the wrong place")
        checked.main.append(block)


def path_of(expr: Expr) -> str:
    """``frame.udp`` of the expression that says so."""
    match expr:
        case Name():
            return expr.name
        case Member():
            return f"{path_of(expr.base)}.{expr.name}"
    raise P4Error(expr.place, "a name is expected here")


def valid_if(expr: Expr) -> set[str]:
    """The headers that are valid where this condition is true."""
    match expr:
        case Binary(operator="&&"):
            return valid_if(expr.left) | valid_if(expr.right)
        case Invoke(target=Member(name="isValid") as target):
            return {path_of(target.base)}
    return set()


class _BlockChecker:
    def __init__(self, checked: Checked, block: Block) -> None:
        self.checked = checked
        self.block = block
        self.scope: dict[str, tuple[Type, bool]] = {}
        """Type of each name, and whether it may be written."""
        self.valid: set[str] = set()
        self.used: set[str] = set()

    # Declarations

    def check(self) -> None:
        for name, constant in self.checked.program.constants.items():
            self.scope[name] = (self.named(constant.type), False)
        for param in self.block.params:
            self.scope[param.name] = (self.named(param.type), param.direction in {"out", "inout"})
        for variable in self.block.variables.values():  # in order: none reads a later one
            self.constant(variable.type, variable.value)
            self.scope[variable.name] = (self.named(variable.type), True)
        for instance in self.block.instances.values():
            self.check_instance(instance)
        if self.block.is_parser:
            self.check_states()
        else:
            self.statements(self.block.body)
        parts: list[Instance | Action | Table | State] = [
            *self.block.instances.values(), *self.block.actions.values(),
            *self.block.tables.values(), *self.block.states.values(),
        ]  # fmt: skip
        for part in parts:
            if part.name not in self.used:
                raise P4Error(part.place, f"`{part.name}` is never used")

    def named(self, name: TypeName) -> Type:
        if isinstance(name, Bits):
            return name
        if isinstance(name, bool):
            return "bool"
        if name.name in {"packet_in", "packet_out"}:
            return name.name
        if (found := self.checked.composite(name.name)) is None:
            raise P4Error(name.place, f"unknown type `{name.name}`")
        return found

    def constant(self, type_name: TypeName, value: Expr) -> None:
        if not isinstance(value, Number | Truth):
            self.literal(value)
        self.expect(value, self.named(type_name))

    def check_instance(self, instance: Instance) -> None:
        if instance.type in self.checked.architecture.externs:
            for argument in instance.arguments:
                self.expr(argument)
            return
        block = self.checked.program.blocks.get(instance.type)
        if block is None or instance.arguments:
            raise P4Error(instance.place, f"`{instance.type}` is no block that is known here")
        self.no_circle(block, instance.place)

    def no_circle(self, block: Block, place: Place) -> None:
        if block.name == self.block.name:
            raise P4Error(place, f"`{block.name}` contains itself")
        for inner in block.instances.values():
            if inner.type in self.checked.program.blocks:
                self.no_circle(self.checked.program.blocks[inner.type], place)

    # Parsers

    def check_states(self) -> None:
        if "start" not in self.block.states:
            raise P4Error(self.block.place, "no state `start`")
        self.visit("start", self.block.place, ())

    def visit(self, name: str, place: Place, before: tuple[str, ...]) -> None:
        """Checks a state once for each path that leads to it."""
        if name in {"accept", "reject"}:
            return
        state = self.block.states.get(name)
        if state is None:
            raise P4Error(place, f"no state `{name}`")
        if name in before:
            raise P4Error(state.place, f"state `{name}` leads to itself: loops are not supported")
        self.used.add(name)
        self.statements(state.body)
        self.check_cases(state)
        for case in state.cases:
            with self.branch(set()):
                self.visit(case.state, case.place, (*before, name))

    def check_cases(self, state: State) -> None:
        types = [self.sized(key) for key in state.keys]
        seen: list[list[int]] = []
        for case in state.cases:
            if case.values is None:
                continue
            if len(case.values) != len(types):
                raise P4Error(case.place, f"{len(case.values)} values for {len(types)} keys")
            for value, width in zip(case.values, types, strict=True):
                self.expect(value, width)
            values = [self.literal(value) for value in case.values]
            if values in seen:
                raise P4Error(case.place, "the same values as in a case above")
            seen.append(values)
        if [case.values for case in state.cases].index(None) != len(state.cases) - 1:
            raise P4Error(state.place, "`default` is not the last case")

    def literal(self, expr: Expr) -> int:
        if isinstance(expr, Name) and expr.name in self.checked.program.constants:
            expr = self.checked.program.constants[expr.name].value
        if not isinstance(expr, Number):
            raise P4Error(expr.place, "only a number or a constant is supported here")
        return expr.value

    # Statements

    @contextmanager
    def branch(self, more: set[str]) -> Iterator[set[str]]:
        """What is valid inside; afterwards it is as before. Gives what is valid at the end."""
        before = set(self.valid)
        self.valid |= more
        at_end: set[str] = set()
        yield at_end
        at_end |= self.valid
        self.valid = before

    def statements(self, body: list[Statement]) -> None:
        for statement in body:
            match statement:
                case Assign():
                    self.expect(statement.value, self.target(statement.target))
                case Call():
                    self.call(statement.invoke)
                case If():
                    self.expect(statement.condition, "bool")
                    with self.branch(valid_if(statement.condition)) as then:
                        self.statements(statement.then)
                    with self.branch(set()) as otherwise:
                        self.statements(statement.otherwise)
                    self.valid = then & otherwise

    def target(self, expr: Expr) -> Type:
        """The type of something that is written."""
        kind = self.expr(expr)
        root: Expr = expr
        while isinstance(root, Member):
            root = root.base
        if not isinstance(root, Name) or not self.scope[root.name][1]:
            raise P4Error(expr.place, "this cannot be written")
        return kind

    def call(self, invoke: Invoke) -> None:
        target, arguments = invoke.target, invoke.arguments
        if isinstance(target, Name):
            self.call_by_name(target, arguments)
        elif not isinstance(target, Member):
            raise P4Error(invoke.place, "this cannot be called")
        elif target.name == "apply" and isinstance(target.base, Name):
            self.apply(target.base, arguments)
        else:
            self.method(target, arguments)

    def call_by_name(self, target: Name, arguments: list[Expr]) -> None:
        if target.name in self.block.actions:
            action = self.block.actions[target.name]
            self.count(target, arguments, len(action.params))
            for argument, param in zip(arguments, action.params, strict=True):
                self.expect(argument, self.named(param.type))
            self.action(action)
        elif target.name not in self.checked.architecture.functions:
            raise P4Error(target.place, f"`{target.name}` is not supported here")
        elif target.name == "mark_to_drop":
            self.count(target, arguments, 1)
            self.is_standard(arguments[0])
        else:  # hash(result, algorithm, base, data, max)
            self.count(target, arguments, 5)
            result = self.target(arguments[0])
            self.expect(arguments[1], "enum")
            self.expect(arguments[2], result)
            self.expect(arguments[3], "list")
            self.sized(arguments[4])
            if not isinstance(result, Bits) or self.literal(arguments[4]) != 1 << result.width:
                raise P4Error(target.place, "a hash that does not fill its result")

    def is_standard(self, expr: Expr) -> None:
        if self.target(expr) is not self.checked.architecture.standard:
            raise P4Error(expr.place, "not the standard metadata")

    def count(self, at: Expr, arguments: list[Expr], wanted: int) -> None:
        if len(arguments) != wanted:
            raise P4Error(at.place, f"{len(arguments)} arguments where {wanted} are expected")

    def action(self, action: Action) -> None:
        """Checks an action with what is valid where it runs."""
        self.used.add(action.name)
        params = {param.name: (self.named(param.type), False) for param in action.params}
        outside, self.scope = self.scope, {**self.scope, **params}
        self.statements(action.body)
        self.scope = outside

    def apply(self, base: Name, arguments: list[Expr]) -> None:
        self.used.add(base.name)
        if base.name in self.block.tables:
            self.count(base, arguments, 0)
            self.table(self.block.tables[base.name])
        elif (instance := self.block.instances.get(base.name)) is None:
            raise P4Error(base.place, f"`{base.name}` cannot be applied")
        elif instance.type in self.checked.architecture.externs:
            self.count(base, arguments, 2)
            self.expect(arguments[0], "list")
            if not isinstance(self.target(arguments[1]), Bits):
                raise P4Error(base.place, "the result is no bits")
        else:
            self.inner(base, self.checked.program.blocks[instance.type], arguments)

    def inner(self, base: Name, block: Block, arguments: list[Expr]) -> None:
        self.count(base, arguments, len(block.params))
        for argument, param in zip(arguments, block.params, strict=True):
            wanted = self.named(param.type)
            written = param.direction in {"out", "inout"}
            if (self.target(argument) if written else self.expr(argument)) != wanted:
                raise P4Error(argument.place, f"not the type of `{param.name}`")
            if written:
                path = path_of(argument)
                self.valid = {name for name in self.valid if not f"{name}.".startswith(f"{path}.")}

    def table(self, table: Table) -> None:
        for key in table.keys:
            self.sized(key)
        if table.default not in {action.name for action in table.actions}:
            raise P4Error(table.place, f"the default `{table.default}` is no action of the table")
        after: list[set[str]] = []
        for name in table.actions:
            if name.name not in self.block.actions:
                raise P4Error(name.place, f"no action `{name.name}`")
            if name.name == table.default and self.block.actions[name.name].params:
                raise P4Error(table.place, "a default action with parameters is not supported")
            with self.branch(set()) as end:
                self.action(self.block.actions[name.name])
            after.append(end)
        self.valid = set.intersection(*after)

    def method(self, target: Member, arguments: list[Expr]) -> None:
        base = self.expr(target.base)
        match target.name, base:
            case ("extract", "packet_in") | ("emit", "packet_out"):
                self.count(target, arguments, 1)
                kind = self.expr(arguments[0])
                if not isinstance(kind, Composite) or not kind.is_header:
                    raise P4Error(target.place, f"only a header can be used with `{target.name}`")
                if target.name == "extract":
                    self.target(arguments[0])
                    if path_of(arguments[0]) in self.valid:
                        raise P4Error(target.place, f"`{path_of(arguments[0])}` is there already")
                    self.valid.add(path_of(arguments[0]))
            case ("setValid" | "setInvalid", Composite(is_header=True)):
                self.count(target, arguments, 0)
                self.target(target.base)
                change = self.valid.add if target.name == "setValid" else self.valid.discard
                change(path_of(target.base))
            case _:
                raise P4Error(target.place, f"`{target.name}` is not supported here")

    # Expressions

    def expect(self, expr: Expr, wanted: Type) -> None:
        found = self.expr(expr, wanted)
        if found != wanted:
            raise P4Error(expr.place, f"{_name(found)} where {_name(wanted)} is expected")

    def sized(self, expr: Expr) -> Bits:
        found = self.expr(expr)
        if not isinstance(found, Bits):
            raise P4Error(expr.place, f"{_name(found)} where a number of bits is expected")
        return found

    def expr(self, expr: Expr, wanted: Type | None = None) -> Type:
        found = self.find(expr, wanted)
        self.checked.types[id(expr)] = found
        return found

    def find(self, expr: Expr, wanted: Type | None) -> Type:  # noqa: PLR0911, PLR0912
        match expr:
            case Number():
                return _number(expr, wanted)
            case Truth():
                return "bool"
            case Name():
                if expr.name not in self.scope:
                    raise P4Error(expr.place, f"unknown name `{expr.name}`")
                return self.scope[expr.name][0]
            case Member():
                return self.member(expr)
            case Slice():
                width = self.sized(expr.base).width
                if not width > expr.high >= expr.low:
                    raise P4Error(expr.place, f"[{expr.high}:{expr.low}] of {width} bits")
                return Bits(expr.high - expr.low + 1)
            case Unary(operator="!"):
                self.expect(expr.operand, "bool")
                return "bool"
            case Unary():
                return self.sized(expr.operand)
            case Binary():
                return self.binary(expr, wanted)
            case Cast():
                self.sized(expr.operand)
                return Bits(expr.width)
            case Listed():
                for item in expr.items:
                    self.sized(item)
                return "list"
            case Invoke(target=Member(name="isValid") as target, arguments=[]):
                kind = self.expr(target.base)
                if not isinstance(kind, Composite) or not kind.is_header:
                    raise P4Error(expr.place, "only a header is valid or not")
                return "bool"
        raise P4Error(expr.place, "this expression is not supported")

    def member(self, expr: Member) -> Type:
        if isinstance(expr.base, Name) and path_of(expr) in self.checked.architecture.enums:
            return "enum"
        base = self.expr(expr.base)
        if not isinstance(base, Composite):
            raise P4Error(expr.place, f"{_name(base)} has no fields")
        if base.is_header and path_of(expr.base) not in self.valid:
            path = path_of(expr.base)
            raise P4Error(expr.place, f"`{path}.{expr.name}` is used where `{path}` may be invalid")
        for item in base.fields:
            if item.name == expr.name:
                return self.named(item.type)
        raise P4Error(expr.place, f"`{base.name}` has no field `{expr.name}`")

    def binary(self, expr: Binary, wanted: Type | None) -> Type:
        left, right, operator = expr.left, expr.right, expr.operator
        if operator in {"&&", "||"}:
            self.expect(left, "bool")
            with self.branch(valid_if(left) if operator == "&&" else set()):
                self.expect(right, "bool")
            return "bool"
        if operator == "++":
            return Bits(self.sized(left).width + self.sized(right).width)
        if isinstance(left, Number) and left.width is None:
            left, right = right, left
        kind = self.expr(left, wanted if operator in ARITHMETIC else None)
        self.expect(right, kind)
        if kind == "bool" and operator in {"==", "!="}:
            return "bool"
        if not isinstance(kind, Bits):
            raise P4Error(expr.place, f"`{operator}` of {_name(kind)}")
        return kind if operator in ARITHMETIC else "bool"


def _number(number: Number, wanted: Type | None) -> Type:
    width = number.width
    if width is None:
        if not isinstance(wanted, Bits):
            raise P4Error(number.place, f"the width of {number.value} is not known here")
        width = wanted.width
    if number.value >= 1 << width:
        raise P4Error(number.place, f"{number.value} does not fit {width} bits")
    return Bits(width)


def _name(kind: Type) -> str:
    return f"`{kind.name}`" if isinstance(kind, Composite) else f"`{kind}`"
