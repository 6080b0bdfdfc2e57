"""The journal of a run: what is written is read back, whole or cut short by a kill."""

import json
from pathlib import Path
from typing import Any

import pytest

from olaf.errors.outcome import Exit, RunError
from olaf.jobs.progress import Earlier, Happening, Progress
from olaf.jobs.reading import read_settings
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Said
from olaf.runs.journal import FILE, Journal, read_journal
from olaf.runs.settings import changes, described, settings_of, tables_of, write_settings


def push(progress: Progress, updates: int, at_s: float, reward: float = 1.0, **more: Any) -> None:
    if progress.joined_at_s is None:
        progress.take(Said("worker 0", 1, {"event": "joined", "worker": 0}), at_s - 1)
    message = {
        "event": "update",
        "worker": 0,
        "updates": updates,
        "steps": updates * 100,
        "episode_rewards": [reward],
        "reward": reward,
        "pushes_at_s": [at_s],
        **more,
    }
    progress.take(Said("worker 0", 1, message), at_s)


def session(folder: Path, earlier: Earlier, *, first: int = 1, more: int = 3) -> Progress:
    """A session of some samples, a second apart."""
    progress = Progress(Settings(), earlier)
    number = len(earlier.sessions) + 1
    with Journal(folder, {"session": number, **described(Settings())}) as journal:
        for index in range(first, first + more):
            at_s = earlier.at_s + index
            push(progress, index, at_s, reward=float(index))
            progress.happenings.append(Happening(at_s, "switch", f"event {index}"))
            progress.sample(at_s)
            journal.stands(progress, "training")
            journal.stands(progress, "training")  # nothing new: no line
    return progress


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    progress = session(tmp_path, Earlier())
    earlier = read_journal(tmp_path)
    assert earlier.samples == progress.samples
    assert earlier.episodes == progress.episodes
    assert earlier.happenings == progress.happenings
    assert (earlier.updates, earlier.steps, earlier.at_s) == (3, 300, 3.0)
    assert earlier.trained_s == pytest.approx(progress.trained_s) == pytest.approx(3.0)
    assert earlier.best_reward == progress.best_reward
    assert len((tmp_path / FILE).read_text().splitlines()) == 1 + 3


def test_the_learners_numbers_are_read_back_and_older_journals_have_none(tmp_path: Path) -> None:
    progress = Progress(Settings())
    losses = {"entropy": 1.25, "kl": float("nan")}
    with Journal(tmp_path, {"session": 1, **described(Settings())}) as journal:
        told: Any = {"losses": losses, "episode_steps": [7], "episode_numbers": [{"success": 1}]}
        push(progress, 1, 1.0, **told)
        progress.sample(1.0)
        push(progress, 2, 2.0)  # a worker of an earlier version
        progress.sample(2.0)
        progress.sample(3.0)
        journal.stands(progress, "training")
    earlier = read_journal(tmp_path)
    assert earlier.samples == progress.samples
    assert [sample.losses for sample in earlier.samples] == [{"entropy": 1.25}, {}, {}]
    assert earlier.samples[-1].episode_steps == 7.0
    assert earlier.samples[-1].episode_numbers == {"success": 1.0}
    assert [episode.length for episode in earlier.episodes] == [7, None]
    assert Progress(Settings(), earlier).learning.steps == 7.0
    lines = (tmp_path / FILE).read_text().splitlines()
    assert ["losses" in line for line in lines] == [False, True, False, False]
    # A journal of an earlier version has no line with them, and episodes of four numbers.
    older = [json.loads(line) for line in lines]
    for line in older:
        for key in ("losses", "episode_steps", "episode_numbers"):
            line.pop(key, None)
        line["episodes"] = [episode[:4] for episode in line.get("episodes", ())]
    (tmp_path / FILE).write_text("".join(json.dumps(line) + "\n" for line in older))
    read = read_journal(tmp_path)
    assert [(s.losses, s.episode_steps, s.episode_numbers) for s in read.samples] == [
        ({}, None, {})
    ] * 3
    assert [episode.length for episode in read.episodes] == [None, None]


