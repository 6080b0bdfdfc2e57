"""The address of this machine for its own processes."""

from __future__ import annotations

import functools
import socket

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
"""How a host is written that other machines cannot reach."""


@functools.cache
def loopback() -> str:
    """``127.0.0.1``, or ``[::1]`` on a host with IPv6 alone, as a host is written before a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind(("127.0.0.1", 0))
        except OSError:
            return "[::1]"
    return "127.0.0.1"
