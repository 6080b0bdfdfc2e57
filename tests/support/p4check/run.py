"""Runs a program that was checked: frames in, frames out, and tables that change meanwhile."""

from __future__ import annotations

import zlib
from contextlib import suppress
from copy import copy as shallow
from dataclasses import dataclass, field
from typing import Any

from .check import Checked, path_of
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
    Invoke,
    Listed,
    Member,
    Name,
    Named,
    Number,
    Slice,
    State,
    Statement,
    Table,
    Truth,
    TypeName,
    Unary,
)


class PacketTooShort(Exception):  # noqa: N818
    """The parser asked for more bytes than the frame has; P4's own name for it."""


@dataclass
class Struct:
    """A struct or a header; a struct is always valid."""

    type: Composite
    fields: dict[str, Any]
    valid: bool = True


@dataclass
class Packet:
    """A frame that is read, or written, from its front."""

    data: bytes
    at: int = 0


@dataclass
class Entries:
    """A table as the control plane sees it."""

    table: Table
    actions: dict[str, Action]
    key_types: list[int]
    rows: dict[tuple[int, ...], tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    hits: int = 0

    def add(self, key: tuple[int, ...], action: str, *arguments: int) -> None:
        """Adds or replaces an entry. Raises ValueError for one that the table cannot have."""
        params = self.actions[action].params if action in self._names() else None
        if params is None or len(params) != len(arguments):
            raise ValueError(
                f"{self.table.name}: no action `{action}` of {len(arguments)} arguments"
            )
        widths = [param.type.width for param in params if isinstance(param.type, Bits)]
        for value, width in zip((*key, *arguments), (*self.key_types, *widths), strict=True):
            if not 0 <= value < 1 << width:
                raise ValueError(f"{self.table.name}: {value} does not fit {width} bits")
        if key not in self.rows and len(self.rows) == self.table.size:
            raise ValueError(f"{self.table.name}: full")
        self.rows[key] = (action, arguments)

    def remove(self, key: tuple[int, ...]) -> None:
        del self.rows[key]

    def _names(self) -> set[str]:
        return {name.name for name in self.table.actions}


class Running:
    """A block with its tables and the blocks inside it."""

    def __init__(self, checked: Checked, block: Block) -> None:
        self.checked = checked
        self.block = block
        self.inner = {
            name: Running(checked, checked.program.blocks[instance.type])
            for name, instance in block.instances.items()
            if instance.type in checked.program.blocks
        }
        self.tables = {
            name: Entries(table, block.actions, [self._width(key) for key in table.keys])
            for name, table in block.tables.items()
        }
        self.constants = {
            name: _literal(constant.value) for name, constant in checked.program.constants.items()
        }
        self.scope: dict[str, Any] = {}

    def make(self, name: TypeName) -> Any:
        """A value of that type: headers invalid, numbers 0."""
        if not isinstance(name, Named):
            return 0
        kind = self.checked.composite(name.name)
        assert kind is not None, "checked"
        fields = {item.name: self.make(item.type) for item in kind.fields}
        return Struct(kind, fields, valid=not kind.is_header)

    def run(self, *arguments: Any) -> dict[str, Any]:
        """Runs the block with its parameters in order; structs and packets are changed in place.

        Returns the parameters afterwards.
        """
        names = [param.name for param in self.block.params]
        self.scope = {**self.constants, **dict(zip(names, arguments, strict=True))}
        for variable in self.block.variables.values():
            self.scope[variable.name] = self.value(variable.value)
        if self.block.is_parser:
            self.parse()
        else:
            self.statements(self.block.body)
        return {name: self.scope[name] for name in names}

    def parse(self) -> None:
        name = "start"
        while name not in {"accept", "reject"}:
            state = self.block.states[name]
            self.statements(state.body)
            name = self.next_state(state)

    def next_state(self, state: State) -> str:
        keys = [self.value(key) for key in state.keys]
        for case in state.cases:
            if case.values is None or [self.value(value) for value in case.values] == keys:
                return case.state
        raise AssertionError("checked: the last case is `default`")

    # Statements

    def statements(self, body: list[Statement]) -> None:
        for statement in body:
            if isinstance(statement, Assign):
                self.store(statement.target, self.value(statement.value))
            elif isinstance(statement, Call):
                self.call(statement.invoke)
            else:
                self.statements(
                    statement.then if self.value(statement.condition) else statement.otherwise
                )

    def store(self, target: Expr, value: Any) -> None:
        if isinstance(target, Name):
            self.scope[target.name] = value
        else:
            assert isinstance(target, Member), "checked"
            base = self.value(target.base)
            assert base.valid, f"{target.place}: {path_of(target.base)} is written, but not valid"
            base.fields[target.name] = value

    def call(self, invoke: Invoke) -> None:
        target, arguments = invoke.target, invoke.arguments
        if isinstance(target, Name):
            if target.name in self.block.actions:
                self.act(self.block.actions[target.name], [self.value(item) for item in arguments])
            elif target.name == "mark_to_drop":
                self.value(arguments[0]).fields.update(egress_spec=DROP_PORT, mcast_grp=0)
            else:
                self.store(arguments[0], self.crc(arguments[3]))
            return
        assert isinstance(target, Member), "checked"
        if isinstance(target.base, Name) and target.name == "apply":
            self.apply(target.base.name, arguments)
            return
        base = self.value(target.base)
        if target.name in {"setValid", "setInvalid"}:
            base.valid = target.name == "setValid"
        elif target.name == "extract":
            _extract(base, self.value(arguments[0]))
        else:
            _emit(base, self.value(arguments[0]))

    def act(self, action: Action, arguments: list[Any]) -> None:
        names = [param.name for param in action.params]
        self.scope.update(zip(names, arguments, strict=True))
        self.statements(action.body)
        for name in names:
            del self.scope[name]

    def apply(self, name: str, arguments: list[Expr]) -> None:
        if name in self.tables:
            entries = self.tables[name]
            key = tuple(self.value(item) for item in entries.table.keys)
            entries.hits += key in entries.rows
            action, values = entries.rows.get(key, (entries.table.default, ()))
            self.act(self.block.actions[action], list(values))
        elif name in self.inner:
            inner = self.inner[name]
            given = [self.value(argument) for argument in arguments]
            for param, value in zip(inner.block.params, given, strict=True):
                if param.direction == "out" and isinstance(value, Struct):
                    _invalidate(value)
            after = inner.run(*given)
            for param, argument in zip(inner.block.params, arguments, strict=True):
                if param.direction in {"out", "inout"} and isinstance(param.type, Bits):
                    self.store(argument, after[param.name])
        else:
            self.store(arguments[1], self.crc(arguments[0]))

    def crc(self, listed: Expr) -> int:
        """CRC-32 as Ethernet has it, of the fields in order."""
        assert isinstance(listed, Listed), "checked"
        bits = "".join(f"{self.value(item):0{self._width(item)}b}" for item in listed.items)
        return zlib.crc32(int(bits, 2).to_bytes(len(bits) // 8, "big"))

    # Expressions

    def _width(self, expr: Expr) -> int:
        kind = self.checked.type_of(expr)
        assert isinstance(kind, Bits), "checked"
        return kind.width

    def value(self, expr: Expr) -> Any:  # noqa: PLR0911
        match expr:
            case Number() | Truth():
                return expr.value
            case Name():
                return self.scope[expr.name]
            case Member():
                base = self.value(expr.base)
                assert base.valid, f"{expr.place}: {path_of(expr.base)} is read, but not valid"
                return base.fields[expr.name]
            case Slice():
                return self.value(expr.base) >> expr.low & (1 << expr.high - expr.low + 1) - 1
            case Cast():
                return self.value(expr.operand) & (1 << expr.width) - 1
            case Unary(operator="!"):
                return not self.value(expr.operand)
            case Unary():
                return self.value(expr.operand) ^ (1 << self._width(expr.operand)) - 1
            case Binary():
                return self.binary(expr)
            case Invoke(target=Member(name="isValid") as target):
                return self.value(target.base).valid
        raise AssertionError("checked")

    def binary(self, expr: Binary) -> Any:
        left = self.value(expr.left)
        match expr.operator:
            case "&&":
                return left and self.value(expr.right)
            case "||":
                return left or self.value(expr.right)
        right = self.value(expr.right)
        match expr.operator:
            case "++":
                return left << self._width(expr.right) | right
            case "+" | "-" | "*":
                result = {"+": left + right, "-": left - right, "*": left * right}[expr.operator]
                return result & (1 << self._width(expr)) - 1
            case "&" | "|":
                return left & right if expr.operator == "&" else left | right
        return {
            "==": left == right, "!=": left != right, "<": left < right,
            ">": left > right, "<=": left <= right, ">=": left >= right,
        }[expr.operator]  # fmt: skip


def _literal(expr: Expr) -> int:
    assert isinstance(expr, Number), "checked"
    return expr.value


def _copy(struct: Struct) -> Struct:
    made = shallow(struct)
    made.fields = {
        name: _copy(value) if isinstance(value, Struct) else value
        for name, value in struct.fields.items()
    }
    return made


def _invalidate(struct: Struct) -> None:
    """What happens to the headers of an `out` parameter where a block begins."""
    struct.valid = not struct.type.is_header
    for value in struct.fields.values():
        if isinstance(value, Struct):
            _invalidate(value)


def widths(kind: Composite) -> list[tuple[str, int]]:
    """Names and bits of the fields."""
    return [(item.name, item.type.width) for item in kind.fields if isinstance(item.type, Bits)]


def _extract(packet: Packet, header: Struct) -> None:
    size = sum(width for _, width in widths(header.type)) // 8
    if len(packet.data) - packet.at < size:
        raise PacketTooShort
    number = int.from_bytes(packet.data[packet.at : packet.at + size], "big")
    packet.at += size
    for name, width in reversed(widths(header.type)):
        header.fields[name] = number & (1 << width) - 1
        number >>= width
    header.valid = True


def _emit(packet: Packet, header: Struct) -> None:
    if not header.valid:
        return
    number, bits = 0, 0
    for name, width in widths(header.type):
        number, bits = number << width | header.fields[name], bits + width
    packet.data += number.to_bytes(bits // 8, "big")


DROP_PORT = 511


class _Switch:
    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.blocks = [Running(checked, block) for block in checked.main]

    def table(self, path: str) -> Entries:
        """A table by its path: ``OlafIngress.identify.senders``."""
        top, *middle, name = path.split(".")
        running = next(block for block in self.blocks if block.block.name == top)
        for step in middle:
            running = running.inner[step]
        return running.tables[name]

    def _parse(self, frame: bytes, standard: Struct, user: Struct) -> tuple[Struct, bytes]:
        parser = self.blocks[0]
        headers: Struct = parser.make(parser.block.params[1].type)
        packet = Packet(frame)
        # The headers before the one that did not fit are valid; its bytes are still there.
        with suppress(PacketTooShort):
            parser.run(packet, headers, user, standard)
        return headers, frame[packet.at :]

    def _new(self, block: int, param: int) -> Struct:
        running = self.blocks[block]
        made: Struct = running.make(running.block.params[param].type)
        return made


class Vitis(_Switch):
    """A VitisNetP4 block: a frame and its user signal in, the same out."""

    def process(self, frame: bytes, **user: int) -> tuple[dict[str, int], bytes | None]:
        signal, standard = self._new(1, 1), self._new(1, 2)
        signal.fields.update(user)
        headers, rest = self._parse(frame, standard, signal)
        self.blocks[1].run(headers, signal, standard)
        packet = Packet(b"")
        self.blocks[2].run(packet, headers, signal, standard)
        out = None if standard.fields["drop"] else packet.data + rest
        return dict(signal.fields), out


class V1Model(_Switch):
    """A v1model switch: a frame of a port in, frames of ports out."""

    def __init__(self, checked: Checked) -> None:
        super().__init__(checked)
        self.groups: dict[int, list[tuple[int, int]]] = {}
        """Multicast groups: the port and the number (`egress_rid`) of each copy."""

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        user, standard = self._new(2, 1), self._new(2, 2)
        standard.fields.update(ingress_port=port, packet_length=len(frame))
        headers, rest = self._parse(frame, standard, user)
        self.blocks[1].run(headers, user)
        self.blocks[2].run(headers, user, standard)
        if group := standard.fields["mcast_grp"]:
            copies = self.groups.get(group, [])
        else:
            copies = [(standard.fields["egress_spec"], 0)]
        return [out for copy in copies for out in self._leave(copy, headers, user, standard, rest)]

    def _leave(
        self, copy: tuple[int, int], headers: Struct, user: Struct, standard: Struct, rest: bytes
    ) -> list[tuple[int, bytes]]:
        if copy[0] == DROP_PORT:
            return []
        headers, user, standard = _copy(headers), _copy(user), _copy(standard)
        standard.fields.update(egress_spec=copy[0], egress_rid=copy[1])
        self.blocks[3].run(headers, user, standard)
        if standard.fields["egress_spec"] == DROP_PORT:
            return []
        self.blocks[4].run(headers, user)
        packet = Packet(b"")
        self.blocks[5].run(packet, headers)
        return [(copy[0], packet.data + rest)]
