"""The plain TCP parameter server: one connection per worker, each update applied at arrival.

The answer to a push is the newest model. An invalid frame ends its connection with a REFUSED that
gives the reason; the reason is counted and reported as an event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from olaf.tcp import frames
from olaf.tcp.endpoint import TcpEndpoint, within
from olaf.tcp.frames import Fetch, Frame, FrameError, Join, Offer, Push, Refused, Weights
from olaf.tcp.job import Job, RefusedError
from olaf.tcp.rule import RuleConfig

JOIN_S = 10.0
"""Seconds for a new connection to send its JOIN."""

UNKNOWN = 16
"""Most connections that have not sent a JOIN."""

CHUNK_BYTES = 1 << 16


@dataclass(frozen=True)
class ServerConfig:
    """Configuration of the server; JSON-able."""

    listen: str
    job: int
    rule: dict[str, Any]
    """Fields of `olaf.tcp.rule.RuleConfig`."""
    most_parameters: int
    most_workers: int
    timeout_s: float
    """Time limit in seconds for the next bytes of a frame, or for sending an answer."""
    idle_s: float
    """Seconds that a worker may push nothing."""
    checkpoint: str | None = None
    checkpoint_every_s: float = 10.0
    fresh: bool = False
    buffer_bytes: int | None = field(default=None)


class TcpServer(TcpEndpoint):
    """See the module."""

    def __init__(self, config: ServerConfig) -> None:
        """Bind, and load the checkpoint. Raises OSError, RunError for a broken checkpoint."""
        super().__init__(
            config.listen, buffer_bytes=config.buffer_bytes, most=config.most_workers + UNKNOWN
        )
        self._config = config
        rule = RuleConfig(**config.rule)
        self._job = Job(config.job, rule, config.most_parameters, config.most_workers)
        self._refused: dict[str, int] = {"malformed": 0, "refused": 0, "silent": 0, "truncated": 0}
        """Connections that were refused, by reason."""
        self._bytes = {"received_bytes": 0, "sent_bytes": 0}
        self._model_is_here: asyncio.Event | None = None
        self._offered_to: int | None = None
        self._saved_version = 0
        self._failed = False
        file = Path(config.checkpoint) if config.checkpoint else None
        if file is not None and file.exists() and not config.fresh:
            from olaf.files.modelfile import read_model

            saved = read_model(file)
            self._job.restore(saved.version, saved.parameters)
            self.tell("model_restored", job=config.job, version=saved.version)

    def statistics(self) -> dict[str, Any]:
        """Statistics of a server with one job, as in ``docs/reference/statistics.md``."""
        jobs = [self._job.statistics(time.monotonic_ns())] if self._job.parameters else []
        return {
            "role": "server",
            "address": self.address,
            "refused": {**self._refused, "too_many": self.too_many},
            "jobs": jobs,
            "io": dict(self._bytes),
        }

    def background(self) -> list[Coroutine[Any, Any, None]]:
        """Write checkpoints while the model changes."""
        return [self._keep()] if self._config.checkpoint else []

    def save(self, file: Path) -> None:
        """Write the model, if there is one. Raises OSError."""
        from olaf.files.modelfile import write_model

        with self._lock:
            version, weights = self._job.version, self._job.weights
        if weights is not None:  # never changed in place: the array read stays whole
            write_model(file, version, {"model": weights})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one worker, from its JOIN on."""
        worker: int | None = None
        try:
            join = await self._read(reader, 0, JOIN_S)
            if not isinstance(join, Join):
                raise FrameError(f"{type(join).__name__}: a connection begins with JOIN")
            with self._lock:
                self._job.join(join)
                worker = join.worker
                self.tell(
                    "worker_joined", worker=worker, cluster=join.cluster, job=self._job.number
                )
            await self._introduce(worker, join.parameters, reader, writer)
            while True:
                await self._answer(worker, join.parameters, reader, writer)
        except FrameError as error:
            await self._turn_away("malformed", str(error), worker, writer)
        except RefusedError as error:
            await self._turn_away("refused", str(error), worker, writer)
        except TimeoutError:
            await self._turn_away("silent", "nothing came in time", worker, writer)
        finally:
            with self._lock:
                if worker is not None:
                    self._job.leave(worker)
                    self.tell("worker_left", worker=worker, job=self._job.number)
            self._withdraw(worker)

    async def _introduce(
        self,
        worker: int,
        parameters: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Send the model to the worker; ask the first worker for its own."""
        if self._model_is_here is None:
            self._model_is_here = asyncio.Event()
        deadline = time.monotonic() + self._config.idle_s
        while self._job.weights is None:
            if self._offered_to is None:
                self._offered_to = worker
                await self._write(Offer(), writer)
                weights = await self._read(reader, parameters, self._config.timeout_s)
                if not isinstance(weights, Weights):
                    raise FrameError(f"{type(weights).__name__}: WEIGHTS answer an OFFER")
                with self._lock:
                    self._job.start(weights.lanes)
                    self.tell(
                        "model_started", job=self._job.number, worker=worker, parameters=parameters
                    )
                self._model_is_here.set()
                break
            left_s = deadline - time.monotonic()
            await within(max(left_s, 0.0), self._model_is_here.wait())
            self._model_is_here.clear()
        self._model_is_here.set()
        with self._lock:
            model = self._job.model(worker)
        await self._write(model, writer)

    def _withdraw(self, worker: int | None) -> None:
        """The worker that should send the first model is gone: ask the next one."""
        if worker is not None and self._offered_to == worker and self._job.weights is None:
            self._offered_to = None
            if self._model_is_here is not None:
                self._model_is_here.set()

    async def _answer(
        self,
        worker: int,
        parameters: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        frame = await self._read(reader, parameters, self._config.idle_s)
        if not isinstance(frame, Push | Fetch):
            raise FrameError(
                f"{type(frame).__name__}: a worker that has joined sends PUSH or FETCH"
            )
        with self._lock:
            if isinstance(frame, Push):
                self._job.apply(worker, frame, time.monotonic_ns())
            model = self._job.model(worker)
        await self._write(model, writer)

    async def _read(
        self, reader: asyncio.StreamReader, parameters: int, patience_s: float
    ) -> Frame:
        """The next frame: first bytes within ``patience_s``, the others within ``timeout_s``."""
        header = await within(patience_s, reader.readexactly(frames.LENGTH.size))
        length = frames.check_length(header, parameters)
        body = bytearray()
        while len(body) < length:  # memory grows with the received bytes, not the announced length
            some = reader.read(min(length - len(body), CHUNK_BYTES))
            chunk = await within(self._config.timeout_s, some)
            if not chunk:
                with self._lock:
                    self._refused["truncated"] += 1
                raise EOFError
            body += chunk
        with self._lock:
            self._bytes["received_bytes"] += len(header) + length
        return frames.parse(body, parameters)

    async def _write(self, frame: Frame, writer: asyncio.StreamWriter) -> None:
        data = frames.write(frame)
        writer.write(data)
        await within(self._config.timeout_s, writer.drain())
        with self._lock:
            self._bytes["sent_bytes"] += len(data)

    async def _turn_away(
        self, kind: str, why: str, worker: int | None, writer: asyncio.StreamWriter
    ) -> None:
        host, port, *_ = writer.get_extra_info("peername") or ("?", 0)
        with self._lock:
            self._refused[kind] += 1
            self.tell("worker_refused", worker=worker, address=f"{host}:{port}", reason=why)
        await self._write(Refused(why), writer)

    async def _keep(self) -> None:
        file = Path(str(self._config.checkpoint))
        while True:
            await asyncio.sleep(self._config.checkpoint_every_s)
            with self._lock:
                version = self._job.version
            if version == self._saved_version:
                continue
            try:
                await asyncio.to_thread(self.save, file)
                self._saved_version = version
            except OSError as error:
                with self._lock:
                    self.tell(
                        "checkpoint_failed",
                        job=self._job.number,
                        file=str(file),
                        reason=error.strerror or str(error),
                    )
