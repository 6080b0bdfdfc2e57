"""TensorBoard and Weights & Biases: tags as documented, at environment steps, while a run goes."""

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small_runs import LOCAL, Olaf

from olaf.jobs.evaluation import Evaluation, Played
from olaf.jobs.instruments import INSTRUMENTS
from olaf.jobs.progress import Earlier, Progress, Sample
from olaf.jobs.settings import Settings
from olaf.report.scalars import TAGS, Scalars, run_id, values_of
from olaf.runs.journal import read_journal

ROOT = Path(__file__).resolve().parents[2]


def events(folder: Path) -> Iterator[tuple[str, int, float]]:
    """``(tag, step, value)`` of every scalar in a folder's event files."""
    from tensorboardX.proto.event_pb2 import Event  # type: ignore[import-untyped]

    for file in sorted(folder.glob("events.out.tfevents.*")):
        data = file.read_bytes()
        at = 0
        while at + 12 <= len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            event: Any = Event.FromString(data[at + 12 : at + 12 + size])
            at += 12 + size + 4
            for value in event.summary.value:
                yield value.tag, event.step, value.simple_value


def documented() -> set[str]:
    text = (ROOT / "docs" / "reference" / "tensorboard.md").read_text()
    return set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))


def pattern(tag: str) -> str:
    """A tag as the documentation writes it."""
    tag = re.sub(r"^(age_s/cluster_)\d+$", r"\1<C>", tag)
    tag = re.sub(r"^(episode/worker_)\d+$", r"\1<W>", tag)
    tag = re.sub(r"^info/.+$", "info/<NAME>", tag)
    return re.sub(r"^fates/\w+$", "fates/<FATE>", tag)


def sample(at_s: float, steps: int) -> Sample:
    counts = {"merged": 3, "waiting": 1}
    losses = dict.fromkeys(INSTRUMENTS, 0.5)
    numbers = {"success": 0.75, "energy": 3.5}
    version = steps // 100
    return Sample(
        at_s, version, steps, 1.5, 2, version, {0: 0.1, 7: 0.2}, counts, losses, 80.0, numbers
    )


def evaluation(steps: int) -> Evaluation:
    greedy = Played(episodes=5, mean=float(steps), std=1.0, min=0.0, max=9.0, steps_mean=7.0)
    return Evaluation(1.0, 2, steps, 3, greedy, replace(greedy, mean=steps - 1.0))


def test_the_page_lists_the_tags_that_are_written_and_no_others(tmp_path: Path) -> None:
    assert documented() == set(TAGS)
    progress = Progress(Settings())
    with Scalars(tmp_path) as scalars:
        for index in range(3):
            progress.samples.append(sample(float(index), 100 * index))
            progress.evaluations.append(evaluation(100 * index))
            scalars.stands(progress, "training")
    written = {pattern(tag) for tag, _, _ in events(tmp_path)}
    assert written | {"train/episode_reward", "episode/worker_<W>"} == documented()
    sampled = [
        (step, value) for tag, step, value in events(tmp_path) if tag == "evaluation/sampled"
    ]
    assert sampled == [(0, -1.0), (100, 99.0), (200, 199.0)]  # each once


def test_a_run_writes_its_scalars_at_environment_steps(olaf: Olaf) -> None:
    olaf(*LOCAL, "--updates=6")
    folder = olaf.folder / "runs" / "latest"
    found = list(events(folder))
    assert {pattern(tag) for tag, _, _ in found} <= documented()
    updates = [(step, value) for tag, step, value in found if tag == "train/updates"]
    assert updates[-1] == (6 * 200, 6.0)
    assert {"train/entropy", "train/value_loss", "train/episode_length"} <= {t for t, _, _ in found}
    assert all(step == value * 200 for step, value in updates)
    episodes = [(step, value) for tag, step, value in found if tag == "train/episode_reward"]
    journal = read_journal(folder)
    assert episodes == [(e.steps, e.reward) for e in journal.episodes]
    # A resumed run goes on in a second file, at the steps that follow.
    olaf("train", "--resume=runs/latest", "--updates=9")
    assert len(list(folder.glob("events.out.tfevents.*"))) == 2
    steps = [step for tag, step, _ in events(folder) if tag == "train/updates"]
    assert steps == sorted(steps)
    assert steps[-1] == 9 * 200
    again = [(step, value) for tag, step, value in events(folder) if tag == "train/episode_reward"]
    assert again[: len(episodes)] == episodes  # none of them twice
    assert len(again) == len(read_journal(folder).episodes)


def test_scalars_are_on_disk_while_the_run_goes(tmp_path: Path) -> None:
    import time

    progress = Progress(Settings())
    with Scalars(tmp_path) as scalars:
        deadline = time.monotonic() + 60
        # Nobody closes it: `stands` flushes it now and then.
        while not any(tag == "train/updates" for tag, _, _ in events(tmp_path)):
            assert time.monotonic() < deadline
            progress.samples.append(sample(time.monotonic(), 100))
            scalars.stands(progress, "training")
            time.sleep(0.05)


