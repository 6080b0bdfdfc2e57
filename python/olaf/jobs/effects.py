"""Keys of `olaf train` that another key makes useless are errors.

Only options of the command line and arguments of `olaf.train` are checked. A file may describe more
than one run: a link in it has no effect on a run with `--local`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from olaf.errors.usage import ConfigurationError
from olaf.jobs.reading import given_keys
from olaf.jobs.settings import Settings


@dataclass(frozen=True)
class Useless:
    """Keys without effect under a condition."""

    keys: tuple[str, ...]
    """Dotted keys; ``*`` stands for all keys of a section."""
    when: Callable[[Settings], bool]
    why: str
    """The sentence after the key: what makes it useless, and what to do."""
    but: tuple[str, ...] = ()
    """Keys that have an effect all the same."""


OFF = (None, False, 0, "off", "none")

RULES = (
    Useless(
        (
            "train.workers",
            "train.clusters",
            "train.leaves",
            "train.key_file",
            "train.insecure",
            "train.restarts",
            "train.restart_delay_s",
            "train.drain_timeout_s",
            "switch.*",
            "leaf.*",
            "server.*",
            "worker.*",
            "tcp.*",
        ),
        lambda of: of.train.local,
        "has no effect with `train.local` = true: a run in one process has no workers, no switch "
        "and no server; leave one of the two out",
        but=(
            "server.learning_rate",
            "server.checkpoint_every_ms",
            "worker.push_every",
            "worker.turns_per_push",
        ),
    ),
    Useless(
        ("leaf.*",),
        lambda of: of.train.leaves == 0,
        "has no effect without leaf switches: add --leaves N, or leave it out",
    ),
    Useless(
        ("tcp.*",),
        lambda of: of.train.transport != "tcp",
        "has no effect with `train.transport` = 'udp': add --transport tcp, or leave it out",
    ),
    Useless(
        ("switch.*", "server.*", "worker.*", "train.key_file"),
        lambda of: of.train.transport == "tcp",
        "has no effect with `train.transport` = 'tcp': a plain TCP server does without it; leave "
        "one of the two out",
        but=(
            "switch.listen",
            "switch.uplink",
            "switch.max_parameters",
            "switch.insecure",
            "server.listen",
            "server.rule",
            "server.learning_rate",
            "server.step",
            "server.gate",
            "server.gate_margin",
            "server.staleness_power",
            "server.aggregate",
            "server.checkpoint",
            "server.checkpoint_every_ms",
            "server.fresh",
            "server.insecure",
            "worker.job",
            "worker.on_refused",
            "worker.patience_s",
            "worker.waiting_share",
            "worker.wait_for_model_s",
            "worker.weight",
            "worker.push_every",
            "worker.turns_per_push",
            "worker.join_timeout_s",
            "worker.flush_timeout_s",
        ),
    ),
    Useless(
        tuple(f"switch.{name}*" for name in ("reduce", "iswitch", "trio", "atp", "listen_at")),
        lambda of: True,
        "is of an engine that the switch of a run does not have; start one with `olaf switch "
        "--engines ..`, or leave it out",
    ),
    Useless(
        ("ray.*",),
        lambda of: not of.train.on.startswith("ray"),
        "has no effect without Ray: add --on ray, or leave it out",
    ),
    Useless(
        ("slurm.*",),
        lambda of: of.train.on not in ("slurm", "srun"),
        "has no effect without Slurm: add --on slurm, or leave it out",
    ),
    Useless(
        ("compare.*",),
        lambda of: True,
        "has no effect on one run: it is for `olaf compare`; leave it out",
    ),
    Useless(
        (
            "worker.switch",
            "worker.cluster",
            "worker.id",
            "worker.metrics",
            "worker.metrics_token_file",
            "switch.upstream",
        ),
        lambda of: True,
        "has no effect on a run, which chooses it for each process; leave it out",
    ),
    Useless(
        ("worker.seed",),
        lambda of: True,
        "has no effect on a run, whose workers derive their seeds: give --seed, or leave it out",
    ),
    Useless(
        ("server.aggregate_updates",),
        lambda of: of.server.aggregate != "periodic",
        "has no effect unless updates are collected: add --aggregate periodic, or leave it out",
    ),
    Useless(
        ("server.aggregate_ms",),
        lambda of: of.server.aggregate == "each",
        "has no effect if each update changes the model: add --aggregate periodic or round, or "
        "leave it out",
    ),
    Useless(
        ("server.gate_margin",),
        lambda of: of.server.gate == "none",
        "has no effect without a gate: set `server.gate` to best or recent, or leave it out",
    ),
    Useless(
        ("worker.threshold_ms", "worker.slope"),
        lambda of: of.worker.transmission != "paper",
        "is of the paper's transmission control: add --transmission paper, or leave it out",
    ),
    Useless(
        ("worker.unsent", "worker.retry_ms"),
        lambda of: of.worker.transmission == "off",
        "has no effect if every update is sent: add --transmission paper or fair, or leave it out",
    ),
    Useless(
        ("worker.push_every",),
        lambda of: of.worker.turns_per_push > 1,
        "has no effect with `worker.turns_per_push` above 1; leave one of the two out",
    ),
    Useless(
        ("switch.credit_timeout_ms",),
        lambda of: of.switch.credits is None,
        "has no effect without credits: add --credits N, or leave it out",
    ),
    Useless(
        ("switch.uplink_ecn_depth_datagrams",),
        lambda of: of.switch.uplink is None,
        "has no effect without a limited uplink: add --uplink RATE, or leave it out",
    ),
    Useless(
        ("switch.downlink_limit_datagrams", "switch.downlink_ecn_depth_datagrams"),
        lambda of: of.switch.downlink is None,
        "has no effect without a limited downlink: add --downlink RATE, or leave it out",
    ),
    Useless(
        ("switch.admission_*",),
        lambda of: of.switch.admission is None,
        "has no effect without admission: set `switch.admission`, or leave it out",
    ),
    Useless(
        ("train.evaluate_episodes", "train.evaluate_steps", "train.evaluate_timeout_s"),
        lambda of: of.train.evaluate_every is None,
        "has no effect without evaluations: add --evaluate-every N, or leave it out",
    ),
)


def refuse_useless(
    settings: Settings,
    options: Mapping[str, tuple[str, Any]] | None = None,
    overrides: Iterable[str] = (),
) -> None:
    """Raise ConfigurationError for the first given key that has no effect on the run.

    options, overrides: as for `read_settings`. Turning something off that is off is no wish.
    """
    for key, (written, value) in given_keys(options or {}, overrides).items():
        for rule in RULES:
            if value in OFF:
                continue
            if _names(rule.keys, key) and key not in rule.but and rule.when(settings):
                raise ConfigurationError(f"{written}: `{key}` {rule.why}")


def _names(patterns: Iterable[str], key: str) -> bool:
    return any(fnmatchcase(key, pattern) for pattern in patterns)
