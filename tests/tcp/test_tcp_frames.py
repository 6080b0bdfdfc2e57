"""Frames of the plain TCP server: what is written is read back, what cannot be is refused."""

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olaf.tcp import frames
from olaf.tcp.frames import (
    LENGTH,
    Fetch,
    Frame,
    FrameError,
    Join,
    Kind,
    Lanes,
    Model,
    Offer,
    Push,
    Refused,
    Weights,
)

PARAMETERS = 3

finite = st.floats(-(2.0**100), 2.0**100, width=32)
lanes = st.lists(finite, min_size=PARAMETERS, max_size=PARAMETERS).map(
    lambda values: np.array(values, np.float32)
)
id_ = st.integers(0, 2**32 - 1)
long = st.integers(0, 2**63 - 1)
frame = st.one_of(
    st.builds(Join, id_, id_, st.integers(1, 2**32 - 1)),
    st.just(Offer()),
    st.just(Fetch()),
    st.builds(Weights, lanes),
    st.builds(
        Push, long, long, st.floats(-1e9, 1e9), st.floats(1e-6, 1e6), long, lanes,
    ),
    st.builds(Model, long, st.integers(-1, 2**62), lanes),
    st.builds(Refused, st.text(max_size=100)),
)  # fmt: skip


def same(one: Frame, other: Frame) -> bool:
    fields = zip(vars(one).values(), vars(other).values(), strict=True)
    return type(one) is type(other) and all(np.array_equal(a, b) for a, b in fields)


@given(frame)
def test_what_is_written_is_read_back(sent: Frame) -> None:
    data = frames.write(sent)
    assert len(data) <= frames.largest(PARAMETERS)
    length = frames.check_length(data[: LENGTH.size], PARAMETERS)
    assert length == len(data) - LENGTH.size
    assert same(frames.parse(data[LENGTH.size :], PARAMETERS), sent)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_refused_by_name(data: bytes) -> None:
    with contextlib.suppress(FrameError):
        assert type(frames.parse(data, PARAMETERS)).__name__.upper() in Kind.__members__


@given(frame, st.data())
def test_a_frame_with_a_byte_changed_or_missing_is_never_a_crash(
    sent: Frame, data: st.DataObject
) -> None:
    body = bytearray(frames.write(sent)[LENGTH.size :])
    at = data.draw(st.integers(0, len(body) - 1))
    if data.draw(st.booleans()):
        body[at] ^= data.draw(st.integers(1, 255))
    else:
        del body[at]
    with contextlib.suppress(FrameError):
        assert type(frames.parse(body, PARAMETERS)).__name__.upper() in Kind.__members__


@given(st.integers(0, 2**32 - 1), st.integers(0, 1000))
def test_no_length_is_believed_that_the_job_cannot_have(length: int, parameters: int) -> None:
    header = LENGTH.pack(length)
    possible = 1 <= length <= frames.largest(parameters) - LENGTH.size
    if possible:
        assert frames.check_length(header, parameters) == length
    else:
        with pytest.raises(FrameError, match=f"a frame of {length} bytes"):
            frames.check_length(header, parameters)


def push(values: Lanes, **more: float) -> bytes:
    given_ = {"reward": 1.0, "weight": 1.0, **more}
    frame = Push(0, 1, given_["reward"], given_["weight"], 5, values)
    return frames.write(frame)[LENGTH.size :]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "an empty frame"),
        (b"\x63", "unknown kind 99"),
        (bytes([Kind.JOIN]) + b"abc", "JOIN: 4 bytes instead of 13"),
        (struct.pack(">BIII", Kind.JOIN, 1, 2, 0), "a model without parameters"),
        (bytes([Kind.OFFER, 0]), "OFFER: 2 bytes instead of 1"),
        (push(np.zeros(2, np.float32)), "PUSH: 49 bytes instead of 53"),
        (push(np.array([0, np.nan, 0], np.float32)), "PUSH: values that are not finite"),
        (push(np.zeros(3, np.float32), reward=float("inf")), "reward inf"),
        (push(np.zeros(3, np.float32), weight=0.0), "weight 0.0"),
        (bytes([Kind.REFUSED]) + b"x" * 1001, "REFUSED: a reason of 1001 bytes"),
    ],
)
def test_each_thing_that_can_be_wrong_has_its_name(body: bytes, said: str) -> None:
    with pytest.raises(FrameError, match=said):
        frames.parse(body, PARAMETERS)
