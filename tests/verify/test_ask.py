"""A switch's question as the verifier takes it: which clusters, and what is asked of them."""

from __future__ import annotations

import io
import json
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from olaf.errors.usage import ConfigurationError
from olaf.verify import ask
from olaf.verify.ask import Case, Known, case_of, read_policy
from olaf.verify.spec import ClusterSpec, Spec

POLICY = """
[queue]
slots = 2
service_ms = 2

[[cluster]]
name = "fast"
interval_ms = 100
ids = [1, 2]

[[cluster]]
name = "slow"
interval_ms = 300
ids = [3]

[[objective]]
kind = "worst_peak"
bound_ms = 500

[[objective]]
kind = "fair_peak"
epsilon_ms = 100

[[objective]]
kind = "starvation"
clusters = ["slow"]
"""
COARSE = """
[queue]
slots = 2
service_ms = 100

[[cluster]]
name = "slow"
interval_ms = 300
ids = [3]

[[objective]]
kind = "worst_peak"
bound_ms = 400
"""
NEWCOMER = """
[newcomer]
name = "anybody"
interval_ms = 1000
"""


def policy(tmp_path: Path, text: str = POLICY) -> Path:
    file = tmp_path / "running.toml"
    file.write_text(text)
    return file


def case(spec: Spec, newcomer: int, running: tuple[int, ...] = (), job: int = 1) -> Case | Known:
    return case_of(spec, (job, newcomer), [(job, one) for one in running], "running.toml")


def test_the_example_is_one() -> None:
    example = Path(__file__).parents[2] / "examples" / "verify" / "policy.toml"
    assert groups(case(read_policy(example), 9, (0, 3))) == {"usual": 2}


def groups(of: Case | Known) -> dict[str, int]:
    assert isinstance(of, Case)
    return {group.name: group.count for group in of.running.cluster}


def test_those_that_are_here_run_by_their_profiles_and_no_others(tmp_path: Path) -> None:
    spec = read_policy(policy(tmp_path))
    found = case(spec, 2, (1, 3))
    assert groups(found) == {"fast": 1, "slow": 1}
    assert isinstance(found, Case)
    assert (found.newcomer.name, found.newcomer.interval_ms) == ("cluster-2", Decimal(100))
    assert [(o.kind, o.clusters) for o in found.running.objective] == [
        ("worst_peak", []),
        ("fair_peak", []),
        ("starvation", ["slow"]),
    ]
    assert groups(case(spec, 3, (1, 2))) == {"fast": 2}


def test_an_objective_about_a_group_is_about_its_newcomer_too(tmp_path: Path) -> None:
    found = case(read_policy(policy(tmp_path)), 3, (1,))
    assert isinstance(found, Case)
    assert found.running.objective[-1].clusters == ["cluster-3"]
    # And not about those that are not here.
    found = case(read_policy(policy(tmp_path)), 2, (1,))
    assert isinstance(found, Case)
    assert [o.kind for o in found.running.objective] == ["worst_peak", "fair_peak"]


def test_the_first_has_nobody_to_be_compared_with(tmp_path: Path) -> None:
    found = case(read_policy(policy(tmp_path)), 1)
    assert isinstance(found, Case)
    assert [o.kind for o in found.running.objective] == ["worst_peak"]
    only_fair = POLICY.replace(
        'kind = "worst_peak"\nbound_ms = 500', 'kind = "fair_age"\nepsilon_ms = 9'
    )
    assert case(read_policy(policy(tmp_path, only_fair)), 1) == Known(
        "admit", "no objective is about it and the present clusters"
    )


def test_the_same_id_in_two_jobs_is_two_clusters_of_one_profile(tmp_path: Path) -> None:
    spec = read_policy(policy(tmp_path))
    assert groups(case_of(spec, (3, 1), [(1, 1), (2, 1)], "running.toml")) == {"fast": 2}


