"""`olaf admit` and `olaf.verify.admission`: clusters admitted or refused, and offers that fit."""

import json
import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from specs import cluster, written

from olaf.cli.main import run as olaf
from olaf.errors.usage import ConfigurationError
from olaf.verify.admission import Admission, admit
from olaf.verify.fitting import joined
from olaf.verify.spec import ClusterSpec, Spec
from olaf.verify.ticks import instance_of, objective_of
from olaf.verify.verdict import Answer
from olaf.verify.verifying import verify

SWEEP = ["sweep"]
RUNNING = """
[queue]
slots = 2
service_ms = 1
[[cluster]]
name = "a"
interval_ms = 4
[time]
horizon_ms = 24
"""


def running(*objectives: dict[str, object]) -> Spec:
    return Spec.model_validate({**tomllib.loads(RUNNING), "objective": list(objectives)})


def asked(newcomer: ClusterSpec, spec: Spec) -> Admission:
    return admit(newcomer, spec, timeout_s=60, provers=SWEEP)


def test_who_fits_is_admitted_with_the_proof() -> None:
    said = asked(cluster(name="b", interval_ms=6), running({"kind": "worst_peak", "bound_ms": 8}))
    assert said.answer == "admit"
    assert [verdict.answer for verdict in said.verdicts] == [Answer.HOLDS]
    assert "with b the objective holds, proved for ever" in said.reason
    assert said.suggestion is None


def test_who_does_not_fit_is_told_why() -> None:
    spec = running({"kind": "worst_peak", "bound_ms": 5, "clusters": ["a"]})
    newcomer = cluster(name="b", interval_ms=2, workers=1)
    said = asked(newcomer, spec)
    assert said.answer == "refuse"
    assert said.running_holds is True
    assert "worst_peak of at most 5 ms is violated: a run has an age of 6 ms, a" in said.reason
    assert said.reason.endswith("no change was found that would fit")


def test_a_fair_interval_is_that_of_somebody_who_is_here() -> None:
    spec = running({"kind": "fair_peak", "epsilon_ms": 1})
    said = asked(cluster(name="b", interval_ms=6), spec)
    assert said.answer == "refuse"
    assert said.suggestion is not None
    assert said.suggestion.key == "cluster.interval_ms"
    assert said.suggestion.value == 4
    assert "an update every 4 ms would fit" in said.reason
    assert _holds(cluster(name="b", interval_ms=4), spec)


def test_the_interval_is_searched_down_to_a_tick() -> None:
    spec = running({"kind": "loss", "at_most": 0})
    spec = spec.model_copy(
        update={"queue": spec.queue.model_copy(update={"slots": 1}), "cluster": []}
    )
    newcomer = cluster(name="b", workers=1, interval_ms=Decimal("0.5"))
    said = asked(
        newcomer,
        spec.model_copy(update={"time": spec.time.model_copy(update={"horizon_ms": Decimal(6)})}),
    )
    assert said.answer == "refuse"
    assert said.running_holds is None
    assert said.suggestion is not None
    assert said.suggestion.key == "cluster.interval_ms"
    assert said.suggestion.value == 1


def test_more_slots_fit_where_no_interval_does() -> None:
    spec = running({"kind": "loss", "at_most": 0})
    spec = spec.model_copy(update={"queue": spec.queue.model_copy(update={"slots": 1})})
    said = asked(cluster(name="b", interval_ms=4), spec)
    assert said.answer == "refuse"
    assert said.suggestion is not None
    assert said.suggestion.key == "queue.slots"
    assert said.suggestion.value == 2


def test_it_says_when_those_who_run_break_it_without_the_newcomer() -> None:
    spec = running({"kind": "worst_peak", "bound_ms": 4})
    said = asked(cluster(name="b", interval_ms=6), spec)
    assert said.answer == "refuse"
    assert said.running_holds is False
    assert said.suggestion is None
    assert "without the newcomer either" in said.reason


def test_a_first_cluster_joins_nobody() -> None:
    spec = running({"kind": "worst_peak", "bound_ms": 8}, {"kind": "fair_peak", "epsilon_ms": 1})
    said = asked(cluster(name="b", interval_ms=6), spec.model_copy(update={"cluster": []}))
    assert said.answer == "admit"
    assert len(said.verdicts) == 1


def test_undecided_says_what_is() -> None:
    spec = running({"kind": "worst_peak", "bound_ms": 8})
    late = cluster(name="b", interval_ms=6, jitter_ms=1)
    said = asked(late, spec)
    assert said.answer == "undecided"
    assert said.reason.startswith("worst_peak of at most 8 ms is undecided: updates may be late")


def test_a_name_that_is_taken() -> None:
    with pytest.raises(ConfigurationError, match="two clusters are named a"):
        asked(cluster(name="a", interval_ms=6), running({"kind": "worst_peak", "bound_ms": 8}))


def _holds(newcomer: ClusterSpec, spec: Spec) -> bool:
    joint = joined(newcomer, spec)
    instance = instance_of(joint)
    objectives = [objective_of(each, joint, instance) for each in joint.objective]
    return all(
        verify(instance, objective, provers=SWEEP).answer is Answer.HOLDS
        for objective in objectives
    )


NEW = '[cluster]\nname = "b"\ninterval_ms = 6\n'
OBJECTIVE = '[[objective]]\nkind = "worst_peak"\nbound_ms = {}\n'


Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(("bound", "code", "word"), [(8, 0, "ADMIT"), (4, 1, "REFUSE")])
def test_the_command(bound: int, code: int, word: str, tmp_path: Path, capsys: Capture) -> None:
    new = written(tmp_path, NEW, "new.toml")
    to = written(tmp_path, RUNNING + OBJECTIVE.format(bound), "running.toml")
    assert olaf(["admit", "--cluster", str(new), "--to", str(to)]) == code
    assert word in capsys.readouterr().out
    assert olaf(["admit", "--cluster", str(new), "--to", str(to), "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["answer"] == word.lower()
    assert told["newcomer"] == "b"


@pytest.mark.parametrize(
    ("new", "what"),
    [
        ("[cluster]\nname = 'b'\n", "interval is missing"),
        ("[cluster]\nname = 'a'\ninterval_ms = 3\n", "two clusters are named a"),
        ("[queue]\nslots = 3\n", "must hold one table [cluster]"),
    ],
)
def test_bad_input(new: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    to = written(tmp_path, RUNNING + OBJECTIVE.format(8), "running.toml")
    assert (
        olaf(["admit", "--cluster", str(written(tmp_path, new, "new.toml")), "--to", str(to)]) == 3
    )
    assert what in capsys.readouterr().err
