"""Checkpoints are read by name; what is no whole checkpoint is refused with a reason."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from olaf import checkpoint

LAYOUT = [{"name": "layers.0.weight", "shape": [2, 3]}, {"name": "bias", "shape": [2]}]


def npy(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.asarray(array))
    return stream.getvalue()


def written(file: Path, **changes: Any) -> Path:
    """A checkpoint as the server writes one, with changes; None leaves an entry out."""
    metadata = {
        "format": "olaf-checkpoint",
        "format_version": 1,
        "version": 7,
        "parameters": 8,
        "layout": LAYOUT,
    }
    entries: dict[str, bytes | None] = {
        "layers.0.weight.npy": npy(np.arange(6, dtype=np.float32).reshape(2, 3)),
        "bias.npy": npy(np.array([7, 8], np.float32)),
        "olaf.metadata.json": json.dumps({**metadata, **changes.pop("metadata", {})}).encode(),
        **changes,
    }
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in entries.items():
            if content is not None:
                archive.writestr(name, content)
    return file


def test_arrays_come_by_name_in_their_order_and_shape(tmp_path: Path) -> None:
    saved = checkpoint.load(written(tmp_path / "c.npz"))
    assert (saved.version, saved.is_named) == (7, True)
    assert list(saved.arrays) == ["layers.0.weight", "bias"]
    assert saved.arrays["layers.0.weight"].shape == (2, 3)
    assert saved.parameters.tolist() == [0, 1, 2, 3, 4, 5, 7, 8]


def test_without_a_layout_there_is_one_flat_array(tmp_path: Path) -> None:
    flat = npy(np.arange(8, dtype=np.float32))
    file = written(tmp_path / "c.npz", metadata={"layout": None}, **{"parameters.npy": flat})
    saved = checkpoint.load(file)
    assert not saved.is_named
    assert list(saved.arrays) == [checkpoint.FLAT]


def test_the_model_of_an_older_run_is_read(tmp_path: Path) -> None:
    file = tmp_path / "model.npz"
    parts: dict[str, Any] = {f"part_{n}": np.full(1, n, np.float32) for n in range(11)}
    np.savez(file, version=3, parameters=np.arange(11, dtype=np.float32), **parts)
    saved = checkpoint.load(file)
    assert saved.version == 3
    assert list(saved.arrays) == [f"part_{n}" for n in range(11)]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"metadata": {"format": "else"}}, "does not say"),
        ({"metadata": {"format_version": 2}}, "use the release that wrote the file"),
        ({"olaf.metadata.json": b"{"}, "not JSON"),
        ({"olaf.metadata.json": None}, r"without olaf\.metadata\.json"),
        ({"bias.npy": None}, "'bias' is missing"),
        ({"bias.npy": npy(np.zeros(3, np.float32))}, r"float32\[3\]"),
        ({"bias.npy": npy(np.zeros(2))}, r"float64\[2\]"),
        ({"bias.npy": npy(np.zeros(2, np.float32))[:-4]}, "not a checkpoint"),
    ],
)
def test_what_is_no_checkpoint_is_refused(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(checkpoint.CheckpointError, match=reason):
        checkpoint.load(written(tmp_path / "c.npz", **changes))


def test_a_file_cut_short_or_damaged_is_refused_at_every_length(tmp_path: Path) -> None:
    file = written(tmp_path / "c.npz")
    whole = file.read_bytes()
    written(checkpoint.previous(file))
    for length in range(0, len(whole) - 1, 7):
        file.write_bytes(whole[:length])
        with pytest.raises(checkpoint.CheckpointError, match="previous"):
            checkpoint.load(file)
    at = whole.index(npy(np.array([7, 8], np.float32))[-8:])
    file.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
    with pytest.raises(checkpoint.CheckpointError, match="damaged"):
        checkpoint.load(file)


def header(shape: str, descr: str = "<f4") -> bytes:
    """The header of an array, whatever it promises."""
    text = f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"bias.npy": header("(1000000000000,)") + bytes(8)}, "has 8 bytes"),
        ({"bias.npy": header("(-2,)")}, "'bias'"),
        ({"bias.npy": header("(2, 1" + "0" * 400 + ")") + bytes(8)}, "has 8 bytes"),
        ({"bias.npy": header("(1,)", "|O") + bytes(8)}, "object, and not numbers"),
        ({"bias.npy": header("(1,)", "<U2") + bytes(8)}, "<U2, and not numbers"),
        ({"bias.npy": header("(" * 5000) + bytes(8)}, "damaged header"),
        ({"bias.npy": b"\x93NUMPY\x01\x00\xff\xff"}, "damaged header"),
        ({"bias.npy": npy(np.array([1, 2], ">f4"))}, ">f4"),
        ({"metadata": {"version": "7"}}, "version = '7'"),
        ({"metadata": {"version": [1]}}, r"version = \[1\]"),
        ({"metadata": {"layout": 3}}, "not a list of names"),
        ({"metadata": {"layout": [3]}}, "not a list of names"),
        ({"metadata": {"layout": [{"name": "bias"}]}}, "not a list of names"),
        ({"metadata": {"layout": [{"name": "bias", "shape": ["2"]}]}}, "has the entry 'bias'"),
        ({"metadata": {"layout": [{"name": ["bias"], "shape": [2]}]}}, "has the entry"),
        ({"metadata": {"layout": None, "parameters": "all"}}, "has the entry 'parameters'"),
        ({"olaf.metadata.json": b"[" * 200_000}, "not JSON"),
        ({"olaf.metadata.json": b"\xff"}, "not JSON"),
        ({"olaf.metadata.json": b" " * (1 << 25)}, "it may have"),
    ],
)
def test_what_a_stranger_writes_is_refused_in_a_sentence(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    with pytest.raises(checkpoint.CheckpointError, match=reason):
        checkpoint.load(written(tmp_path / "c.npz", **changes))


def test_a_small_file_that_inflates_is_refused_before_it_takes_memory(tmp_path: Path) -> None:
    file = tmp_path / "c.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("version.npy", npy(np.int64(3)))
        with archive.open("parameters.npy", "w", force_zip64=True) as stream:
            stream.write(header("(67108864,)"))
            for _ in range(256):
                stream.write(bytes(1 << 20))
    assert file.stat().st_size < 1 << 20
    tracemalloc.start()
    with pytest.raises(checkpoint.CheckpointError, match="is compressed"):
        checkpoint.load(file)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_entries_that_overlap_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "c.npz")
    inside = bytearray(file.read_bytes())
    at = inside.rindex(b"PK\x01\x02")  # the last entry of the directory
    for field in (20, 24):  # its sizes
        inside[at + field : at + field + 4] = (1 << 30).to_bytes(4, "little")
    file.write_bytes(inside)
    with pytest.raises(checkpoint.CheckpointError, match=r"its entries have 1,073,\d+,\d+ bytes"):
        checkpoint.load(file)


@pytest.mark.parametrize("version", [np.float32(3), np.arange(3)])
def test_the_version_of_an_older_model_is_a_number(tmp_path: Path, version: Any) -> None:
    file = tmp_path / "model.npz"
    np.savez(file, version=version, parameters=np.arange(3, dtype=np.float32))
    with pytest.raises(checkpoint.CheckpointError, match="version is"):
        checkpoint.load(file)


def test_a_file_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        checkpoint.load(tmp_path / "none.npz")
