"""The dissector names every field of every vector, with its value: tshark reads the capture."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.wireshark
ROOT = Path(__file__).parents[2]
CAPTURE = ROOT / "vectors" / "wire" / "olaf.pcap"
DISSECTOR = ROOT / "wireshark" / "olaf.lua"
PORTS = {
    "native": (5555, "olaf"),
    "reduce": (5560, "olaf_reduce"),
    "iswitch": (5561, "olaf_iswitch"),
    "trio": (12000, "olaf_trio"),
    "atp": (5562, "olaf_atp"),
    "keys": (5565, "olaf_keys"),
}
SEALED = 5564
SEAL = "_ws.lua.text"
"""What tshark calls a part of a tree that is no field: here the seal."""
OTHERWISE = {
    # Payloads: what they are follows from other fields.
    "lanes", "floats", "values", "gradients", "ranks", "text", "hex",
    # Several fields of the datagram together, or its message itself.
    "kind", "rule", "aged", "bitmap2", "bitmap3", "fan_in2", "fan_in3", "passed",
    "same_switch1", "same_switch2", "upper", "action",
    # Of the seal, not of the message: it has a test of its own.
    "tag",
}  # fmt: skip
"""Fields of vectors that are not one number or name of the dissector."""
SIGNATURES = {"called": "awaited", "culprit_calls": "culprit", "others_call": "others"}
"""What a worker calls has four fields: how their names begin in the dissector."""


@pytest.fixture(scope="module")
def packets(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Each packet of the capture as tshark tells it, without a profile of this user."""
    assert shutil.which("tshark"), "tshark is missing: run scripts/tshark"
    ran = subprocess.run(
        [
            *("tshark", "-X", f"lua_script:{DISSECTOR}", "-r", str(CAPTURE)),
            *("-d", "udp.port==5562,olaf_atp", "-T", "json", "--no-duplicate-keys"),
        ],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(tmp_path_factory.mktemp("home"))},
    )
    assert "Lua" not in ran.stderr, ran.stderr
    told: list[dict[str, Any]] = [one["_source"]["layers"] for one in json.loads(ran.stdout)]
    return told


def at_port(packets: list[dict[str, Any]], port: int) -> list[dict[str, Any]]:
    return [one for one in packets if one["udp"]["udp.dstport"] == str(port)]


def vectors(folder: str) -> list[dict[str, Any]]:
    file = ROOT / "vectors" / "wire" / folder / "messages.json"
    told: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return told


def found(layer: dict[str, Any], protocol: str, message: str, field: str) -> str | None:
    """A field of the message, or of all messages of the protocol."""
    for key in (f"{protocol}.{message}.{field}", f"{protocol}.{field}"):
        if key in layer:
            return str(layer[key])
    return None


def names(protocol: str) -> dict[str, dict[str, str]]:
    """The names of values of each field, as the dissector has them: field -> name -> value."""
    all_names: dict[str, dict[str, str]] = {}
    is_here = False
    for line in DISSECTOR.read_text(encoding="utf-8").splitlines():
        if ", title = " in line:
            is_here = f'"{protocol}"' in line
        if is_here and "names = {" in line:
            field = line.split('"')[1]
            inside = line.partition("names = {")[2].partition("}")[0]
            pairs = [part.split("] = ") for part in inside.split(", ")]
            known = all_names.setdefault(field, {})
            known |= {name.strip('" '): value.strip(" [") for value, name in pairs}
    return all_names


