"""The processes of a plain TCP job, the counterpart of `olaf.jobs.roles`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from olaf.processes.lines import Control, Reporter
from olaf.processes.serving import serve


def run_tcp_server(told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    """Serve until asked to stop; then write the model."""
    from olaf.tcp.server import ServerConfig, TcpServer

    server = TcpServer(ServerConfig(**told["tcp"]))

    def save() -> None:
        for file in filter(None, (told["model_file"], told["tcp"]["checkpoint"])):
            server.save(Path(file))

    def hand_over(job: int) -> None:
        """Write the model and report the file, as `olaf.jobs.roles.run_server` does."""
        file, why = Path(told["save_folder"]) / f"model-{job}.npz", {}
        try:
            file.unlink(missing_ok=True)
            server.save(file)
        except (OSError, ValueError) as error:
            why = {"reason": f"{file}: {getattr(error, 'strerror', None) or error}"}
        is_there = not why and file.exists()
        reporter.say("saved", job=job, file=str(file) if is_there else None, **why)

    serve(server, told["every_s"], reporter, control, before_stop=save, hand_over=hand_over)


def run_relay(told: Mapping[str, Any], reporter: Reporter, control: Control) -> None:
    """Forward until asked to stop."""
    from olaf.tcp.relay import Relay, RelayConfig

    serve(Relay(RelayConfig(**told["tcp"])), told["every_s"], reporter, control)
