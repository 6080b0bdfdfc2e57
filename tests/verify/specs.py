"""Specs small enough for the brute prover."""

from pathlib import Path

from olaf.verify.instance import Instance, Objective
from olaf.verify.spec import ClusterSpec, Spec
from olaf.verify.ticks import instance_of, objective_of

SMALL = """
[queue]
slots = 2
service_ms = 1
[[cluster]]
name = "a"
interval_ms = 4
[[cluster]]
name = "b"
interval_ms = 6
[time]
horizon_ms = 24
"""

FAIR = '[[objective]]\nkind = "fair_peak"\nepsilon_ms = 5\n'
UNFAIR = '[[objective]]\nkind = "fair_peak"\nepsilon_ms = 1\n'
OLD = '[[objective]]\nkind = "worst_peak"\nbound_ms = 7\n'


def written(folder: Path, text: str, name: str = "spec.toml") -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def small(**objective: object) -> tuple[Instance, Objective]:
    """The small spec with one objective."""
    import tomllib

    spec = Spec.model_validate({**tomllib.loads(SMALL), "objective": [objective]})
    instance = instance_of(spec)
    return instance, objective_of(spec.objective[0], spec, instance)


def cluster(**keys: object) -> ClusterSpec:
    return ClusterSpec.model_validate(keys)
