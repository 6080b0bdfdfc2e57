"""A board like rtl/boards/u55c, with the queue of the engine (`olaf._olaf.Queue`)."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from p4chain import ANSWER, BYPASS, NAMES, OWN, UPDATE

from olaf._olaf import Queue

UPDATE_HEADER = struct.Struct(">4sBBHIIIIIIIIQQIIIIddB3xI")
assert UPDATE_HEADER.size == 96


@dataclass
class Board:
    """Updates go through the queue, all else around it, with the status filled in."""

    session: int = 77
    slots: int = OWN.slots
    departures: int = 0
    """differs: the queue in hardware numbers all departures, and a switch those of each flow."""
    fates: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = Queue(slots=self.slots)
        self.segments: dict[int, int] = {}
        """Segments of the model, of each entry."""

    def status(self) -> dict[str, int]:
        """The status of this moment, as it stands in the user signal."""
        return {
            "used": self.queue.used, "active_clusters": OWN.active_clusters,
            "slots": self.slots, "round_us": OWN.round_us,
        }  # fmt: skip

    def around(self, user: dict[str, int], frame: bytes) -> tuple[dict[str, int], bytes]:
        assert user["class"] in {BYPASS, ANSWER}
        return {**user, **self.status()}, frame

    def arrive(self, user: dict[str, int], datagram: bytes) -> None:
        assert user["class"] == UPDATE
        (magic, version, kind, flags, job, cluster, worker, _session, sequence, _hop_sequence,
         segment, segments, oldest, newest, version_oldest, version_newest, contributors, lanes,
         weight, reward, hops, _flow_sequence) = UPDATE_HEADER.unpack(datagram[:96])  # fmt: skip
        assert (magic, version, kind, flags) == (b"OLAF", 3, 1, 0)
        assert len(datagram) == 96 + 4 * lanes, "a datagram without anything behind its lanes"
        fate, entry = self.queue.arrive(
            np.frombuffer(datagram[96:], "<f4"),
            worker=worker, sequence=sequence, cluster=cluster, job=job, segment=segment,
            segments=segments, contributors=contributors, weight=weight, reward=reward,
            generated_ns=(oldest, newest), versions=(version_oldest, version_newest), hops=hops,
        )  # fmt: skip
        self.fates.append(fate)
        if fate in {"appended", "replaced"}:
            assert entry is not None
            self.segments[entry] = segments

    def begin_departure(self) -> tuple[dict[str, int], bytes] | None:
        """Locks the head; the update that it leaves as, and its user signal."""
        if (entry := self.queue.begin_departure()) is None:
            return None
        number, self.departures = self.departures, self.departures + 1
        header = UPDATE_HEADER.pack(
            *(b"OLAF", 3, 1, 0, entry["job"], entry["cluster"], entry["worker"], self.session),
            *(entry["sequence"], number, entry["segment"], self.segments[entry["entry"]]),
            *(*entry["generated_ns"], *entry["versions"], entry["contributors"]),
            *(len(entry["lanes"]), entry["weight"], entry["reward"]),
            *(min(entry["hops"] + 1, 255), number),
        )
        user = {**dict.fromkeys(NAMES, 0), "class": UPDATE, **self.status()}
        return user, header + entry["lanes"].astype("<f4").tobytes()

    def end_departure(self) -> None:
        self.queue.end_departure()

    def drain(self) -> list[tuple[dict[str, int], bytes]]:
        """All that waits leaves."""
        left = []
        while (departing := self.begin_departure()) is not None:
            left.append(departing)
            self.end_departure()
        return left
