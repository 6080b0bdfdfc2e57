"""A group's connection to the switch: all its ranks join the same job."""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import TYPE_CHECKING

from olaf._olaf import OlafError, RefusedError
from olaf.sums.collective import connect_sum
from olaf.sums.program import LARGEST
from olaf.torch.distributed import Store, dist
from olaf.torch.failing import advised
from olaf.torch.options import MAX_JOB, Settings

if TYPE_CHECKING:
    from olaf.sums.collective import SumConnection


ENDED = "olaf/ended"
"""Key of the reason why the ranks did not all join; empty if they did."""

ROOM = (
    ". Each group that sums is a job at the switch, and so is the world. A switch has room for 32 "
    "jobs by default: start it with --set switch.reduce.jobs=64, for example, or let small groups "
    "use gloo, as in new_group(backend='gloo')"
)
"""Advice for a group beside the world."""


def fresh(store: Store, size: int) -> Store:
    """A part of the store for this group alone.

    A store may outlive its group, as that of torchrun does. Then a second group of the name would
    find the addresses of the first one.
    """
    made = (store.add("olaf/groups", 1) - 1) // size
    return dist.PrefixStore(f"olaf/{made}", store)


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
    meeting = _Meeting(store, size, timeout)
    job = meeting.job(settings, is_world=is_world)
    program = meeting.program()
    advice = "" if is_world else ROOM
    try:
        connection = _join(settings, job, program, rank=rank, size=size, advice=advice)
    except dist.DistBackendError as error:
        meeting.fail(str(error))
        raise
    # A rank that left now would be missing for a rank that has not heard yet that the job begins.
    try:
        meeting.wait_until_all_have_joined()
    except dist.DistBackendError:
        connection.close()
        raise
    return connection


def _join(
    settings: Settings, job: int, program: int, *, rank: int, size: int, advice: str
) -> SumConnection:
    where = f"olaf: rank {rank} could not join job {job} at the switch {settings.switch}"
    try:
        connection = connect_sum(
            settings.switch,
            job=job,
            workers=size,
            rank=rank,
            timeout_s=settings.connect_timeout_s,
            deadline_s=settings.deadline_s,
            protocol=settings.protocol,
            **{"program": program, **settings.connection},
        )
    except RefusedError as error:
        raise dist.DistBackendError(f"{where}: {advised(str(error))}{advice}") from error
    except (OlafError, OSError) as error:
        raise dist.DistBackendError(f"{where}: {advised(str(error))}") from error
    if connection.rank != rank:
        connection.close()
        raise dist.DistBackendError(
            f"{where}: another worker has this rank. Does another program use this job? Choose "
            "another OLAF_JOB"
        )
    return connection


class _Meeting:
    """The ranks of a group, while they connect. They meet in torch's store."""

    def __init__(self, store: Store, size: int, timeout: timedelta) -> None:
        self._store = store
        self._size = size
        self._timeout = timeout
        self._here = store.add("olaf/here", 1)

    def job(self, settings: Settings, *, is_world: bool) -> int:
        """The job's number, the same at all ranks. The last rank that arrives chooses it.

        The world's job is `settings.job`. A subgroup's number has a counter in its upper 16 bits,
        so that it differs from every world's number and from the other subgroups of this world.
        """
        key = "olaf/job"
        if self._here == self._size:
            number = settings.job
            if not is_world:
                counter = _shared(self._store).add(f"olaf/subgroups/{settings.job}", 1)
                number += ((counter - 1) % MAX_JOB + 1) << 16
            self._store.set(key, str(number))
        self._store.wait([key], self._timeout)
        return int(self._store.get(key))

    def program(self) -> int:
        """A number that all ranks of this group share, and no other group of any program.

        The last rank that arrives draws it, as it chooses the job. A group that is made again, as
        by an elastic restart, has another one.
        """
        key = "olaf/program"
        if self._here == self._size:
            self._store.set(key, str(secrets.randbelow(LARGEST) + 1))
        self._store.wait([key], self._timeout)
        return int(self._store.get(key))

    def fail(self, reason: str) -> None:
        """Tell the others that this rank could not join."""
        self._store.set(ENDED, reason)

    def wait_until_all_have_joined(self) -> None:
        """Raises DistBackendError with the reason of the rank that could not."""
        if self._store.add("olaf/joined", 1) == self._size:
            self._store.set(ENDED, "")
        self._store.wait([ENDED], self._timeout)
        if reason := self._store.get(ENDED).decode():
            raise dist.DistBackendError(reason)


def _shared(store: Store) -> Store:
    """The store behind all prefixes: the same for all groups of a program."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return store
