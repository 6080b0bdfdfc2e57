"""The keys of a run: its driver reads or makes them, and hands them to every process it starts.

A process gets the text of its key in the first line of its stdin (on Ray: in the first call of its
actor), never in its arguments, its environment, or a file. So the path of a key need not exist on
other machines, and a run on several machines has a key without anybody making one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.errors.usage import ConfigurationError
from olaf.files.keyfile import PUBLIC, key_file
from olaf.jobs.settings import Settings
from olaf.processes.loopback import LOOPBACK


@dataclass(frozen=True)
class RunKeys:
    """Texts of key files, for each role; they are secret."""

    server: list[str] = field(default_factory=list, repr=False)
    switch: list[str] = field(default_factory=list, repr=False)
    worker: str | None = field(default=None, repr=False)
    insecure: frozenset[str] = frozenset()
    """Roles that somebody lets listen beyond this machine without a key: server, switch."""

    def core(self, role: str, core: str) -> str:
        """The JSON of a switch or a server, with its keys in place of paths."""
        texts = self.server if role == "server" else self.switch
        fields = json.loads(core)
        fields["insecure"] = fields["insecure"] or role in self.insecure
        return json.dumps(fields | {"key_files": [], "keys": texts})

    def client(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of a worker, with its key in place of a path."""
        if self.worker is None:
            return options
        rest = {key: value for key, value in options.items() if key != "key_file"}
        return rest | {"key": self.worker}


def run_keys(settings: Settings) -> RunKeys:
    """The keys that a run is given, or a new one where its roles listen beyond this machine.

    The keys of ``[server]``, ``[switch]`` and ``[worker]`` are theirs; `train.key_file`, or
    OLAF_KEY_FILE, is for those that name none.

    Raises ConfigurationError for a file that is no private key, and RunError for a plain TCP server
    that other machines can reach.
    """
    from olaf import _olaf

    train = settings.train
    insecure = insecure_roles(settings)
    if train.transport == "tcp":
        if listens_beyond(settings) and not insecure:
            raise RunError(
                "`train.transport` = 'tcp' has no keys, and `server.listen` or `switch.listen` can "
                "be reached from other machines: listen on 127.0.0.1, or say --insecure",
                Exit.USAGE,
            )
        return RunKeys(insecure=insecure)
    own = key_file(train.key_file)
    shared = _read(own)
    if needs_key(settings):
        shared = _olaf.new_key_text(settings.worker.job)
    server = [text for file in settings.server.key_files if (text := _read(file))]
    switch = [text for file in settings.switch.key_files if (text := _read(file))]
    server = server or ([shared] if shared else [])
    switch = switch or [_olaf.switch_key_text(text) for text in server]
    return RunKeys(server, switch, _read(settings.worker.key_file) or shared, insecure)


def _read(file: str | None) -> str | None:
    from olaf import _olaf

    try:
        return None if file is None else _olaf.key_text(file)
    except (ValueError, OSError) as error:
        raise ConfigurationError(f"key_file: {error}") from None


def needs_key(settings: Settings) -> bool:
    """Whether roles listen beyond this machine, and nobody has named a key or done without."""
    named = (settings.server.key_files, settings.switch.key_files, settings.worker.key_file)
    given = any(named) or key_file(settings.train.key_file) is not None
    return listens_beyond(settings) and not given and not insecure_roles(settings)


def insecure_roles(settings: Settings) -> frozenset[str]:
    """The roles that somebody lets listen beyond this machine without a key."""
    said = {"server": settings.server.insecure, "switch": settings.switch.insecure}
    return frozenset(role for role, own in said.items() if own or settings.train.insecure)


def listens_beyond(settings: Settings) -> bool:
    """Whether a role of this run listens where other machines may reach it."""
    if settings.train.on != "local":
        return True
    listens = (settings.server.listen, settings.switch.listen)
    return any(listen.rpartition(":")[0] not in LOOPBACK for listen in listens)


def absolute(settings: Settings) -> Settings:
    """The settings with the run's key file as a path that is good in every folder."""
    own = key_file(settings.train.key_file)
    if own is None or own == PUBLIC:
        return settings
    train = settings.train.model_copy(update={"key_file": str(Path(own).absolute())})
    return settings.model_copy(update={"train": train})
