"""The checker refuses what is wrong or unknown, with file and line, and notices mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from p4check import Checked, P4Error, Vitis, check, read
from p4check.__main__ import main
from p4check.run import widths
from p4frames import P4, ROOT, TOPS, Frame, Status, ip, message, program


def changed(file: str, old: str, new: str, top: str = "olaf_vitis_in.p4") -> Checked:
    """The program with one passage of a file replaced."""
    text = (P4 / file).read_text()
    assert text.count(old) >= 1, "the passage is there"
    return check(read(P4 / top, {file: text.replace(old, new, 1)}))


def offsets_that_differ(checked: Checked) -> set[str]:
    """Fields whose bytes in the P4 headers are not those of offsets.rs."""
    source = (ROOT / "crates" / "olaf-wire" / "src" / "offsets.rs").read_text()
    differ = set()
    for module, header, start in (("common", "olaf_common_t", 0), ("update", "olaf_update_t", 24),
                                  ("answer", "olaf_answer_t", 24)):  # fmt: skip
        body = source.split(f"pub mod {module} {{")[1].split("\n}")[0]
        wanted = {
            name.lower(): int(at) for name, at in re.findall(r"const (\w+): usize = (\d+)", body)
        }
        at, found = start * 8, {}
        for name, width in widths(checked.program.composites[header]):
            found[name] = at / 8
            at += width
        found["len" if module == "common" else "payload"] = at / 8
        assert set(found) - set(wanted) <= {"magic", "zero"}
        differ |= {f"{module}.{name}" for name, byte in wanted.items() if found.get(name) != byte}
    return differ


@pytest.mark.parametrize("top", TOPS)
def test_the_programs_are_well_formed(top: str) -> None:
    assert offsets_that_differ(program(top)) == set()


def test_the_signal_at_the_port_of_the_queue_is_the_user_signal() -> None:
    composites = program("olaf_v1model.p4").program.composites
    signal = widths(composites["signal_t"])
    assert signal == widths(composites["user_t"])
    assert sum(width for _, width in signal) == 36 * 8, "p4/README.md says 36 bytes"


def identity_is_lost(checked: Checked) -> bool:
    """Whether the first block gives an update of the vectors another identity, or changes it."""
    ours = message("update")
    block = Vitis(checked)
    block.table("Before.identify.senders").add((ip("10.0.0.1"),), "worker")
    block.table("Before.identify.clusters").add((ours["job"], ours["cluster"]), "in_group", 5)
    frame = Frame(ours["data"])
    user, out = block.process(frame.emit())
    names = ("job", "cluster", "worker", "segment")
    same = [user[name] for name in names] == [ours[name] for name in names]
    return not same or user["group"] != 5 or user["flow"] != frame.flow or out != ours["data"]


def status_is_lost(checked: Checked) -> bool:
    """Whether an answer does not leave with the queue's status and the right checksums."""
    block = Vitis(checked)
    receiver = (0x0200_0000_0002, "10.0.0.2", 40001)
    mac, address, port = receiver
    block.table("Behind.readdress.receivers").add((5, 0), "to", mac, ip(address), port)
    own = Status(active_clusters=60000, slots=2, used=70000, round_us=0x89AB_CDEF)
    status = {name: value for name, value in vars(own).items() if name != "switches"}
    frame = Frame(message("model")["data"])
    _, out = block.process(frame.emit(), **{"class": 2, "group": 5, **status})
    expected = Status.of(frame.payload).passing(own).into(frame.payload)
    return out != frame.to(*receiver, expected).emit()


def departure_is_lost(checked: Checked) -> bool:
    """Whether a departing update does not leave whole, with the headers of its job's server."""
    block = Vitis(checked)
    own, server = (
        (0x0200_0000_000A, "255.255.255.254", 5556),
        (0x0200_0000_0009, "255.9.129.9", 5555),
    )
    job = message("update")["job"]
    block.table("Behind.wrap.servers").add(
        (job,), "to_server", own[0], ip(own[1]), own[2], server[0], ip(server[1]), server[2], 2
    )
    frame = Frame(
        message("update")["data"], source=own[1], destination=server[1], ports=(own[2], server[2]),
        macs=(own[0], server[0]), with_checksum=False, traffic_class=2, identification=0,
        fragment=0x4000, time_to_live=64,
    )  # fmt: skip
    _, out = block.process(frame.payload, **{"class": 1})
    return out != frame.emit()


def test_the_probes_find_nothing_in_the_programs() -> None:
    assert not identity_is_lost(program("olaf_vitis_in.p4"))
    assert not status_is_lost(program("olaf_vitis_out.p4"))
    assert not departure_is_lost(program("olaf_vitis_out.p4"))


WRONG_OFFSETS = [
    ("bit<32> cluster;\n    bit<32> worker;\n    bit<32> session;",
     "bit<32> worker;\n    bit<32> cluster;\n    bit<32> session;"),
    ("bit<32> hop_sequence;\n    bit<32> segment;", "bit<32> segment;\n    bit<32> hop_sequence;"),
    ("bit<8> hops;\n    bit<24> zero;", "bit<8> hops;\n    bit<16> zero;"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), WRONG_OFFSETS)
