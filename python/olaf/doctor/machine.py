"""This machine: kernel buffers, offloads, links, the key file."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import NamedTuple

from olaf import _olaf, extras
from olaf.doctor.finding import Section
from olaf.files.keyfile import PUBLIC

BUFFER_BYTES = 4 * 2**20
"""A socket buffer that holds the bursts of a few workers. Smaller ones overflow."""
UDP_SEGMENT, UDP_GRO = 103, 104
"""Options of Linux's UDP sockets (linux/udp.h); Python's socket module does not name them."""


class Link(NamedTuple):
    """A network interface."""

    name: str
    mtu_bytes: int
    bits_per_s: float | None
    """None where the interface does not tell, as virtual ones."""


def machine(key_file: str | None) -> Section:
    """What can be known of this machine without sending anything."""
    section = Section("this machine")
    section.measured["version"] = _olaf.__version__
    section.ok("version", f"olaf {_olaf.__version__}")
    _buffers(section)
    _offloads(section)
    _key(section, key_file)
    if not _can_look():
        advice = extras.command("doctor")
        section.note("psutil", f"not installed: links and listeners are not looked at ({advice})")
    return section


def link_of(local_address: str) -> Link | None:
    """The interface that has this address, ``HOST:PORT``; None if no interface has it."""
    if not _can_look():
        return None
    import psutil

    host = local_address.rpartition(":")[0].strip("[]")
    for name, addresses in psutil.net_if_addrs().items():
        if any(address.address.partition("%")[0] == host for address in addresses):
            found = psutil.net_if_stats().get(name)
            if found is None:
                return None
            speed = found.speed if 0 < found.speed < 2**31 else None
            return Link(name, found.mtu, None if speed is None else speed * 1e6)
    return None


def who_listens(host: str, port: int) -> str | None:
    """The local program that has this UDP port; None if there is none, or it may not be seen."""
    if not _can_look():
        return None
    import psutil

    try:
        sockets = psutil.net_connections(kind="udp")
    except (psutil.AccessDenied, PermissionError):
        return None
    for one in sockets:
        at = one.laddr
        if not at or at.port != port or at.ip not in {host, "0.0.0.0", "::"} or one.raddr:
            continue
        try:
            return f"{psutil.Process(one.pid).name()}, process {one.pid}" if one.pid else None
        except psutil.Error:
            return None
    return None


def _can_look() -> bool:
    """Whether psutil is installed. Without it neither links nor other programs are looked at."""
    return extras.installed("psutil")


def _buffers(section: Section) -> None:
    for name, option in (("receive", socket.SO_RCVBUF), ("send", socket.SO_SNDBUF)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
            got = probe.getsockopt(socket.SOL_SOCKET, option)
        # Linux doubles what is asked for: half of it is for its own book-keeping.
        usable = got // 2 if Path("/proc/sys/net/core").exists() else got
        section.measured[f"{name}_buffer_bytes"] = usable
        key = "rmem_max" if name == "receive" else "wmem_max"
        section.check(
            f"{name} buffer",
            f"{usable:,} bytes of a socket at most",
            to_do=f"sudo sysctl -w net.core.{key}={BUFFER_BYTES}: bursts overflow smaller buffers",
            if_bad=usable < BUFFER_BYTES,
        )


def _offloads(section: Section) -> None:
    for name, option in (("GSO", UDP_SEGMENT), ("GRO", UDP_GRO)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.setsockopt(socket.IPPROTO_UDP, option, 1)
                has = True
            except OSError:
                has = False
        section.measured[name.lower()] = has
        if has:
            section.ok(f"UDP {name}", "the kernel has it")
        else:
            section.note(
                f"UDP {name}", "the kernel lacks it: every datagram costs a pass of its own"
            )


def _key(section: Section, key_file: str | None) -> None:
    if key_file is None:
        section.note("key", "none given: works only where switch and server have none either")
        return
    try:
        name, kind, job = _olaf.key_info(key_file)
    except (OSError, ValueError) as error:
        section.fix("key", str(error), "give this user the key file of the job, with mode 600")
        return
    section.measured["key"] = name
    if key_file == PUBLIC:
        section.note("key", f"{key_file}: key {name}, which everybody has: it keeps nobody out")
        return
    of = "any job" if job is None else f"job {job}"
    users = "switches" if kind == "switch" else "workers and servers"
    found = f"{key_file}: key {name} of {of}, for {users}"
    if kind == "switch":
        section.note("key", f"{found}; a worker with it cannot check who made its models")
    else:
        section.ok("key", found)