def test_who_is_not_listed_is_refused_unless_there_is_a_profile_for_all(tmp_path: Path) -> None:
    refused = case(read_policy(policy(tmp_path)), 9, (1,))
    assert isinstance(refused, Known)
    assert refused.answer == "refuse"
    assert "running.toml does not list cluster 9: add it to the ids" in refused.reason
    spec = read_policy(policy(tmp_path, POLICY + NEWCOMER))
    found = case(spec, 9, (1, 8))
    assert isinstance(found, Case)
    assert (found.newcomer.interval_ms, groups(found)) == (Decimal(1000), {"fast": 1, "anybody": 1})


def test_nothing_is_proved_beside_one_that_nobody_knows(tmp_path: Path) -> None:
    unknown = case(read_policy(policy(tmp_path)), 1, (8,))
    assert isinstance(unknown, Known)
    assert unknown.answer == "undecided"
    assert "cluster 8 of job 1 is here" in unknown.reason


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("ids = [3]", "ids = [1]"), "ids 1 is listed twice"),
        (("interval_ms = 300", "interval_ms = 0"), "interval_ms"),
        (("[queue]", "[que]"), "did you mean queue"),
    ],
)
def test_a_policy_that_cannot_be_says_what_to_change(
    tmp_path: Path, change: tuple[str, str], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        read_policy(policy(tmp_path, POLICY.replace(*change)))


def test_a_policy_by_which_nobody_could_join_or_nothing_would_be_asked(tmp_path: Path) -> None:
    without_ids = POLICY.replace("ids = [1, 2]", "").replace("ids = [3]", "")
    with pytest.raises(ConfigurationError, match=r"ids = \[\.\.\].*\[newcomer\]"):
        read_policy(policy(tmp_path, without_ids))
    with pytest.raises(ConfigurationError, match=r"no \[\[objective\]\]"):
        read_policy(policy(tmp_path, POLICY[: POLICY.index("[[objective]]")]))
    same_name = POLICY + NEWCOMER.replace("anybody", "fast")
    with pytest.raises(ConfigurationError, match="both named fast"):
        read_policy(policy(tmp_path, same_name))


@dataclass
class Said:
    answer: str
    reason: str


def asked(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(told)))
    monkeypatch.setattr("os.nice", lambda by: by)
    code = ask.main()
    out, complaint = capsys.readouterr()
    return code, out, complaint


def test_the_question_goes_in_and_the_verifiers_answer_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    limits: list[float] = []

    def admit(newcomer: ClusterSpec, running: Spec, *, timeout_s: float) -> Said:
        limits.append(timeout_s)
        return Said("refuse", f"{newcomer.name} would fit at 250 ms beside {len(running.cluster)}")

    monkeypatch.setattr(ask, "_verifier", lambda: admit)
    told = {
        "file": str(policy(tmp_path)),
        "newcomer": [1, 2],
        "running": [[1, 1]],
        "until_s": time.time() + 5,
    }
    code, out, _ = asked(monkeypatch, told, capsys)
    assert code == 0
    assert json.loads(out) == {
        "answer": "refuse",
        "reason": "cluster-2 would fit at 250 ms beside 1",
    }
    assert 1.0 < limits[0] < 4.0, "a little is kept back for saying it"


def test_a_file_that_went_bad_meanwhile_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"file": str(tmp_path / "gone.toml"), "newcomer": [1, 2], "running": [], "until_s": 0}
    code, out, complaint = asked(monkeypatch, told, capsys)
    assert (code, out) == (2, "")
    assert "gone.toml: No such file" in complaint


def test_the_verifier_admits_what_it_proved_and_refuses_with_the_run_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = policy(tmp_path, COARSE)
    told = {"file": str(file), "newcomer": [1, 3], "running": [], "until_s": time.time() + 15}
    _, out, _ = asked(monkeypatch, told, capsys)
    admitted = json.loads(out)
    assert admitted["answer"] == "admit"
    assert "with cluster-3 the objective holds, proved" in admitted["reason"]
    file.write_text(file.read_text().replace("bound_ms = 400", "bound_ms = 250"))
    told["until_s"] = time.time() + 15
    _, out, _ = asked(monkeypatch, told, capsys)
    refused = json.loads(out)
    assert refused["answer"] == "refuse"
    assert "worst_peak of at most 250 ms is violated: a run has an age of" in refused["reason"]
