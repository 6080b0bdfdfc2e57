"""`fp32_lanes` against numpy's f32, in both widths, and after synthesis."""

from __future__ import annotations

import os
import random
import struct

import cocotb
import numpy as np
import pytest
from bench import simulate
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from netlist import netlist

LATENCY = int(os.environ.get("BENCH_REGISTERS", "0")).bit_count()
NAN = 0x7FC0_0000
# Both zeros, the ends of the subnormal and of the normal numbers, ties, infinities, NaNs.
MAGNITUDES = [
    *(0x0, 0x1, 0x2, 0x3, 0x40_0000, 0x7F_FFFE, 0x7F_FFFF, 0x80_0000, 0x80_0001, 0xFF_FFFF),
    *(0x100_0000, 0x3380_0000, 0x3380_0001, 0x3400_0000, 0x3F80_0000, 0x3F80_0001, 0x3FFF_FFFF),
    *(0x4000_0000, 0x4B80_0000, 0x4B7F_FFFF, 0x7300_0000, 0x7E80_0000, 0x7F00_0000),
    *(0x7F7F_FFFE, 0x7F7F_FFFF, 0x7F80_0000, 0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF),
]
CORNERS = [sign | bits for bits in MAGNITUDES for sign in (0, 0x8000_0000)]


@pytest.mark.parametrize(("lanes", "registers"), [(8, 63), (16, 36)])
def test_lanes(lanes: int, registers: int) -> None:
    simulate("fp32_lanes", "test_fp32_lanes", {"LANES": lanes, "REGISTERS": registers})


def software(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The bits of the sums of two arrays of bits; every NaN is the one of the hardware."""
    with np.errstate(all="ignore"):
        total = a.view(np.float32) + b.view(np.float32)
    return np.where(np.isnan(total), np.uint32(NAN), total.view(np.uint32))


def operands(chance: np.random.Generator, lanes: int, cycles: int) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of corners; then random bits, and pairs whose exponents are near each other."""
    pairs = np.array([(a, b) for a in CORNERS for b in CORNERS], dtype=np.uint32)
    size = lanes * cycles
    anything = chance.integers(0, 1 << 32, (size, 2), dtype=np.uint32)
    near = anything.copy()
    exponent = (near[:, 0] >> 23) & 0xFF
    moved = np.clip(exponent.astype(int) + chance.integers(-27, 28, size), 0, 254)
    near[:, 1] = (near[:, 1] & 0x807F_FFFF) | (moved.astype(np.uint32) << 23)
    opposite = near.copy()
    opposite[:, 1] = near[:, 0] ^ 0x8000_0000 ^ chance.integers(0, 4, size, dtype=np.uint32)
    every = np.concatenate([pairs, anything, near, opposite])
    every = every[: len(every) // lanes * lanes].reshape(-1, lanes, 2)
    return every[:, :, 0].copy(), every[:, :, 1].copy()


def beat(words: np.ndarray) -> int:
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


@cocotb.test()
async def sums_are_those_of_the_software(dut) -> None:
    lanes = len(dut.add)
    cycles = int(os.environ.get("BENCH_CYCLES", "1500"))
    a, b = operands(np.random.default_rng(7), lanes, cycles)
    chance = random.Random(3)
    keep = [chance.getrandbits(lanes) if chance.random() < 0.2 else (1 << lanes) - 1 for _ in a]
    total = software(a, b)
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.enable.value = 1
    for cycle in range(len(a) + LATENCY):
        now = min(cycle, len(a) - 1)
        dut.a.value, dut.b.value, dut.add.value = beat(a[now]), beat(b[now]), keep[now]
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
        done = cycle + 1 - LATENCY
        if not 0 <= done < len(a):
            continue
        added = np.array([keep[done] >> lane & 1 for lane in range(lanes)], dtype=bool)
        expected = np.where(added, total[done], a[done])
        assert dut.sum.value.to_unsigned() == beat(expected), describe(a[done], b[done], expected)
        infinite = added & ((expected >> 23 & 0xFF) == 0xFF)
        flags = sum(1 << lane for lane in range(lanes) if infinite[lane])
        assert dut.not_finite.value.to_unsigned() == flags


def describe(a: np.ndarray, b: np.ndarray, expected: np.ndarray) -> str:
    rows = zip(a, b, expected, strict=True)
    return "; ".join(
        f"{x:#x} + {y:#x} = {z:#x} ({struct.unpack('f', struct.pack('I', z))[0]})"
        for x, y, z in rows
    )


def test_after_synthesis() -> None:
    """The netlist of Xilinx cells adds as the source does."""
    parameters = {"LANES": 2, "REGISTERS": 36}
    names = ["pipe", "scaled_sum", "multiply_add", "fp_add", "fp32_add", "fp32_lanes"]
    simulate(
        "fp32_lanes",
        "test_fp32_lanes",
        {"REGISTERS": 36},
        sources=netlist("fp32_lanes", names, parameters, "xcup"),
        cycles=200,
    )
