"""The frames of the plain TCP parameter server: a length, a kind, and its fields.

Bytes become meaning only here. An invalid frame is a `FrameError` that names the fault. Every
length is compared with a limit before it is used.

| frame | from | fields |
|---|---|---|
| JOIN | worker | worker, cluster, parameters |
| OFFER | server | none: send your weights, they start the job |
| WEIGHTS | worker | the model |
| PUSH | worker | sequence, version computed on, reward, weight, time of the push, the update |
| MODEL | server | version, last sequence applied, the model |
| REFUSED | server | why, as UTF-8 |
| FETCH | worker | none: send the newest model |
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Lanes = NDArray[np.float32]

LENGTH = struct.Struct(">I")
"""Header of each frame: number of bytes that follow, including the kind."""

MOST_REASON_BYTES = 1000


class Kind(IntEnum):
    """The first byte of a frame."""

    JOIN = 1
    OFFER = 2
    WEIGHTS = 3
    PUSH = 4
    MODEL = 5
    REFUSED = 6
    FETCH = 7


_JOIN = struct.Struct(">BIII")
_KIND = struct.Struct(">B")
_PUSH = struct.Struct(">BQQddQ")
_MODEL = struct.Struct(">BQq")

NOTHING_APPLIED = -1
"""Value of ``last_sequence`` in a MODEL before any push on this connection."""


class FrameError(Exception):
    """An invalid frame; the message names the fault."""


@dataclass(frozen=True)
class Join:
    """A worker asks to take part."""

    worker: int
    cluster: int
    parameters: int


@dataclass(frozen=True)
class Offer:
    """The server has no model: the worker must send its own."""


@dataclass(frozen=True)
class Weights:
    """A worker's model, which starts the job."""

    lanes: Lanes


@dataclass(frozen=True)
class Push:
    """One update."""

    sequence: int
    """Number of this update on this connection, from 0."""
    version: int
    """Version of the model that it was computed on."""
    reward: float
    weight: float
    pushed_ns: int
    """Time of the push in nanoseconds, by the machine's monotonic clock."""
    lanes: Lanes


@dataclass(frozen=True)
class Model:
    """The job's model, and the last update of this worker in it."""

    version: int
    last_sequence: int
    lanes: Lanes


@dataclass(frozen=True)
class Refused:
    """The server refuses this worker."""

    why: str


@dataclass(frozen=True)
class Fetch:
    """A worker asks for the newest model; a MODEL answers it."""


Frame = Join | Offer | Weights | Push | Model | Refused | Fetch


def largest(parameters: int) -> int:
    """Length of the longest frame of a job with this number of parameters, in bytes."""
    head = max(_PUSH.size, _MODEL.size, _JOIN.size)
    return LENGTH.size + max(head + 4 * parameters, _KIND.size + MOST_REASON_BYTES)


def check_length(header: bytes, parameters: int) -> int:
    """Number of bytes after a length field; checked for this job. Raises FrameError."""
    (length,) = LENGTH.unpack(header)
    most = largest(parameters) - LENGTH.size
    if not _KIND.size <= length <= most:
        raise FrameError(
            f"a frame of {length} bytes, where a job of {parameters} parameters has frames of "
            f"{_KIND.size} to {most}"
        )
    return int(length)


def parse(body: bytes | bytearray | memoryview, parameters: int) -> Frame:  # noqa: PLR0911
    """Parse a frame's bytes without its length. Raises FrameError.

    parameters: of the model. Another number of lanes is refused, and so are lanes, rewards and
    weights that are not finite. Lanes are copied.
    """
    if not len(body):
        raise FrameError("an empty frame")
    try:
        kind = Kind(body[0])
    except ValueError:
        raise FrameError(f"a frame of unknown kind {body[0]}") from None
    match kind:
        case Kind.JOIN:
            _, worker, cluster, wanted = _JOIN.unpack(_exactly(body, _JOIN.size, kind))
            if not wanted:
                raise FrameError("JOIN: a model without parameters")
            return Join(worker, cluster, wanted)
        case Kind.OFFER:
            _exactly(body, _KIND.size, kind)
            return Offer()
        case Kind.WEIGHTS:
            return Weights(_lanes(body, _KIND.size, parameters, kind))
        case Kind.PUSH:
            lanes = _lanes(body, _PUSH.size, parameters, kind)
            _, sequence, version, reward, weight, pushed_ns = _PUSH.unpack_from(body)
            if not (math.isfinite(reward) and math.isfinite(weight) and weight > 0):
                raise FrameError(f"PUSH: invalid reward {reward} or weight {weight}")
            return Push(sequence, version, reward, weight, pushed_ns, lanes)
        case Kind.MODEL:
            lanes = _lanes(body, _MODEL.size, parameters, kind)
            _, version, last_sequence = _MODEL.unpack_from(body)
            return Model(version, last_sequence, lanes)
        case Kind.REFUSED:
            if len(body) > _KIND.size + MOST_REASON_BYTES:
                raise FrameError(f"REFUSED: a reason of {len(body) - _KIND.size} bytes")
            return Refused(bytes(body[_KIND.size :]).decode(errors="replace"))
        case Kind.FETCH:
            _exactly(body, _KIND.size, kind)
            return Fetch()


def write(frame: Frame) -> bytes:
    """The bytes of a frame, with its length."""
    match frame:
        case Join(worker, cluster, parameters):
            body = _JOIN.pack(Kind.JOIN, worker, cluster, parameters)
        case Offer():
            body = _KIND.pack(Kind.OFFER)
        case Weights(lanes):
            body = _KIND.pack(Kind.WEIGHTS) + _bytes(lanes)
        case Push(sequence, version, reward, weight, pushed_ns, lanes):
            head = _PUSH.pack(Kind.PUSH, sequence, version, reward, weight, pushed_ns)
            body = head + _bytes(lanes)
        case Model(version, last_sequence, lanes):
            body = _MODEL.pack(Kind.MODEL, version, last_sequence) + _bytes(lanes)
        case Refused(why):
            body = _KIND.pack(Kind.REFUSED) + why.encode()[:MOST_REASON_BYTES]
        case Fetch():
            body = _KIND.pack(Kind.FETCH)
    return LENGTH.pack(len(body)) + body


def _exactly(
    body: bytes | bytearray | memoryview, size: int, kind: Kind
) -> bytes | bytearray | memoryview:
    if len(body) != size:
        raise FrameError(f"{kind.name}: {len(body)} bytes instead of {size}")
    return body


def _lanes(body: bytes | bytearray | memoryview, head: int, parameters: int, kind: Kind) -> Lanes:
    _exactly(body, head + 4 * parameters, kind)
    lanes = np.frombuffer(body, ">f4", parameters, head).astype(np.float32)
    if not np.isfinite(lanes).all():
        raise FrameError(f"{kind.name}: values that are not finite")
    return lanes


def _bytes(lanes: Lanes) -> bytes:
    return lanes.astype(">f4").tobytes()