def test_a_resumed_run_goes_on_from_there_and_its_journal_has_both(tmp_path: Path) -> None:
    session(tmp_path, Earlier())
    again = session(tmp_path, read_journal(tmp_path))
    assert (again.updates, again.session_updates) == (6, 3)
    assert [s.updates for s in again.samples] == [1, 2, 3, 4, 5, 6]
    assert [s.at_s for s in again.samples] == [1, 2, 3, 4, 5, 6]
    both = read_journal(tmp_path)
    assert len(both.sessions) == 2
    assert both.samples == again.samples
    assert both.episodes == again.episodes
    assert [h.text for h in both.happenings] == [f"event {n}" for n in (1, 2, 3)] * 2
    assert both.trained_s == pytest.approx(6.0)


def test_every_cut_of_a_journal_can_be_resumed(tmp_path: Path) -> None:
    """A kill leaves any beginning of the file; what is whole counts, and the rest may follow."""
    session(tmp_path, Earlier(), more=2)
    whole = (tmp_path / FILE).read_bytes()
    begin = whole.index(b"\n") + 1
    for cut in range(begin, len(whole) + 1, 7):
        (tmp_path / FILE).write_bytes(whole[:cut])
        earlier = read_journal(tmp_path)
        assert earlier.updates == max(whole[:cut].count(b"\n") - 1, _closed(whole, cut))
        session(tmp_path, earlier, more=1)
        assert read_journal(tmp_path).updates == earlier.updates + 1


def _closed(whole: bytes, cut: int) -> int:
    """Sample lines that are whole in a cut that ends just before a newline."""
    return whole[: cut + 1].count(b"\n") - 1 if whole[cut : cut + 1] == b"\n" else 0


@pytest.mark.parametrize(
    "text",
    [
        "no JSON at all\n{}\n",
        '{"kind": "sample"}\n',
        "[1, 2]\n",
        '{"kind": "session"}\nbroken\n{"kind": "sample", "at_s": 1}\n',
        '{"no kind": 1}\n',
    ],
)
def test_a_file_that_is_no_journal_is_refused_with_its_name(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(RunError, match="not the journal of a run") as error:
        read_journal(tmp_path)
    assert error.value.code == Exit.USAGE
    assert str(tmp_path / FILE) in str(error.value)


def test_a_folder_without_a_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no run to continue"):
        read_journal(tmp_path)
    with pytest.raises(RunError, match="holds no run"):
        settings_of(tmp_path)


def test_settings_come_back_as_they_were_given(tmp_path: Path) -> None:
    given = read_settings(
        overrides=["learner.hidden=[8]", "train.updates=off", "switch.uplink=2mbit"]
    )
    with Journal(tmp_path, described(given)):
        pass
    back = settings_of(tmp_path)
    assert back == given
    # What followed another key follows it again; what was given is given.
    assert back.learner.model_fields_set == {"hidden"}
    assert back.server.model_fields_set == set()
    write_settings(tmp_path, given)
    assert read_settings(tmp_path / "settings.toml") == given


def test_a_default_of_then_stays_what_it_was_then() -> None:
    line = described(read_settings())
    line["settings"]["learner"]["epochs"] = 17  # as an older version may have had it
    assert read_settings(base=tables_of(line)).learner.model_dump()["epochs"] == 17


def test_a_run_of_before_there_were_journals_has_its_settings(tmp_path: Path) -> None:
    given = read_settings(overrides=["learner.environment=CartPole-v1", "learner.hidden=[8]"])
    record = {"settings": given.model_dump(mode="json")}
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert settings_of(tmp_path).learner == given.learner
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(RunError, match="not the record of a run"):
        settings_of(tmp_path)


def test_what_is_changed_is_said_and_what_cannot_change_is_refused() -> None:
    before = read_settings()
    now = read_settings(overrides=["train.updates=off", "switch.slots=4"])
    assert changes(before, now) == ["train.updates: 16000 -> off", "switch.slots: 8 -> 4"]
    with pytest.raises(RunError, match=r"learner\.environment cannot change from LunarLander-v3"):
        changes(before, read_settings(overrides=["learner.environment=CartPole-v1"]))
