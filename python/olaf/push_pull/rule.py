"""The rule by which the server's model follows pushes, as a worker receives it."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """The effect of a push on the job's model; the server sends it at ``join``.

    ``str(rule)`` is one sentence. A delta rule computes
    ``model += factor * k^-staleness_power * update``. Here k is the number of workers that pushed
    recently, or the number of updates that overlap this one, whichever is larger.
    """

    kind: str
    """``delta`` applies every update; ``paper-literal`` is OLAF §2.1 word for word."""
    aggregate: str
    """When updates change the model: ``each`` at arrival, ``periodic`` or ``round`` together."""
    step: str
    """Size of the step for a merge of n updates. ``overlap``: each of them counts as if it had
    arrived alone; ``mean`` and ``sum``: their mean, or n times their mean, scaled by versions."""
    gate: str
    """Rewards that the server accepts: ``none`` all, otherwise above the ``best`` or ``recent``."""
    factor: float
    """Factor of the server on every update (``server.learning_rate``)."""
    staleness_power: float
    """An update is scaled by ``k^-staleness_power``; for ``mean`` and ``sum``, k - 1 is the number
    of model versions since the update's model."""

    @classmethod
    def from_json(cls, text: str) -> Rule:
        """Read the core's JSON; unknown fields are ignored."""
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
        """True if a push moves the model by exactly the update: the delta rule at factor 1."""
        return self.kind == "delta" and self.factor == 1.0

    @property
    def is_selective(self) -> bool:
        """True if the server refuses updates by their reward."""
        return self.kind != "delta" or self.gate != "none"

    def __str__(self) -> str:
        """One sentence about the server's rule."""
        if self.kind != "delta":
            return (
                "the server applies only an update whose reward beats the best so far, and then "
                f"adds {self.factor:g} * the running average of the applied updates to the model"
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
            "round": ", once per round of all workers",
        }.get(self.aggregate, "")
        only = ""
        if self.gate != "none":
            only = f", unless the reward is below the {self.gate} one"
        return f"the server does model += {self.factor:g} * {update}{where}{when}{only}"
