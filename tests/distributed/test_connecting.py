"""A group connects, also when another one of its name was before it, or a rank cannot join."""

from __future__ import annotations

import importlib
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from summing import outcomes, sum_switch, torchrun

pytestmark = [pytest.mark.torch, pytest.mark.timeout(150)]

PROGRAM = Path(__file__).parent / "programs" / "again.py"
RANKS = 3


def test_a_group_that_is_destroyed_at_once_keeps_nobody_waiting(tmp_path: Path) -> None:
    """The second group of a name, too: the store of torchrun still has the keys of the first."""
    with sum_switch() as switch:
        ran = torchrun(PROGRAM, str(tmp_path), ranks=RANKS, switch=switch.address)
    assert ran.returncode == 0, ran.stderr[-3000:]
    for longest in outcomes(tmp_path, RANKS):
        # A worker that is missing is waited for 30 s.
        assert float(longest) < 20  # type: ignore[arg-type]


class Joined:
    """A connection of rank 1."""

    rank = 1

    def __init__(self) -> None:
        self.closed = False

    def close(self) -> None:
        self.closed = True


def test_the_others_hear_why_a_rank_could_not_join(monkeypatch: pytest.MonkeyPatch) -> None:
    from olaf import RefusedError
    from olaf.torch import connecting
    from olaf.torch.options import Settings

    dist: Any = importlib.import_module("torch.distributed")
    joined = Joined()

    def join(*_: object, rank: int, **__: object) -> Joined:
        if rank == 0:
            raise RefusedError("the switch has no place for it")
        return joined

    monkeypatch.setattr(connecting, "connect_sum", join)
    store, said = dist.HashStore(), dict[int, str]()

    def connect(rank: int) -> None:
        with pytest.raises(dist.DistBackendError) as error:
            connecting.connect(
                Settings(switch="here:1"),
                store,
                rank=rank,
                size=2,
                timeout=timedelta(seconds=30),
                is_world=True,
            )
        said[rank] = str(error.value)

    threads = [threading.Thread(target=connect, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert said[0] == said[1]
    assert "rank 0 could not join job 1" in said[0]
    assert "the switch has no place for it" in said[0]
    assert joined.closed


def test_the_ranks_of_a_group_share_a_program_and_no_other_group_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from olaf.torch import connecting
    from olaf.torch.options import Settings

    dist: Any = importlib.import_module("torch.distributed")
    programs: list[int] = []

    class Here(Joined):
        def __init__(self, rank: int) -> None:
            super().__init__()
            self.rank = rank

    def join(*_: object, rank: int, program: int, **__: object) -> Here:
        programs.append(program)
        return Here(rank)

    monkeypatch.setattr(connecting, "connect_sum", join)
    shared = dist.HashStore()
    for group in range(3):
        store = dist.PrefixStore(str(group), shared)

        def connect(rank: int, store: Any = store) -> None:
            connecting.connect(
                Settings(switch="here:1"),
                store,
                rank=rank,
                size=2,
                timeout=timedelta(seconds=30),
                is_world=True,
            )

        threads = [threading.Thread(target=connect, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert programs[0::2] == programs[1::2]
    assert len(set(programs)) == 3
    assert all(0 < program < 2**64 for program in programs)