def test_a_wrong_offset_is_noticed(old: str, new: str) -> None:
    checked = changed("headers.p4", old, new)
    assert offsets_that_differ(checked)
    assert identity_is_lost(checked) or "zero" in old, "bytes behind the identity do not change it"


MISTAKES: list[tuple[Callable[[Checked], bool], str, str, str]] = [
    (identity_is_lost, "tables.p4", "user.worker = frame.olaf.worker",
     "user.worker = frame.olaf.session"),
    (identity_is_lost, "tables.p4", "UDP_BYTES + UPDATE_BYTES", "UDP_BYTES + ANSWER_BYTES"),
    (identity_is_lost, "parser.p4", "0, KIND_UPDATE): update", "1, KIND_UPDATE): update"),
    (identity_is_lost, "deparser.p4", "        packet.emit(frame.update);\n", ""),
    (identity_is_lost, "olaf_vitis_in.p4", "ipv4.source, frame.ipv4.destination",
     "ipv4.destination, frame.ipv4.source"),
    # What a block gets as `out` begins without headers: Ethernet would be lost.
    (identity_is_lost, "parser.p4", "packet_in packet, inout frame_t frame)",
     "packet_in packet, out frame_t frame)"),
    (identity_is_lost, "datagrams.p4", "frame.udp.setInvalid()", "frame.olaf.setInvalid()"),
    (identity_is_lost, "datagrams.p4", "if (user.class == UPDATE)", "if (user.class == ANSWER)"),
    (departure_is_lost, "parser.p4", "UPDATE: departing", "ANSWER: departing"),
    (departure_is_lost, "datagrams.p4", "source_mac = from_mac", "source_mac = to_mac"),
    (departure_is_lost, "datagrams.p4", "source_ip = from_ip", "source_ip = to_ip"),
    (departure_is_lost, "datagrams.p4", "UPDATE_BYTES[15:0] + (", "ANSWER_BYTES[15:0] + ("),
    (departure_is_lost, "datagrams.p4", "+ UDP_BYTES[15:0] + bytes", "+ bytes"),
    (departure_is_lost, "datagrams.p4", "= UDP_BYTES[15:0] + bytes", "= bytes"),
    (departure_is_lost, "datagrams.p4", "lanes[13:0] ++ 2w0", "lanes[12:0] ++ 3w0"),
    (departure_is_lost, "datagrams.p4", "(8w0x45 ++ class)", "(class ++ 8w0x45)"),
    (departure_is_lost, "datagrams.p4", "ip[31:16] + (bit<32>) ip[15:0];",
     "ip[31:16] + (bit<32>) ip[14:0];"),
    (departure_is_lost, "datagrams.p4", "do_not_fragment = 1", "do_not_fragment = 0"),
    (departure_is_lost, "datagrams.p4", "traffic_class = class", "traffic_class = 0"),
    (departure_is_lost, "datagrams.p4", "key = { frame.olaf.job", "key = { frame.olaf.cluster"),
    (status_is_lost, "tables.p4", "+ (bit<32>) (frame.answer.switches ++ frame.answer.zero)\n", ""),
    (status_is_lost, "tables.p4", "frame.answer.slots = user.slots",
     "frame.answer.used = user.slots"),
    (status_is_lost, "tables.p4", "used = 0xffff;", "used = 0;"),
    (status_is_lost, "tables.p4", "(~old_ip[31:16])", "(old_ip[31:16])"),
    (status_is_lost, "tables.p4", "frame.ipv4.checksum = ~sum[15:0]",
     "frame.ipv4.checksum = sum[15:0]"),
]  # fmt: skip


@pytest.mark.parametrize(("lost", "file", "old", "new"), MISTAKES)
def test_a_mistake_changes_what_leaves(
    lost: Callable[[Checked], bool], file: str, old: str, new: str
) -> None:
    top = "olaf_vitis_in.p4" if lost is identity_is_lost else "olaf_vitis_out.p4"
    assert lost(changed(file, old, new, top))


