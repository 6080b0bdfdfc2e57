"""A switch that sums, and ranks that use it: processes of their own."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commands import message_of
from ports import free_port

PATIENCE_S = 100


@dataclass
class SumSwitch:
    """A running `olaf switch --engines reduce`."""

    address: str
    process: subprocess.Popen[str]

    def kill(self) -> None:
        """Stop it at once, as a crash does."""
        self.process.kill()
        self.process.wait(10)


@contextmanager
def sum_switch(*options: str) -> Iterator[SumSwitch]:
    """A switch on a port of its own choice."""
    argv = (sys.executable, "-m", "olaf", "switch", "--engines", "reduce", "--json")
    process = subprocess.Popen(
        [*argv, "--listen", "127.0.0.1:0", *options], stdout=subprocess.PIPE, text=True
    )
    try:
        yield SumSwitch(message_of(process, "listening")["address"], process)
    finally:
        process.kill()
        process.wait(10)


def _environment(switch: str, more: Mapping[str, str]) -> dict[str, str]:
    alone = {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return {**os.environ, **alone, "OLAF_SWITCH": switch, **more}


def torchrun(
    program: Path,
    *arguments: str,
    ranks: int,
    switch: str,
    torchrun_options: Sequence[str] = (),
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end as a user does, with torchrun."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", str(ranks), *torchrun_options, str(program), *arguments),
        ],
        env=_environment(switch, more),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


@contextmanager
def ranks_of(
    program: Path, *arguments: str, ranks: int, switch: str, **more: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """Ranks without torchrun, which would stop the others when one fails."""
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port(socket.SOCK_STREAM)),
        "WORLD_SIZE": str(ranks),
        **more,
    }
    processes = [
        subprocess.Popen(
            [sys.executable, str(program), *arguments],
            env=_environment(switch, shared | {"RANK": str(rank)}),
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def outcomes(folder: Path, ranks: int) -> list[dict[str, Any]]:
    """What each rank wrote."""
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(ranks)]
