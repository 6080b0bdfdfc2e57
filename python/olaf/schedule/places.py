"""The connections of the service, and which of them gives way when there are too many.

A client that opens connections and says nothing must keep nobody out. So a connection is a
stranger's until a request on it was admitted. Strangers have a part of the places, one address has
a part of theirs, and their oldest connection gives way to the next one. An admitted connection
gives way only where all places are taken, and never while its request is answered.
"""

from __future__ import annotations

import ipaddress
import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

ADMITTED = "olaf.admitted"
"""Key of a request's state: what to call when the request is admitted."""

MOST_CONNECTIONS = 4096
MOST_STRANGERS = 256
SPARE_FILES = 128
"""Files of the process that are no connections: the store, the loop, the connections that were
accepted a moment ago and have no place yet."""
V6_SITE = 64
"""Bits of an IPv6 address that a site cannot choose at will."""


@dataclass(eq=False)
class Place:
    """The place of one connection."""

    reader: str
    end: Callable[[], None]
    """Ends the connection at once."""
    admitted: bool = False
    busy: bool = False
    """Its whole request came, and its answer did not go yet."""


class Places:
    """All places. They are counted and given in one thread, that of the event loop."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._most_strangers = max(min(MOST_STRANGERS, most // 4), 1)
        self._most_of_one = max(self._most_strangers // 4, 1)
        # In the order in which they came.
        self._strangers: dict[str, dict[Place, None]] = {}
        self._admitted: dict[Place, None] = {}
        self.closed: Counter[str] = Counter(gave_way=0, full=0, late=0, no_files=0)
        """Number of connections that the service closed, by reason."""

    def __len__(self) -> int:
        return len(self._admitted) + self._stranger_count()

    def take(self, address: str, end: Callable[[], None]) -> Place | None:
        """A place for a connection from that address. None: close it at once."""
        reader = one_reader(address)
        if not self._has_room(reader):
            self.closed["full"] += 1
            return None
        place = Place(reader, end)
        self._strangers.setdefault(reader, {})[place] = None
        return place

    def admit(self, place: Place) -> None:
        """A request on it has a token, or needs none."""
        if not place.admitted and self._remove(place):
            place.admitted = True
            self._admitted[place] = None

    def leave(self, place: Place) -> None:
        """The connection has ended."""
        self._remove(place)

    def _stranger_count(self) -> int:
        return sum(map(len, self._strangers.values()))

    def _has_room(self, reader: str) -> bool:
        own = self._strangers.get(reader, {})
        if len(own) >= self._most_of_one:
            return self._gives_way(next(iter(own)))
        is_full = len(self) >= self.most
        idle = (
            next((place for place in self._admitted if not place.busy), None) if is_full else None
        )
        if idle is not None:
            return self._gives_way(idle)
        if is_full or self._stranger_count() >= self._most_strangers:
            # Of several that have as many, the first.
            greediest = max(self._strangers.values(), key=len, default={})
            return bool(greediest) and self._gives_way(next(iter(greediest)))
        return True

    def _gives_way(self, place: Place) -> bool:
        self._remove(place)
        self.closed["gave_way"] += 1
        place.end()
        return True

    def _remove(self, place: Place) -> bool:
        if place in self._admitted:
            del self._admitted[place]
            return True
        own = self._strangers.get(place.reader, {})
        if place not in own:
            return False
        del own[place]
        if not own:
            del self._strangers[place.reader]
        return True


def one_reader(address: str) -> str:
    """Who counts as one: an IPv4 address, or the network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, V6_SITE), strict=False))


def most_connections() -> int:
    """How many connections this process can have beside its other files.

    It raises its own limit of open files as far as the system lets it.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + SPARE_FILES
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return MOST_CONNECTIONS
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    except (OSError, ValueError):
        files = soft  # a system with one more limit
    return max(files - SPARE_FILES, files // 2)
