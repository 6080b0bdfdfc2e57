"""What a supervisor's children do: polled until something has happened."""

from collections.abc import Callable
from typing import Any, TypeVar

from waiting import until

from olaf.jobs.supervisor import Ended, Occurrence, Printed, Said, Started, Supervisor

N = TypeVar("N", Started, Said, Printed, Ended)


def expect(found: Callable[[], N | None], what: str) -> N:
    value = until(found, what=what)
    assert value is not None
    return value


class Heard:
    """All occurrences of a supervisor, polled until something is among them."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.supervisor = supervisor
        self.occurrences: list[Occurrence] = []

    def of(self, kind: type[N], **fields: Any) -> N:
        def found() -> N | None:
            self.occurrences += self.supervisor.poll(0.05)
            for occurrence in self.occurrences:
                if isinstance(occurrence, kind) and all(
                    getattr(occurrence, key) == value for key, value in fields.items()
                ):
                    return occurrence
            return None

        return expect(found, what=f"{kind.__name__} {fields}")
