"""The rule by which the server's model follows what workers push, as a worker is told it."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """What a push does to the job's model; the server says it at ``join``.

    ``str(rule)`` is one sentence. A delta rule does
    ``model += factor * k^-staleness_power * update``, where k is the number of workers that pushed
    lately, or of the updates that overlap this one, whichever is more.
    """

    kind: str
    """``delta`` applies every update; ``paper-literal`` is OLAF §2.1 word for word."""
    aggregate: str
    """When updates change the model: ``each`` at once, ``periodic`` or ``round`` together."""
    step: str
    """How far a merge of n updates moves the model: with ``overlap`` each of them counts as if it
    had come alone; ``mean`` and ``sum`` take their mean, or n times that, and count versions."""
    gate: str
    """Which rewards the server takes: ``none`` is all, else above the ``best`` or ``recent``."""
    factor: float
    """The server multiplies every update by it (``server.learning_rate``)."""
    staleness_power: float
    """An update counts ``k^-staleness_power``; with ``mean`` and ``sum`` k - 1 is the number of
    versions since the model that it was computed on."""

    @classmethod
    def from_json(cls, text: str) -> Rule:
        """Read what the core says; fields that are not known here are left out."""
        said = json.loads(text)
        return cls(
            kind=str(said["kind"]),
            aggregate=str(said["aggregate"]),
            step=str(said["step"]),
            gate=str(said["gate"]),
            factor=float(said["factor"]),
            staleness_power=float(said["staleness_power"]),
        )

    @property
    def is_plain(self) -> bool:
        """Whether a push moves the model by what was pushed: the delta rule at factor 1."""
        return self.kind == "delta" and self.factor == 1.0

    @property
    def is_selective(self) -> bool:
        """Whether the server refuses updates by their reward."""
        return self.kind != "delta" or self.gate != "none"

    def __str__(self) -> str:
        """One sentence: what the server does with an update."""
        if self.kind != "delta":
            return (
                "the server takes only an update whose reward beats the best so far, and then adds "
                f"{self.factor:g} * the running average of what it took to the model"
            )
        update, where = "update", ""
        if self.step == "overlap" and self.staleness_power:
            update = f"k^-{self.staleness_power:g} * update"
            where = ", while k workers push"
        elif self.step != "overlap":
            update = f"{self.step}(update)"
            if self.staleness_power:
                update = f"(1 + versions behind)^-{self.staleness_power:g} * {update}"
        when = {
            "each": "",
            "periodic": ", for several updates together",
            "round": ", once a round of all workers",
        }.get(self.aggregate, "")
        only = ""
        if self.gate != "none":
            only = f", unless the reward is below the {self.gate} one"
        return f"the server does model += {self.factor:g} * {update}{where}{when}{only}"