def test_sessions_that_begin_within_a_second_keep_a_file_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tensorboardX.event_file_writer.time.time", lambda: 1_700_000_000.25)
    progress = Progress(Settings())
    for session in range(12):
        with Scalars(tmp_path) as scalars:
            progress.samples = [sample(1.0, 100 * session)]
            scalars.stands(progress, "training")
    steps = [step for tag, step, _ in events(tmp_path) if tag == "train/updates"]
    assert steps == [100 * session for session in range(12)]


def test_torch_is_not_imported_for_scalars(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise RuntimeError('torch was imported')")
    code = (
        "import pathlib, sys; from olaf.report.scalars import Scalars\n"
        f"Scalars(pathlib.Path({str(tmp_path)!r})).close(); assert 'torch' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_rates_are_over_the_seconds_before() -> None:
    values = values_of(sample(6.0, 1600), sample(1.0, 600))
    assert values["train/env_steps_per_s"] == pytest.approx(200.0)
    assert values["train/updates_per_s"] == pytest.approx(2.0)
    assert "train/updates_per_s" not in values_of(sample(6.0, 1600), None)
    assert "train/reward" not in values_of(Sample(1.0, 1, 100, None, 0, 1, {}, {}), None)


def test_the_learners_numbers_have_the_names_that_people_know() -> None:
    values = values_of(sample(6.0, 1600), None)
    assert values["train/approx_kl"] == values["train/clip_fraction"] == 0.5
    assert values["train/episode_length"] == 80.0
    assert (values["train/success"], values["info/energy"]) == (0.75, 3.5)
    without = values_of(Sample(1.0, 1, 100, None, 0, 1, {}, {}), None)
    assert not {tag for tag in without if "loss" in tag or "length" in tag}


def test_what_earlier_sessions_wrote_is_not_written_again(tmp_path: Path) -> None:
    earlier = Earlier(sessions=[{}], samples=[sample(1.0, 100)])
    progress = Progress(Settings(), earlier)
    with Scalars(tmp_path) as scalars:
        scalars.stands(progress, "training")
        progress.samples.append(sample(2.0, 200))
        scalars.stands(progress, "training")
    assert [step for tag, step, _ in events(tmp_path) if tag == "train/updates"] == [200]


def records(log: bytes) -> Iterator[bytes]:
    """The records of a LevelDB log, as Weights & Biases keeps a run in a file of its own.

    Blocks of 32 KiB, the first with a header of seven bytes; a record has checksum, length and
    whether it is whole (1), or its first (2), middle (3) or last (4) part.
    """
    whole, at = b"", 7
    while at + 7 <= len(log):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        size, part = struct.unpack_from("<HB", log, at + 4)
        whole += log[at + 7 : at + 7 + size]
        at += 7 + size
        if part in (1, 4):
            yield whole
            whole = b""


@pytest.mark.slow
def test_weights_and_biases_gets_the_same_without_a_network(olaf: Olaf) -> None:
    from wandb.proto import wandb_internal_pb2 as proto

    olaf(*LOCAL, "--updates=4", "--wandb=lab", WANDB_MODE="offline", WANDB_SILENT="true")
    (file,) = (olaf.folder / "runs" / "latest").glob("wandb/offline-run-*/run-*.wandb")
    seen: dict[str, list[str]] = {}
    made: Any = proto  # its classes are made when it is imported
    kind = made.Record
    for data in records(file.read_bytes()):
        record: Any = kind.FromString(data)
        if record.HasField("run"):
            assert record.run.project == "lab"
            assert record.run.run_id == run_id(olaf.folder / "runs" / "latest")
        for item in record.history.item:
            name = item.key or "/".join(item.nested_key)
            seen.setdefault(name, []).append(item.value_json)
    assert float(seen["train/updates"][-1]) == 4
    assert float(seen["env_steps"][-1]) == 800
    assert {pattern(tag) for tag in seen if "/" in tag} <= documented()


def test_runs_in_folders_of_one_name_are_two_runs_there(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "out", tmp_path / "b" / "out"
    for folder in (first, second):
        folder.mkdir(parents=True)
    assert run_id(first) != run_id(second)
    assert run_id(first) == run_id(first.rename(tmp_path / "moved"))
    (second / "wandb-id").unlink()
    (second / "wandb").mkdir()  # a run of before
    assert run_id(second) == "out"


def test_a_service_that_does_not_begin_is_said_with_what_to_do(
    olaf: Olaf, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    def refused(**settings: Any) -> None:
        raise wandb.Error("no API key configured")

    monkeypatch.setattr(wandb, "init", refused)
    said = olaf(*LOCAL, "--updates=1", "--wandb", code=2).stderr
    assert "no API key configured" in said
    assert "WANDB_MODE=offline" in said
    assert not list((olaf.folder / "runs").glob("*"))


def test_without_the_extra_it_is_named_before_anything_is_trained(
    olaf: Olaf, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setitem(sys.modules, "wandb", None)
    said = olaf(*LOCAL, "--updates=1", "--wandb", code=2).stderr
    assert "--wandb needs wandb" in said
    assert "scripts/env wandb" in said
    assert not list((olaf.folder / "runs").glob("*"))