def fields(vector: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Each field of a vector, with its name in the dissector."""
    for field, value in vector.items():
        if field in SIGNATURES:
            yield from ((f"{SIGNATURES[field]}_{part}", one) for part, one in value.items())
        else:
            yield field, value


@pytest.mark.parametrize("folder", PORTS)
def test_every_field_of_every_vector_is_named_with_its_value(
    packets: list[dict[str, Any]], folder: str
) -> None:
    port, protocol = PORTS[folder]
    of_folder, named, compared = at_port(packets, port), names(protocol), 0
    assert len(of_folder) == len(vectors(folder)) > 5
    for packet, vector in zip(of_folder, vectors(folder), strict=True):
        layer, message = packet[protocol], vector["kind"]
        if folder == "trio" and vector.get("aged"):
            message = "aged"
        assert layer[f"{protocol}.message"] == message
        for field, value in fields(vector):
            # The number of servers is what a worker of these vectors knows, not the message.
            if field in OTHERWISE or (folder, message, field) == ("atp", "welcome", "servers"):
                continue
            told = found(layer, protocol, message, field)
            assert told is not None, (message, field)
            if isinstance(value, float):
                assert float(told) == pytest.approx(value), (message, field)
            elif isinstance(value, str) and field in named:
                assert told == named[field][value], (message, field)
            elif isinstance(value, str):
                assert told.replace(":", "") == value, (message, field)
            else:
                assert int(told, 0) == int(value), (message, field)
            compared += 1
    assert compared > 5 * len(of_folder), "most messages have more than five fields"


def test_the_sharing_of_mina_is_named(packets: list[dict[str, Any]]) -> None:
    layers = [one["olaf_mina"] for one in at_port(packets, 5563) if "olaf_mina" in one]
    kinds = {layer["olaf_mina.message"]: layer for layer in layers}
    sharing = {one["kind"]: one for one in vectors("mina") if one["kind"] != "here"}
    assert kinds.keys() == sharing.keys()
    commit = kinds["commit"]
    grants = [one for one in vectors("mina") if one["kind"] == "commit"]
    assert int(commit["olaf_mina.commit.grant_from"]) == grants[-1]["grant_from"]
    assert int(commit["olaf_mina.job"]) == grants[-1]["job"]
    here = [one["olaf_here"] for one in at_port(packets, 5563) if "olaf_here" in one]
    assert [int(one["olaf_here.index"]) for one in here] == [
        one["index"] for one in vectors("mina") if one["kind"] == "here"
    ]


def test_a_seal_is_found_by_the_length_and_named(packets: list[dict[str, Any]]) -> None:
    [update] = at_port(packets, SEALED)
    layer, clear = update["olaf"], at_port(packets, 5555)[0]["olaf"]
    seal = layer[SEAL]
    assert (seal["olaf.seal.association"], seal["olaf.seal.counter"]) == ("258", "772")
    assert seal["olaf.seal.class"] == "35"
    assert seal["olaf.seal.tag"] == ":".join(["ab"] * 16)
    # The message in front of the seal is read as without one.
    del layer[SEAL]
    assert layer == clear


def test_every_handshake_and_the_notice_of_the_version_have_a_seal(
    packets: list[dict[str, Any]],
) -> None:
    layers = [one["olaf_keys"] for one in at_port(packets, 5565)]
    told = [layer["olaf_keys.message"] for layer in layers]
    kinds = ["hello", "cookie", "open", "opened", "unknown", "no_key", "version_notice"]
    assert told == kinds
    for layer, vector in zip(layers, vectors("keys"), strict=True):
        seal = layer[SEAL]
        assert (seal["olaf_keys.seal.association"], seal["olaf_keys.seal.counter"]) == ("0", "0")
        # Nobody signs a notice.
        assert seal["olaf_keys.seal.tag"].replace(":", "") == vector.get("tag", "00" * 16)
    notice = layers[-1]
    assert (notice["olaf_keys.version"], notice["olaf_keys.kind"]) == ("2", "0")
    assert "olaf_keys.association" not in notice, "it ends before the fields of a handshake"


def test_no_packet_of_the_capture_is_odd(packets: list[dict[str, Any]]) -> None:
    assert not [one for one in packets if "odd_length" in json.dumps(one)]
    assert not [one for one in packets if ".unknown" in json.dumps(one)]
    assert not [one for one in packets if "Lua Error" in json.dumps(one)]
