import re
from collections import Counter
from pathlib import Path

import pytest

from olaf.cli.main import run as olaf
from olaf.schedule.mixes import Mix, draw, text
from olaf.schedule.reading import read_jobs


def test_a_seed_gives_the_same_list_for_ever() -> None:
    mix = Mix(hosts=[1, 4, 16], weights=[2, 1, 1])
    first = [(job.pattern, job.hosts, job.steps) for job in draw(mix, ["a", "b"], 5, seed=7)]
    assert first == [("b", 4, 70), ("b", 4, 80), ("b", 1, 10), ("a", 1, 90), ("b", 1, 50)]
    longer = draw(mix, ["a", "b"], 50, seed=7)
    assert [(job.pattern, job.hosts, job.steps) for job in longer[:5]] == first
    assert draw(mix, ["a", "b"], 50, seed=8) != longer


def test_hosts_come_by_weight_and_the_rest_with_equal_chance() -> None:
    jobs = draw(Mix(hosts=[2, 3, 5], weights=[6, 0, 2]), ["a", "b"], 8000, seed=1)
    hosts = Counter(job.hosts for job in jobs)
    assert set(hosts) == {2, 5}
    assert hosts[2] / 8000 == pytest.approx(0.75, abs=0.02)
    assert Counter(job.pattern for job in jobs)["a"] / 8000 == pytest.approx(0.5, abs=0.02)
    steps = Counter(job.steps for job in jobs)
    assert sorted(steps) == list(range(10, 101, 10))
    assert max(steps.values()) < 1.2 * min(steps.values())


def test_a_drawn_list_is_read_as_it_was(tmp_path: Path) -> None:
    jobs = draw(Mix.parse("1:1,8:2"), ["a", "b"], 20, seed=0)
    (tmp_path / "jobs.txt").write_text(text(jobs))
    assert read_jobs(tmp_path / "jobs.txt") == jobs


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("1:2,8", "write HOSTS:WEIGHT"),
        ("few", "write HOSTS:WEIGHT"),
        ("0:1", "hosts: each number once, from 1"),
        ("1:1,1:2", "hosts: each number once, from 1"),
        ("1:0,2:0", "weights: from 0, not all of them"),
        ("1:-1", "weights: from 0, not all of them"),
    ],
)
def test_what_is_no_mix_is_quoted(
    words: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=re.escape(complaint)):
        Mix.parse(words)
    assert olaf(["schedule", "mix", "--hosts", words]) == 2
    assert complaint in " ".join(capsys.readouterr().err.split())


def test_the_command_prints_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        "schedule",
        "mix",
        "--hosts",
        "4:1",
        "--patterns",
        "mlp",
        "--jobs",
        "3",
        "--steps",
        "5",
    ]
    assert olaf(asked) == 0
    assert capsys.readouterr().out == "mlp 4 5\n" * 3
    assert olaf(["schedule", "mix", "--hosts", "4:1", "--steps", "none"]) == 2
    assert "whole numbers" in capsys.readouterr().err
    assert olaf(["schedule", "mix", "--hosts", "4:1", "--patterns", "a b"]) == 2
    assert "use names, as in mlp,cnn" in capsys.readouterr().err