REFUSED = [
    # A header is used where it may be invalid.
    ("tables.p4", "if (sender == UPDATE && frame.update.isValid())", "if (sender == UPDATE)",
     "`frame.update.lanes` is used where `frame.update` may be invalid"),
    ("tables.p4", "frame.ipv4.isValid() && frame.udp.isValid() && frame.olaf",
     "frame.udp.isValid() && frame.olaf", "`frame.ipv4.source` is used where"),
    ("tables.p4", "frame.update.isValid()) {", "frame.answer.isValid()) {", "may be invalid"),
    ("parser.p4", "        packet.extract(frame.olaf);\n", "", "`frame.olaf.magic` is used where"),
    ("parser.p4", "packet.extract(frame.answer)", "packet.extract(frame.olaf)", "is there already"),
    ("datagrams.p4", "                frame.udp.setValid();\n", "",
     "`frame.udp.source` is used where"),
    # Types and widths.
    ("headers.p4", "bit<24> zero", "bit<23> zero", "575 bits: no whole bytes"),
    ("headers.p4", "bit<16> ETHER_TYPE", "bit<8> ETHER_TYPE", "2048 does not fit 8 bits"),
    ("tables.p4", "(bit<32>) frame.udp.length\n", "frame.udp.length\n", "where `bit<16>` is"),
    ("tables.p4", "user.job = frame.olaf.job", "user.group = frame.olaf.job",
     "`bit<32>` where `bit<16>`"),
    ("tables.p4", "weight[63:63]", "weight[64:64]", "[64:64] of 64 bits"),
    ("tables.p4", "in frame_t frame, inout user_t user) {\n    bit<8>",
     "in frame_t frame, in user_t user) {\n    bit<8>", "this cannot be written"),
    ("tables.p4", "frame.update.contributors != 0", "frame.update.contributor != 0",
     "has no field"),
    ("parser.p4", "(4, 5, 0, 0, PROTOCOL_UDP)", "(16, 5, 0, 0, PROTOCOL_UDP)",
     "does not fit 4 bits"),
    ("olaf_vitis_in.p4", "BeforeDeparser()) main", "Before()) main",
     "not a block with the parameters"),
    # Parts that cannot be reached, or are not there.
    ("parser.p4", "0, KIND_UPDATE): update", "0, KIND_UPDATE): accept", "`update` is never used"),
    ("parser.p4", "PROTOCOL_UDP): udp", "PROTOCOL_UDP): accept", "`messages` is never used"),
    ("tables.p4", "                clusters.apply();\n", "", "`no_group` is never used"),
    ("parser.p4", "KIND_MODEL): answer", "KIND_MODEL): model", "no state `model`"),
    ("parser.p4", "0, KIND_MODEL)", "0, KIND_ACKNOWLEDGEMENT)",
     "the same values as in a case above"),
    # Constructs that the checker does not know.
    ("parser.p4", "packet.extract(frame.olaf)", "packet.advance(8)", "`advance` is not supported"),
    ("parser.p4", "        transition accept;", "        transition start;",
     "loops are not supported"),
    ("tables.p4", "source: exact", "source: lpm", "match kind `lpm` is not supported"),
    ("tables.p4", "        senders.apply();", "        exit;", "a statement is"),
    ("tables.p4", "bool whole", "int<8> whole", "is not supported here"),
    ("olaf_vitis_in.p4", "#include <xsa.p4>", "#include <psa.p4>", "`psa.p4` is not supported"),
    ("headers.p4", "#endif", "#pragma once", "is not supported"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "says"), REFUSED)
def test_an_error_names_file_and_line(file: str, old: str, new: str, says: str) -> None:
    with pytest.raises(P4Error, match=re.escape(says)) as refused:
        changed(file, old, new)
    place = refused.value.place
    assert place.file.endswith(".p4")
    assert 1 <= place.line <= len((P4 / place.file).read_text().split("\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("control OlafIngress(", "control Ingress("),
        ("control OlafEgress(", "control Egress("),
        ("struct headers_t {", "struct clone {"),
        ("const bit<9> QUEUE_PORT", "const bit<9> truncate"),
        ("control Verify(", "control NoAction("),
    ],
)
def test_a_name_of_the_architecture_is_refused(old: str, new: str) -> None:
    """p4c 1.2.5.16 refused the first two: "Ingress duplicates Ingress"."""
    name = re.split(r"[ (]", new.rstrip("( {"))[-1]
    says = f"`{name}` is declared by v1model.p4 already"
    with pytest.raises(P4Error, match=re.escape(says)) as refused:
        changed("olaf_v1model.p4", old, new, "olaf_v1model.p4")
    lines = (P4 / "olaf_v1model.p4").read_text().split("\n")
    assert refused.value.place == ("olaf_v1model.p4", lines.index(next(
        line for line in lines if line.startswith(old))) + 1)  # fmt: skip


def test_the_line_is_that_of_the_mistake() -> None:
    old = "if (sender == UPDATE && frame.update.isValid())"
    text = (P4 / "tables.p4").read_text()
    first = text[: text.index(old)].count("\n") + 1
    with pytest.raises(P4Error) as refused:
        changed("tables.p4", old, "if (sender == UPDATE)")
    file, line = refused.value.place
    assert (file, line - first) == ("tables.p4", 3), "the first field that is read there"


def test_the_command_says_where_the_mistake_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(P4 / top) for top in TOPS]) == 0
    for file in P4.glob("*.p4"):
        (tmp_path / file.name).write_text(file.read_text())
    with (tmp_path / "parser.p4").open("a") as parser:
        parser.write("varbit<8> unknown;\n")
    assert main([str(tmp_path / TOPS[0])]) == 1
    line = (tmp_path / "parser.p4").read_text().count("\n")
    assert capsys.readouterr().err.startswith(f"parser.p4:{line}: ")
