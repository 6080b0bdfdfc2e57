"""The page's table of calls, types and protocols is what the code does."""

from __future__ import annotations

import importlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

PAGE = Path(__file__).parents[2] / "docs" / "torch-distributed.md"


def test_the_table_of_the_page_is_what_the_backend_asks() -> None:
    from olaf.torch.paths import table

    assert "\n".join(table()) in PAGE.read_text(encoding="utf-8"), "\n".join(table())


def test_gloo_does_and_refuses_what_the_table_says() -> None:
    from olaf.torch import paths

    torch: Any = importlib.import_module("torch")
    dist: Any = importlib.import_module("torch.distributed")
    gloo = dist.ProcessGroupGloo(dist.HashStore(), 0, 1, timedelta(seconds=30))
    for reduction in (*paths.REDUCTIONS, None):
        for dtype in paths.TYPES:
            tensor = torch.ones(3).to(dtype)
            try:
                if reduction is None:
                    gloo.broadcast(tensor, 0).wait()
                else:
                    options = dist.AllreduceOptions()
                    options.reduceOp = getattr(dist.ReduceOp, reduction)
                    gloo.allreduce([tensor], options).wait()
                    options = dist.ReduceScatterOptions()
                    options.reduceOp = getattr(dist.ReduceOp, reduction)
                    gloo._reduce_scatter_base(tensor.clone(), tensor, options).wait()
                found = paths.GLOO
            except (RuntimeError, ValueError):
                found = paths.REFUSED
            assert found == paths.by_gloo(reduction, dtype), (reduction, dtype)


def test_the_first_line_names_switch_protocol_and_types() -> None:
    from olaf.torch.paths import announcement

    said = announcement(4, "10.0.0.1:5555", 7, "trio")
    assert said == (
        "olaf: 4 ranks sum through the switch 10.0.0.1:5555 (protocol trio, job 7): all_reduce, "
        "reduce_scatter of float32; all else goes by gloo"
    )


STATS = {"address": "10.0.0.2:4000", "round_trip_ns": 200_000}


def test_the_second_line_predicts_a_bucket_here_and_by_gloo(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from olaf.doctor.machine import Link
    from olaf.torch import expecting

    asked: list[str] = []

    def link_of(address: str) -> Link:
        asked.append(address)
        return Link("eth0", 9000, 1e9)

    monkeypatch.setattr(expecting, "link_of", link_of)
    # 25 MiB are 209.7 ms of the link; a ring carries 1.5 times that, in 6 turns.
    assert expecting.expected(STATS, 4) == (
        "25 MiB (a bucket of DDP) take about 209.9 ms through the switch and 315.2 ms by gloo, if "
        "the links are the limit (each rank and each port of the switch as fast as eth0, 1.00 "
        "Gbit/s)"
    )
    assert asked == [STATS["address"]]
    # Two ranks send each other what they would send a switch.
    assert "209.9 ms through the switch and 209.9 ms by gloo" in expecting.expected(STATS, 2)


@pytest.mark.parametrize("name", ["lo", None])
def test_an_unknown_rate_is_said_with_what_to_do(
    name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from olaf.cli.doctor import SIZE
    from olaf.doctor.machine import Link
    from olaf.torch import expecting

    link = Link(name, 65536, None) if name else None
    monkeypatch.setattr(expecting, "link_of", lambda _: link)
    said = expecting.expected(STATS, 4)
    assert ("the interface lo" if name else "this machine's link") in said
    assert "olaf doctor --model-bytes 25MiB --workers 4 --link RATE" in said
    assert SIZE.convert("25MiB", None, None) == expecting.BUCKET_BYTES
