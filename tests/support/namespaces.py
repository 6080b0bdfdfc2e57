"""Machines in a row, of this system's network namespaces, with links as a test wants them."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack

import pytest


class Namespaces:
    """Machines in a row, worker - (router -) server, of this system's network namespaces."""

    def __init__(self, stack: ExitStack, mtus: list[int]) -> None:
        self.names = [f"olaf{os.getpid() % 10_000}n{at}" for at in range(len(mtus) + 1)]
        for name in self.names:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            ip("-n", name, "link", "set", "lo", "up")
        for at, mtu in enumerate(mtus):
            left, right = self.names[at], self.names[at + 1]
            # A plain `l` would be short for `link`.
            made = ("link", "add", "name", "l", "netns", left, "type", "veth")
            ip(*made, "peer", "name", "r", "netns", right)
            for name, link, host in ((left, "l", 1), (right, "r", 2)):
                ip("-n", name, "addr", "add", f"10.77.{at}.{host}/24", "dev", link)
                ip("-n", name, "link", "set", "dev", link, "mtu", str(mtu), "up")
        if len(mtus) > 1:
            ip("-n", self.names[0], "route", "add", "default", "via", "10.77.0.2")
            ip("-n", self.names[2], "route", "add", "default", "via", "10.77.1.1")
            self.run(1, "sysctl", "-qw", "net.ipv4.ip_forward=1").wait()
        self.server_host = f"10.77.{len(mtus) - 1}.2"

    def shape(self, at: int, link: str, *how: str) -> None:
        """Makes what a machine sends on a link slow or lossy: ``delay 50ms loss 5%`` of `tc netem`.

        Skips the test where the kernel has no netem.
        """
        inside = ["ip", "netns", "exec", self.names[at], "tc", "qdisc", "add", "dev", link]
        made = subprocess.run([*inside, "root", "netem", *how], check=False, capture_output=True)
        if made.returncode:
            pytest.skip(f"no `tc netem` here: {made.stderr.decode().strip()}")

    def run(self, at: int, *command: str) -> subprocess.Popen[str]:
        inside = ["ip", "netns", "exec", self.names[at], *command]
        return subprocess.Popen(inside, stdout=subprocess.PIPE, text=True)


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def namespaces(stack: ExitStack, mtus: list[int]) -> Namespaces:
    """Machines in a row. Skips the test where this user may not make them."""
    try:
        return Namespaces(stack, mtus)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this machine makes no network namespaces for us: {error}")
