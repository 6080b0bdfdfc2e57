"""`olaf_queue_control` against its reference model: random events, several in one cycle."""

from __future__ import annotations

import os
import random

import cocotb
import pytest
from bench import simulate
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer
from control_reference import Arrival, Reference

FATES = ("appended", "merged", "replaced", "filtered", "dropped", "rejected")
COUNT = 4


@pytest.mark.parametrize("slots", [2, 3, 8])
def test_control(slots: int) -> None:
    parameters = {"SLOTS": slots, "FLOW": 5, "WORKER": 3, "COUNT": COUNT}
    simulate("olaf_queue_control", "test_olaf_queue_control", parameters, cycles=6000)


def arrival(chance: random.Random, flows: int) -> Arrival:
    several = chance.choice([2, 3, 7]) if chance.random() < 0.2 else 1
    return Arrival(
        flow=chance.randrange(flows),
        worker=chance.randrange(4),
        contributors=several,
        not_finite=chance.random() < 0.05,
        better=chance.random() < 0.1,
        worse=chance.random() < 0.1,
        no_sum=chance.random() < 0.05,
    )


@cocotb.test()
async def every_cycle_is_what_the_twin_says(dut) -> None:
    slots = int(os.environ["BENCH_SLOTS"])
    chance = random.Random(11)
    reference = Reference(slots, COUNT)
    seen = dict.fromkeys(FATES, 0)
    instants = dict.fromkeys(["append at an end when full", "second entry behind the head"], 0)
    cocotb.start_soon(Clock(dut.clk, 4, unit="ns").start(start_high=False))
    dut.rst.value = 1
    dut.arrive.value = dut.begin_departure.value = dut.end_departure.value = 0
    await RisingEdge(dut.clk)
    await Timer(1, unit="ps")
    load = 0.5
    for cycle in range(int(os.environ["BENCH_CYCLES"])):
        if cycle % 100 == 0:
            load, flows = chance.choice([0.1, 0.5, 1.0]), chance.choice([1, 2, slots, 3 * slots])
        reset = chance.random() < 0.002
        ends, begins = chance.random() < 0.3, chance.random() < 0.4
        comes = chance.random() < load and not reset
        update = arrival(chance, flows)
        dut.rst.value, dut.end_departure.value, dut.begin_departure.value = reset, ends, begins
        dut.arrive.value = comes
        for name in ("flow", "worker", "contributors", "not_finite", "better", "worse", "no_sum"):
            getattr(dut, name).value = int(getattr(update, name))
        await Timer(1, unit="ns")

        head = reference.entries[0] if reference.locked else None
        assert bool(dut.departing.value) == (head is not None)
        if head:
            assert int(dut.departing_slot.value) == head.slot
            assert dut.departing_flow.value.to_unsigned() == head.flow
            assert dut.departing_contributors.value.to_unsigned() == head.contributors
        assert dut.used.value.to_unsigned() == len(reference.entries)

        was_full = len(reference.entries) == slots
        if ends:
            reference.end_departure()
        if begins:
            reference.begin_departure()
        said = [fate for fate in FATES if getattr(dut, fate).value == 1]
        if comes:
            fate, slot, displaced = reference.arrive(update)
            assert said == [fate], f"cycle {cycle}: {said}, the reference model says {fate}"
            if slot is not None:
                assert int(dut.slot.value) == slot
            if fate == "replaced":
                assert dut.displaced.value.to_unsigned() == displaced
            seen[fate] += 1
            instants["append at an end when full"] += fate == "appended" and was_full
            locked_flow = reference.entries[0].flow if reference.locked else None
            behind = fate == "appended" and locked_flow == update.flow
            instants["second entry behind the head"] += behind
        else:
            assert said == []
        if reset:
            reference = Reference(slots, COUNT)
        await RisingEdge(dut.clk)
        await Timer(1, unit="ps")
    assert all(seen.values()), seen
    assert all(instants.values()), instants
