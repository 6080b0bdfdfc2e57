"""Folders of runs: their names, the link to the newest, refusals, the process that holds one."""

import errno
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from olaf.errors.outcome import Exit, RunError
from olaf.runs import folder as folders
from olaf.runs.folder import Hold, find_folder, forget, given_folder, new_folder, plain
from olaf.runs.session import learnt_nothing


def test_runs_that_start_in_one_second_get_folders_of_their_own(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    made = [new_folder("CartPole-v1", runs=runs) for _ in range(5)]
    assert len(set(made)) == 5
    assert all(folder.is_dir() for folder in made)
    assert (runs / "latest").resolve() == made[-1].resolve()


def _make(runs: Path, count: int, names: "multiprocessing.Queue[list[str]]") -> None:
    names.put([new_folder("Same-v0", runs=runs).name for _ in range(count)])


def test_processes_that_start_together_never_share_a_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    names: multiprocessing.Queue[list[str]] = context.Queue()
    processes = [context.Process(target=_make, args=(tmp_path, 20, names)) for _ in range(3)]
    for process in processes:
        process.start()
    made = [name for _ in processes for name in names.get(timeout=60)]
    for process in processes:
        process.join(60)
    assert len(set(made)) == 60
    assert (tmp_path / "latest").is_dir()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LunarLander-v3", "LunarLander-v3"),
        ("mine:lab/Dot-v0", "mine-lab-Dot-v0"),
        ("../../etc", "etc"),
        ("", "run"),
    ],
)
def test_a_name_becomes_part_of_a_folders_name(name: str, expected: str) -> None:
    assert plain(name) == expected


def test_where_links_are_not_possible_a_file_says_which_run_is_the_newest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: object, **more: object) -> None:
        raise OSError("this file system has no links")

    monkeypatch.setattr(Path, "symlink_to", refused)
    first, second = (new_folder("A-v0", runs=tmp_path) for _ in range(2))
    assert (tmp_path / "latest").read_text() == f"{second.name}\n"
    assert find_folder(tmp_path / "latest") == second != first


def test_a_run_of_before_that_lies_in_latest_itself_keeps_what_it_has(tmp_path: Path) -> None:
    old = tmp_path / "latest"
    old.mkdir()
    (old / "run.json").write_text("{}")
    new = new_folder("A-v0", runs=tmp_path)
    assert find_folder(old) == new.resolve()
    (kept,) = tmp_path.glob("*-latest-1")
    assert (kept / "run.json").read_text() == "{}"


@pytest.mark.parametrize("held", ["run.json", "history.jsonl", "model.npz", "checkpoint.npz"])
def test_a_folder_that_holds_a_run_is_refused_with_what_to_do(tmp_path: Path, held: str) -> None:
    (tmp_path / held).write_text("kept")
    with pytest.raises(RunError, match="nothing is overwritten") as error:
        given_folder(tmp_path)
    assert error.value.code == Exit.USAGE
    assert held in str(error.value)
    assert f"--resume {tmp_path}" in str(error.value)
    assert (tmp_path / held).read_text() == "kept"


def test_a_folder_with_other_things_in_it_is_taken(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert given_folder(tmp_path) == tmp_path
    assert given_folder(tmp_path / "deep" / "er").is_dir()


def test_a_file_in_place_of_a_folder_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write there") as error:
        given_folder(tmp_path / "file")
    assert error.value.code == Exit.USAGE


def test_a_run_that_is_not_there_is_said_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "a-run").mkdir()
    (tmp_path / "a-run" / "history.jsonl").write_text("")
    with pytest.raises(RunError, match="no such run; runs there: a-run"):
        find_folder(tmp_path / "b-run")


def test_what_a_run_wrote_that_did_not_start_is_taken_away_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "settings.toml").write_text("")
    forget(tmp_path, made=False)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_latest_shows_what_it_showed_before(tmp_path: Path) -> None:
    first = new_folder("A-v0", runs=tmp_path)
    before = folders.latest(tmp_path)
    second = new_folder("B-v0", runs=tmp_path)
    forget(second, made=True)
    folders.show_again(before, tmp_path)
    assert (tmp_path / "latest").resolve() == first.resolve()
    folders.show_again(None, tmp_path)
    assert not (tmp_path / "latest").is_symlink()


def test_a_folder_is_held_until_the_last_process_that_has_it_ends(tmp_path: Path) -> None:
    waited: list[str] = []
    with Hold(tmp_path).take() as hold:
        child = subprocess.Popen(
            [sys.executable, "-c", "import sys; sys.stdin.read()"],
            stdin=subprocess.PIPE,
            pass_fds=hold.descriptors,
        )
    # The parent has let go; its child lives on and may still write.
    with pytest.raises(RunError, match="still going"):
        Hold(tmp_path).take(waiting=lambda: waited.append("said"))
    assert child.stdin is not None

    def end_it() -> None:
        waited.append("waited")
        os.kill(child.pid, 9)

    with Hold(tmp_path).take(patience_s=30, waiting=end_it):
        assert waited[-1] == "waited"
    child.stdin.close()
    child.wait(30)


def test_a_file_system_without_locks_is_said_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with Hold(tmp_path).take() as hold:
        assert hold.trouble is not None
        assert "No locks available" in hold.trouble
        assert hold.descriptors == ()


def test_a_run_that_failed_before_its_journal_has_nothing_to_keep(tmp_path: Path) -> None:
    assert learnt_nothing(tmp_path)
    (tmp_path / "history.jsonl").write_text("no JSON\nat all\n")
    assert not learnt_nothing(tmp_path)
