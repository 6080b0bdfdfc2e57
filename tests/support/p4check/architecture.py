"""What the two architectures give to a program, as far as `p4/` uses it."""

from __future__ import annotations

from dataclasses import dataclass

from .syntax import Bits, Composite, Field, Place

BUILT_IN = Place("architecture", 0)


def _standard(**widths: int) -> Composite:
    fields = [Field(BUILT_IN, Bits(width), name) for name, width in widths.items()]
    return Composite(BUILT_IN, "standard_metadata_t", fields, is_header=False)


@dataclass(frozen=True)
class Architecture:
    package: str
    standard: Composite
    blocks: tuple[tuple[str, ...], ...]
    """Directions and types of the parameters of each block; H and M stand for the program's."""
    functions: frozenset[str]
    externs: frozenset[str]
    enums: frozenset[str]
    """Their values, as they are written."""


PARSER = ("packet_in", "out H", "inout M", "inout S")
MATCH = ("inout H", "inout M", "inout S")

V1MODEL = Architecture(
    "V1Switch",
    _standard(
        ingress_port=9, egress_spec=9, packet_length=32, mcast_grp=16, egress_rid=16,
    ),
    (PARSER, MATCH[:2], MATCH, MATCH, MATCH[:2], ("packet_out", "in H")),
    frozenset({"mark_to_drop", "hash"}),
    frozenset(),
    frozenset({"HashAlgorithm.crc32"}),
)  # fmt: skip
VITIS = Architecture(
    "XilinxPipeline",
    _standard(drop=1, ingress_timestamp=64, parsed_bytes=16),
    (PARSER, MATCH, ("packet_out", "in H", "inout M", "inout S")),
    frozenset(),
    frozenset({"Checksum"}),
    frozenset({"HashAlgorithm_t.CRC32"}),
)
ARCHITECTURES = {"v1model.p4": V1MODEL, "xsa.p4": VITIS}
