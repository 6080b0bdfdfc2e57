"""A path of its own for UDP: delay, jitter, loss and a longest datagram, drawn from a seed."""

from __future__ import annotations

import heapq
import random
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from select import select


@dataclass
class Path:
    """What happens to datagrams, in each direction alike."""

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    longest: int = 65_507
    """UDP payload; a longer datagram vanishes without a word."""
    seed: int = 1
    mute: bool = False
    """Nothing comes back from the target."""
    too_long: int = field(default=0, init=False)


class Relay:
    """Stands between workers and the party at ``target``, which sees an address of the relay's."""

    def __init__(self, target: str, path: Path) -> None:
        host, port = target.rsplit(":", 1)
        self.path = path
        self.heard: Callable[[bytes], object] = lambda datagram: None
        """Called with each datagram of a worker."""
        self._target = (host, int(port))
        self._outer = self._bound()
        self._inner: dict[tuple[str, int], socket.socket] = {}
        self._chance = random.Random(path.seed)
        self.down: deque[bytes] = deque(maxlen=256)
        """What came back from the target last."""
        self._stopping = threading.Event()
        self.address = f"127.0.0.1:{self._outer.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def say(self, datagram: bytes) -> None:
        """Send this to the target, at once, as if each worker had sent it."""
        for through in list(self._inner.values()):
            through.sendto(datagram, self._target)

    def forge(self, datagram: bytes) -> None:
        """Send every worker a datagram from the address at which it knows the target."""
        for worker in list(self._inner):
            self._outer.sendto(datagram, worker)

    def passed(self, datagram: bytes) -> bytes:
        """What leaves the path for a datagram that comes in."""
        return datagram

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        for one in (self._outer, *self._inner.values()):
            one.close()

    @staticmethod
    def _bound() -> socket.socket:
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind(("127.0.0.1", 0))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        return bound

    def _run(self) -> None:
        waiting: list[tuple[float, int, bytes, socket.socket, tuple[str, int]]] = []
        number = 0
        while not self._stopping.is_set():
            now = time.monotonic()
            while waiting and waiting[0][0] <= now:
                _, _, datagram, through, to = heapq.heappop(waiting)
                through.sendto(datagram, to)
            pause = min(0.02, waiting[0][0] - now) if waiting else 0.02
            owners = {inner: worker for worker, inner in self._inner.items()}
            for ready in select([self._outer, *owners], [], [], max(pause, 0.0))[0]:
                try:
                    datagram, sender = ready.recvfrom(65_535)
                except ConnectionError:
                    continue  # nobody listens there now
                if ready is self._outer:
                    if sender not in self._inner:
                        self._inner[sender] = self._bound()
                    through = self._inner[sender]
                    to = self._target
                    self.heard(datagram)
                else:
                    through, to = self._outer, owners[ready]
                    if self.path.mute:
                        continue
                    self.down.append(datagram)
                datagram = self.passed(datagram)
                if len(datagram) > self.path.longest:
                    self.path.too_long += 1
                elif self._chance.random() >= self.path.loss:
                    late = self.path.delay_s + self._chance.random() * self.path.jitter_s
                    number += 1
                    heapq.heappush(
                        waiting, (time.monotonic() + late, number, datagram, through, to)
                    )
