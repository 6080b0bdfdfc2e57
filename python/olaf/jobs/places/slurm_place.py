"""The roles of a job as steps of a Slurm allocation: each is started by ``srun`` on its node.

`Supervisor` treats a step as any other child: srun passes stdin, stdout, signals and the exit code
on. This module only finds the nodes and their addresses.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import subprocess
from collections.abc import Sequence

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.place_settings import SlurmSettings
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Program, Supervisor
from olaf.jobs.train_settings import TrainSettings
from olaf.processes.loopback import loopback

ASK_S = 30.0
"""Time limit in seconds for Slurm to expand a list of nodes."""

ANY_PORT = 9
"""Port for a datagram socket that never sends: connecting it only selects the route."""


class SlurmPlace(Supervisor):
    """See `olaf.jobs.places.Place`."""

    def __init__(self, settings: Settings, *, descriptors: Sequence[int] = ()) -> None:
        train = settings.train
        super().__init__(
            restarts=train.restarts,
            restart_delay_s=train.restart_delay_s,
            descriptors=descriptors,
        )
        self._slurm = settings.slurm
        self._nodes = allocated_nodes()
        self._node_of = deal(role_names(train), self._nodes)
        self._addresses: dict[str, str] = {}

    def start(self, program: Program) -> None:
        """See `Place.start`."""
        super().start(self._as_step(program))

    def change(self, program: Program) -> None:
        """See `Place.change`."""
        super().change(self._as_step(program))

    def host(self, name: str) -> str:
        """See `Place.host`."""
        node = self._node_of[name]
        if node not in self._addresses:
            self._addresses[node] = address_of(node, self._nodes, self._slurm.address)
        return self._addresses[node]

    def cpu_s(self) -> float | None:
        """See `Place.cpu_s`: None, since the CPU time of srun is not that of its processes."""
        return None

    def _as_step(self, program: Program) -> Program:
        step = step_command(program.name, self._node_of[program.name], self._slurm)
        return dataclasses.replace(program, argv=[*step, *program.argv])


def role_names(train: TrainSettings) -> list[str]:
    """All processes of a job, in the order in which they are started."""
    leaves = [f"leaf {number}" for number in range(train.leaves)]
    return ["server", "switch", *leaves, *(f"worker {number}" for number in range(train.workers))]


def deal(names: Sequence[str], nodes: Sequence[str]) -> dict[str, str]:
    """The node of each process: server and switch on the first, then the one with the fewest."""
    load = dict.fromkeys(nodes, 0)
    placed: dict[str, str] = {}
    for name in names:
        node = nodes[0] if name in ("server", "switch") else min(nodes, key=lambda n: load[n])
        placed[name] = node
        load[node] += 1
    return placed


def step_command(name: str, node: str, slurm: SlurmSettings) -> list[str]:
    """How ``srun`` starts one process on one node, on processors of its own."""
    is_worker = name.startswith("worker")
    command = [
        "srun",
        f"--job-name=olaf-{name.replace(' ', '-')}",
        "--nodes=1",
        "--ntasks=1",
        f"--nodelist={node}",
        "--exact",
        f"--cpus-per-task={slurm.cpus_per_worker if is_worker else 1}",
        "--unbuffered",
        "--kill-on-bad-exit=1",
    ]
    if slurm.memory_per_cpu is not None:
        command.append(f"--mem-per-cpu={slurm.memory_per_cpu}")
    if slurm.gpus_per_worker:
        command.append(f"--gres=gpu:{slurm.gpus_per_worker if is_worker else 0}")
    return command


def allocated_nodes() -> list[str]:
    """Names of the nodes of this allocation. Raises RunError outside of an allocation."""
    listed = os.environ.get("SLURM_JOB_NODELIST")
    if not listed or not shutil.which("srun") or not shutil.which("scontrol"):
        raise RunError(
            "--on srun works inside a Slurm allocation only: submit a batch job with "
            "`olaf train --on slurm`, or take an allocation with `salloc` first",
            Exit.USAGE,
        )
    try:
        asked = subprocess.run(
            ["scontrol", "show", "hostnames", listed],
            capture_output=True,
            text=True,
            timeout=ASK_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError(f"`scontrol show hostnames {listed}` failed: {error}") from None
    nodes = asked.stdout.split()
    if not nodes:
        raise RunError(f"`scontrol show hostnames {listed}` named no node")
    return nodes


def address_of(node: str, nodes: Sequence[str], first: str = "auto") -> str:
    """The address of this node, as the other nodes reach it."""
    if len(nodes) == 1:
        return loopback()
    if node == nodes[0] and first != "auto":
        return first
    if node == os.environ.get("SLURMD_NODENAME"):
        # A node's own name is often loopback on itself: use the address of the outgoing route.
        other = next(one for one in nodes if one != node)
        return _way_out(_resolved(other))
    address = _resolved(node)
    if address.startswith("127."):
        raise RunError(
            f"the node {node} has the address {address} here, which no other node can reach: "
            "name the right one with --set slurm.address=ADDRESS",
            Exit.USAGE,
        )
    return address


def _resolved(node: str) -> str:
    try:
        found = socket.getaddrinfo(node, None, socket.AF_INET, socket.SOCK_DGRAM)
    except OSError as error:
        raise RunError(
            f"the node {node} has no address here ({error.strerror}): name that of the first "
            "node with --set slurm.address=ADDRESS",
            Exit.USAGE,
        ) from None
    return str(found[0][4][0])


def _way_out(towards: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((towards, ANY_PORT))
        return str(probe.getsockname()[0])
