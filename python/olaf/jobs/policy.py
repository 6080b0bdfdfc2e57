"""Reads what `switch.admission` names, and compares it with the switch's own settings."""

from __future__ import annotations

from pathlib import Path

from olaf import extras
from olaf._olaf import parse_rate
from olaf.errors.usage import ConfigurationError
from olaf.jobs.admission import Policy
from olaf.jobs.reality import Declared, own_mismatches


def policy_of(
    file: Path, *, slots: int, uplink: str | None, mismatch: str, timeout_s: float, unanswered: str
) -> Policy:
    """The policy of a switch with these slots and this uplink (None: not paced).

    mismatch: ``say`` or ``refuse``. Raises ConfigurationError if the file cannot be used, or if the
    switch is not the policy's and a mismatch is refused.
    """
    extras.need("verify", "z3", what="`switch.admission`")
    from olaf.verify.ask import read_policy
    from olaf.verify.spec import ClusterSpec

    spec = read_policy(file)
    own = own_mismatches(
        slots=slots,
        rate_bps=None if uplink is None else parse_rate(uplink),
        policy_slots=spec.queue.slots,
        policy_rate_bps=None if spec.queue.rate is None else parse_rate(spec.queue.rate),
    )
    if own and mismatch == "refuse":
        raise ConfigurationError(
            f"admission = {file}: {'; '.join(own)}: make them equal, or set admission_mismatch to "
            "say"
        )

    def declared(group: ClusterSpec) -> Declared:
        interval_s = float(group.interval_ms) / 1000
        holds_back = spec.control.kind != "off"
        return Declared(group.name, tuple(group.ids), group.workers, interval_s, holds_back)

    return Policy(
        str(file.resolve()),
        timeout_s=timeout_s,
        unanswered=unanswered,
        mismatch=mismatch,
        own_mismatches=own,
        declared=[declared(group) for group in spec.cluster],
        newcomer=None if spec.newcomer is None else declared(spec.newcomer),
    )
