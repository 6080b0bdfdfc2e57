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
    declared: frozenset[str]
    """Names at the top level of the architecture's file. A program may not declare them again."""


CORE = frozenset({"packet_in", "packet_out", "verify", "static_assert", "NoAction"})
"""What core.p4 declares, which both architectures include."""
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
    # The architecture's own blocks are declared too: p4c refuses a control `Ingress`.
    CORE | {
        "V1Switch", "Parser", "VerifyChecksum", "Ingress", "Egress", "ComputeChecksum", "Deparser",
        "standard_metadata_t", "CounterType", "MeterType", "HashAlgorithm", "CloneType",
        "PortId_t", "counter", "direct_counter", "meter", "direct_meter", "register",
        "action_profile", "action_selector", "random", "digest", "mark_to_drop", "hash",
        "Checksum16", "verify_checksum", "update_checksum", "verify_checksum_with_payload",
        "update_checksum_with_payload", "resubmit", "recirculate", "clone", "clone3", "truncate",
        "resubmit_preserving_field_list", "recirculate_preserving_field_list",
        "clone_preserving_field_list", "assert", "assume", "log_msg", "__v1model_version",
    },
)  # fmt: skip
VITIS = Architecture(
    "XilinxPipeline",
    _standard(drop=1, ingress_timestamp=64, parsed_bytes=16),
    (PARSER, MATCH, ("packet_out", "in H", "inout M", "inout S")),
    frozenset(),
    frozenset({"Checksum"}),
    frozenset({"HashAlgorithm_t.CRC32"}),
    # xsa.p4 is AMD's and closed: these are the names that `p4/` itself relies on.
    CORE | {"XilinxPipeline", "standard_metadata_t", "Checksum", "HashAlgorithm_t"},
)  # fmt: skip
ARCHITECTURES = {"v1model.p4": V1MODEL, "xsa.p4": VITIS}
