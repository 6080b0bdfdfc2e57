"""A group's connection to the switch: all its ranks join the same job."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from olaf._olaf import OlafError
from olaf.sums.collective import connect_sum
from olaf.torch.distributed import Store, dist
from olaf.torch.options import MAX_JOB, Settings

if TYPE_CHECKING:
    from olaf.sums.collective import SumConnection


def connect(
    settings: Settings,
    store: Store,
    *,
    rank: int,
    size: int,
    timeout: timedelta,
    is_world: bool,
) -> SumConnection:
    """Wait until all ranks of the group are here; then join the group's job at the switch.

    Every rank calls this. It waits for the other ranks as long as the group's time-out, and for the
    switch as long as `connect_timeout_s`. Raises DistBackendError, which names the switch.
    """
    job = _agree_on_job(settings, store, size=size, timeout=timeout, is_world=is_world)
    try:
        connection = connect_sum(
            settings.switch,
            job=job,
            workers=size,
            rank=rank,
            timeout_s=settings.connect_timeout_s,
            deadline_s=settings.deadline_s,
            protocol=settings.protocol,
            **settings.connection,
        )
    except (OlafError, OSError) as error:
        raise dist.DistBackendError(
            f"olaf: rank {rank} could not join job {job} at the switch {settings.switch}: {error}"
        ) from error
    if connection.rank != rank:
        connection.close()
        raise dist.DistBackendError(
            f"olaf: the switch {settings.switch} has another worker as rank {rank} of job {job}. "
            f"Does another program use this job? Choose another OLAF_JOB"
        )
    return connection


def _agree_on_job(
    settings: Settings, store: Store, *, size: int, timeout: timedelta, is_world: bool
) -> int:
    """The job's number, the same at all ranks. The last rank that arrives chooses it.

    The world's job is `settings.job`. A subgroup's number has a counter in its upper 16 bits, so
    that it differs from every world's number and from the other subgroups of this world.
    """
    here = store.add("olaf/here", 1)
    # A store may outlive its group. Then the second group of that name makes the second round.
    key = f"olaf/job/{(here - 1) // size}"
    if here % size == 0:
        number = settings.job
        if not is_world:
            counter = _shared(store).add(f"olaf/subgroups/{settings.job}", 1)
            number += ((counter - 1) % MAX_JOB + 1) << 16
        store.set(key, str(number))
    store.wait([key], timeout)
    return int(store.get(key))


def _shared(store: Store) -> Store:
    """The store behind all prefixes: the same for all groups of a program."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return store
