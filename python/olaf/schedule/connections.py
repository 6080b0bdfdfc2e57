"""uvicorn's connection, with a place, a deadline for each request and one for slow readers."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from olaf.schedule.places import ADMITTED, Place, Places

REQUEST_S = 10.0
"""Time for a request to come, from its first byte (or the connection's begin) to its last."""
READING_S = 30.0
"""Time for a reader to take some of an answer that waits for it."""


class Connection(H11Protocol):
    """One connection. uvicorn itself limits only the time between two requests."""

    places: ClassVar[Places]

    def __init__(self, *words: Any, **more: Any) -> None:
        super().__init__(*words, **more)
        self._place: Place | None = None
        self._request: asyncio.TimerHandle | None = None
        self._reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place."""
        super().connection_made(transport)
        self._place = self.places.take(self.client[0] if self.client else "", transport.abort)
        if self._place is None:
            transport.abort()
            return
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._stop_request()
        self._stop_reading()
        if self._place is not None:
            self.places.leave(self._place)
            self._place = None
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Some of a request came."""
        before = self.cycle
        super().handle_events()
        if self.cycle is not before and self._place is not None:
            place = self._place
            self.cycle.scope["state"][ADMITTED] = lambda: self.places.admit(place)
        self._look()

    def on_response_complete(self) -> None:
        """An answer went out."""
        super().on_response_complete()
        self._look()

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection, which may have bytes that nobody takes."""
        super().timeout_keep_alive_handler()
        self._look()

    def pause_writing(self) -> None:
        """The reader is slow."""
        super().pause_writing()
        self._reading = self.loop.call_later(READING_S, self._late)

    def resume_writing(self) -> None:
        """The reader took some."""
        self._stop_reading()
        super().resume_writing()

    def _look(self) -> None:
        """Start the deadline where bytes of the client are due, and end it where none are."""
        if self._place is None:
            return
        cycle, is_closing = self.cycle, self.transport.is_closing()
        has_answered = cycle is not None and cycle.response_complete
        is_asked = cycle is not None and not cycle.more_body and not has_answered
        is_between = (
            has_answered
            and self.conn.their_state is h11.IDLE
            and not self.conn.trailing_data[0]  # the begin of the next request
        )
        self._place.busy = is_asked
        if (is_asked or is_between) and not is_closing:
            self._stop_request()
        elif self._request is None:
            self._request = self.loop.call_later(REQUEST_S, self._late)

    def _stop_request(self) -> None:
        if self._request is not None:
            self._request.cancel()
            self._request = None

    def _stop_reading(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _late(self) -> None:
        self.places.closed["late"] += 1
        self.transport.abort()


def connections_in(places: Places) -> type[Connection]:
    """The connections that have their places there."""
    return type("Connection", (Connection,), {"places": places})
