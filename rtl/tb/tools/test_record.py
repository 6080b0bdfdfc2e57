"""`tools/record.py`: which jobs run again, and which passed before on the same inputs."""

from __future__ import annotations

from pathlib import Path

import record

SAME = {"cheap": "c", "dear": "d", "dearer": "e"}


def table(folder: Path) -> record.Record:
    made = record.Record(folder / "passed.csv")
    made.passed("cheap", "c", 1.0)
    made.passed("dear", "d", 20.0)
    made.passed("dearer", "e", 40.0)
    return made


def choose(digests: dict[str, str], made: record.Record, seed: str = "") -> record.Choice:
    return record.choose(digests, made, cheap=2.0, budget=30.0, seed=seed)


def test_an_unchanged_job_is_left_out_and_named(tmp_path: Path) -> None:
    choice = choose(SAME, table(tmp_path))
    [drawn], [left] = choice.drawn, choice.left
    assert {drawn, left} == {"dear", "dearer"}
    assert choice.run == {"cheap", drawn}
    assert choice.seconds_left == {"dear": 20.0, "dearer": 40.0}[left]
    assert f"1 proofs are left out, {choice.seconds_left:.0f} s" in choice.tell(
        "proofs", tmp_path / "passed.csv", ""
    )
    assert f"left: {left}\n" in choice.tell("proofs", tmp_path / "passed.csv", "")


def test_a_changed_and_an_unknown_job_run(tmp_path: Path) -> None:
    for seed in map(str, range(20)):
        choice = choose({**SAME, "dear": "changed", "new": "n"}, table(tmp_path), seed)
        assert {"cheap", "dear", "new"} <= choice.run
        assert choice.drawn == ("dearer",)


def test_each_commit_draws_its_own_sample_up_to_the_budget(tmp_path: Path) -> None:
    made = record.Record(tmp_path / "passed.csv")
    seconds = {f"job {number}": float(number) for number in range(3, 34, 3)}
    for job, took in seconds.items():
        made.passed(job, job, took)
    drawn: set[str] = set()
    for seed in map(str, range(300)):
        choice = choose({job: job for job in seconds}, made, seed)
        assert choice.drawn == choose({job: job for job in reversed(seconds)}, made, seed).drawn
        assert set(choice.drawn) | set(choice.left) == set(seconds)
        assert len(choice.drawn) == 1 or sum(seconds[job] for job in choice.drawn) <= 30
        drawn |= {*choice.drawn}
    assert drawn == set(seconds)


def test_a_job_that_failed_is_forgotten(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.failed("dear")
    made.write(SAME)
    again = record.Record(tmp_path / "passed.csv")
    assert again.rows.keys() == {"cheap", "dearer"}
    assert "dear" in choose(SAME, again).run


def test_a_written_table_reads_the_same_and_loses_jobs_that_are_gone(tmp_path: Path) -> None:
    made = table(tmp_path)
    made.passed("dear", "d", 25.0)
    made.write(SAME.keys() - {"cheap"})
    again = record.Record(tmp_path / "passed.csv")
    assert again.rows == {"dear": record.Row("d", 20.0), "dearer": record.Row("e", 40.0)}
    again.passed("dear", "changed", 25.0)
    assert again.rows["dear"] == record.Row("changed", 25.0)


def test_parts_of_a_digest_keep_their_borders() -> None:
    every = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["c", "ab"]]
    assert len({record.digest(parts) for parts in every}) == len(every)
    assert record.digest(["a"]) == record.digest([b"a"])


def test_a_folder_without_git_has_a_seed(tmp_path: Path) -> None:
    assert record.commit(tmp_path) == "no commit"
    assert record.commit(Path(__file__).parent) != ""
