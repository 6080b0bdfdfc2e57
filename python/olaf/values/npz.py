"""Arrays in an .npz that somebody else may have written: no code runs, and no size is believed.

``numpy.load`` takes memory for the shape that a header names, and decompresses without a limit.
Here an array is read only if its header, its bytes in the archive and the file's size agree.
"""

from __future__ import annotations

import math
import os
import struct
import zipfile
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

MOST_TEXT_BYTES = 1 << 24
"""Of an entry that is text: the names and shapes of some hundred thousand arrays."""

TYPES = frozenset("fiu")
"""Kinds of numbers that an array may have."""

SUFFIX = ".npy"


class NpzError(ValueError):
    """The file is no such archive, or an entry is not what it says. The message says which."""


class Npz:
    """An open .npz. Arrays have their names without ``.npy``."""

    def __init__(self, file: Path) -> None:
        """Open it. Raises OSError, and NpzError if it is not an archive of stored arrays."""
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise NpzError(f"damaged or cut short ({error})") from None
        self._entries = {entry.filename: entry for entry in self._archive.infolist()}
        try:
            self._check(os.stat(file).st_size)
        except NpzError:
            self._archive.close()
            raise

    @property
    def names(self) -> list[str]:
        """The names of the entries."""
        return [name.removesuffix(SUFFIX) for name in self._entries]

    def array(self, name: str) -> NDArray[Any]:
        """An array of numbers. Raises KeyError, and NpzError if it is not one."""
        with self._open(name + SUFFIX) as (stream, size):
            try:
                shape, is_fortran, dtype = _header(stream)
            except zipfile.BadZipFile as error:
                raise NpzError(f"damaged or cut short ({error})") from None
            except Exception as error:  # whatever numpy's reader of literals raises
                raise NpzError(f"{name!r} has a damaged header ({type(error).__name__})") from None
            left = size - stream.tell()
            if dtype.kind not in TYPES or dtype.hasobject:
                raise NpzError(f"{name!r} holds {dtype}, and not numbers")
            if math.prod(shape) * dtype.itemsize != left:
                raise NpzError(
                    f"{name!r} has {left:,} bytes; {dtype}{list(shape)}, as it says, has others"
                )
            data = self._read(name, stream, left)
        array = np.frombuffer(bytearray(data), dtype)
        return array.reshape(shape, order="F" if is_fortran else "C")

    def text(self, name: str) -> str:
        """A text. Raises KeyError, and NpzError if it is not one."""
        with self._open(name) as (stream, size):
            if size > MOST_TEXT_BYTES:
                raise NpzError(f"{name} has {size:,} bytes; it may have {MOST_TEXT_BYTES:,}")
            data = self._read(name, stream, size)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise NpzError(f"{name} is not UTF-8 ({error})") from None

    def close(self) -> None:
        """Close the file."""
        self._archive.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check(self, file_bytes: int) -> None:
        """Entries lie in the file as they are, each in a place of its own."""
        for name, entry in self._entries.items():
            if entry.compress_type != zipfile.ZIP_STORED:
                raise NpzError(
                    f"{name} is compressed, and could be of any size; store the arrays as they "
                    "are, with numpy.savez"
                )
            if entry.flag_bits & 1:
                raise NpzError(f"{name} is encrypted")
        total = sum(entry.file_size for entry in self._entries.values())
        if total > file_bytes:
            raise NpzError(f"its entries have {total:,} bytes, and the file {file_bytes:,}")

    def _open(self, name: str) -> _Entry:
        return _Entry(self._archive, self._entries[name])

    @staticmethod
    def _read(name: str, stream: IO[bytes], size: int) -> bytes:
        try:
            data = stream.read(size)
        except (zipfile.BadZipFile, EOFError) as error:
            raise NpzError(f"damaged or cut short ({name}: {error})") from None
        if len(data) != size:
            raise NpzError(f"damaged or cut short ({name} ends early)")
        return data


class _Entry:
    """An open entry, and its size."""

    def __init__(self, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
        try:
            self._stream = archive.open(entry)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise NpzError(f"damaged or cut short ({entry.filename}: {error})") from None
        self._size = entry.file_size

    def __enter__(self) -> tuple[IO[bytes], int]:
        return self._stream, self._size

    def __exit__(self, *error: object) -> None:
        self._stream.close()


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type, as ``numpy.lib.format`` reads them: it evaluates literals alone."""
    form = np.lib.format
    version = form.read_magic(stream)
    read = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"version {version} of the format")
    shape, is_fortran, dtype = read(stream)
    return tuple(int(size) for size in shape), bool(is_fortran), dtype
