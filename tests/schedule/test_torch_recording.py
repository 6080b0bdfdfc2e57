"""Real training programs recorded: through DDP's hook and through calls, alone and as two."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

PROGRAM = Path(__file__).with_name("recorded_program.py")


@pytest.fixture(autouse=True)
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.fixture
def group(torch: Any) -> Iterator[None]:
    from olaf.torch.recording_models import alone

    with alone():
        yield


def model_of(torch: Any) -> Any:
    torch.manual_seed(1)
    return torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(6)))


def train(torch: Any, model: Any, steps: int, **recording: Any) -> list[Any]:
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(steps):
        optimiser.zero_grad()
        inputs = torch.full((4, 64), step / steps)
        model(inputs).square().mean().backward()
        optimiser.step()
    return [parameter.detach().clone() for parameter in model.parameters()]


def test_the_hook_sees_every_bucket_and_changes_nothing(torch: Any, group: None) -> None:
    from olaf.torch.recording import Recorder

    ddp = torch.nn.parallel.DistributedDataParallel
    plain = train(torch, ddp(model_of(torch), bucket_cap_mb=0.02), 6)
    model, recorder = ddp(model_of(torch), bucket_cap_mb=0.02), Recorder(steps=3, warmup=2)
    recorder.watch(model)
    watched = train(torch, model, 6)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
    seen = recorder.pattern()
    assert len(seen.operations) > 2
    assert seen.size == sum(p.numel() * 4 for p in model.parameters())
    assert 0 < seen.operations[0][0] < seen.operations[-1][0] < seen.duration_ns
    assert recorder.count == 5, "complete; the sixth step was only summed"


def test_passes_under_no_sync_are_part_of_the_step(torch: Any, group: None) -> None:
    from olaf.torch.recording import Recorder

    model = torch.nn.parallel.DistributedDataParallel(model_of(torch))
    recorder = Recorder(steps=2, warmup=2)
    recorder.watch(model)
    for _ in range(4):
        with model.no_sync():
            model(torch.ones(4, 64)).sum().backward()
        model(torch.ones(4, 64)).sum().backward()
    assert len(recorder.pattern().operations) == 1
    assert recorder.count == 4


def test_a_step_of_several_backward_passes_is_counted_by_hand(torch: Any, group: None) -> None:
    from olaf.torch.recording import Recorder

    ddp = torch.nn.parallel.DistributedDataParallel
    actor, critic = ddp(model_of(torch)), ddp(torch.nn.Linear(8, 1))
    recorder = Recorder(steps=2, warmup=2)
    recorder.watch(actor)
    recorder.watch(critic)
    while not recorder.complete:
        actor(torch.ones(4, 64)).sum().backward()
        critic(torch.ones(4, 8)).sum().backward()
        recorder.step()
    assert [size for _, size in recorder.pattern().operations] == [6 * 65 * 64 * 4, 9 * 4]


def test_calls_that_block_and_calls_with_a_handle_are_seen(torch: Any, group: None) -> None:
    import torch.distributed as dist

    from olaf.torch.recording import Recorder

    before = dist.all_reduce
    recorder, loss, gradient = Recorder(steps=2, warmup=1), torch.ones(1), torch.ones(1000)
    with recorder.calls():
        for _ in range(3):
            work = dist.all_reduce(gradient, async_op=True)
            assert work is not None
            torch.ones(200, 200).matmul(torch.ones(200, 200))
            assert work.wait()
            assert work.is_completed()
            dist.all_reduce(loss)
            recorder.step()
    assert dist.all_reduce is before
    seen = recorder.pattern()
    assert [size for _, size in seen.operations] == [4000, 4]
    assert seen.operations[0][0] < seen.operations[1][0]


def test_ddp_within_the_block_is_not_counted_twice(torch: Any, group: None) -> None:
    from olaf.torch.recording import Recorder

    recorder = Recorder(steps=2, warmup=2)
    model = torch.nn.parallel.DistributedDataParallel(model_of(torch))
    recorder.watch(model)
    with recorder.calls():
        while not recorder.complete:
            model(torch.ones(4, 64)).sum().backward()
    assert len(recorder.pattern().operations) == 1


def test_a_model_whose_sums_change_is_refused(torch: Any, group: None) -> None:
    import torch.distributed as dist

    from olaf.torch.recording import Recorder, RecordingError

    recorder = Recorder(steps=3, warmup=1)
    with recorder.calls():
        for step in range(4):
            dist.all_reduce(torch.ones(10 + step))
            recorder.step()
    with pytest.raises(RecordingError, match="step 2 launched 1 all-reduces of 48 bytes; step 1"):
        recorder.pattern()


@pytest.mark.timeout(400)  # two imports of torch: a minute each on a busy machine
def test_two_processes_sum_through_the_recorder_and_record_alike(tmp_path: Path) -> None:
    """Over localhost; each process checks that the other's gradients reached it."""
    store = tmp_path / "store"
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(store), str(rank), str(tmp_path / f"{rank}.json")],
            # Threads that wait for each other by spinning take minutes where cores are scarce.
            env={**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for each in running:
            said, _ = each.communicate(timeout=360)
            assert each.returncode == 0, said
    finally:
        for each in running:
            each.kill()
    told = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for kind in ("ddp", "calls"):
        sizes = [[o["size"] for o in each[kind]["allreduces"]] for each in told]
        assert sizes[0] == sizes[1]
        assert len(sizes[0]) > 1
        assert told[0][kind]["recorded"]["processes"] == 2


def test_the_command_records_a_model_and_says_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from olaf.cli.main import run as olaf

    file = tmp_path / "deep" / "cnn.json"
    asked = ["schedule", "record", "--model", "cnn", "--batch", "2", "--steps", "3"]
    assert olaf([*asked, "--warmup", "2", "--out", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.pop("file") == str(file)
    written = json.loads(file.read_text())
    assert told == written
    assert written["recorded"]["model"] == "cnn"
    assert written["recorded"]["batch"] == 2
    assert sum(o["size"] for o in written["allreduces"]) == 4 * written["recorded"]["parameters"]
