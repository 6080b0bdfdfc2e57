"""A server keeps its jobs in a file, and the next one takes them up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import until

from conftest import Array, Events, Network, stats
from olaf import _olaf, checkpoint

LAYOUT = '[{"name": "w", "shape": [3, 3]}, {"name": "b", "shape": []}]'


def weights() -> list[Array]:
    return [np.arange(10, dtype=np.float32)]


def trained(network: Network, address: str, pushes: int, **config: Any) -> _olaf.Client:
    """A worker that has pushed ones so often, each applied."""
    client = network.client(address, **config)
    version = client.join(weights(), 10.0, LAYOUT)
    for _ in range(pushes):
        client.push([np.ones(10, np.float32)], reward=1.0)
        newer = client.wait(version, 10.0)
        assert newer is not None
        version = newer
        client.pull(weights(), version - 1)
    return client


def saved(file: Path, version: int) -> checkpoint.Checkpoint:
    """The checkpoint, once it is as new."""

    def look() -> checkpoint.Checkpoint | None:
        if not file.exists():
            return None
        found = checkpoint.load(file)
        return found if found.version >= version else None

    found = until(look, f"{file} at version {version}")
    assert found is not None
    return found


def test_a_file_is_written_while_the_job_runs_and_taken_up_after_a_kill(
    network: Network, tmp_path: Path
) -> None:
    file = tmp_path / "deep" / "c.npz"
    server = network.server(checkpoint=str(file), checkpoint_every_ms=20)
    client = trained(network, server.address, 3)
    found = saved(file, 4)
    assert found.arrays["w"].tolist() == (np.arange(9).reshape(3, 3) + 3).tolist()
    assert found.arrays["b"].shape == ()
    assert found.parameters.tolist() == (np.arange(10) + 3.0).tolist()
    assert found.metadata["counts"]["received"] == 3
    assert found.metadata["rule"]["factor"] == 1.0
    # What is on the disk at a kill is what a copy of it holds.
    copy = tmp_path / "copy.npz"
    copy.write_bytes(file.read_bytes())
    client.leave()
    server.stop()

    again = network.server(checkpoint=str(copy))
    events = Events(again)
    (restored,) = until(lambda: events.named("restored"), "the checkpoint")
    assert (restored["job"], restored["version"], restored["file"]) == (1, 4, str(copy))
    late = network.client(again.address)
    parts = [np.zeros(10, np.float32)]
    assert late.join(parts, 10.0) == 4
    late.pull(parts, 0)
    assert parts[0].tolist() == found.parameters.tolist()
    (job,) = stats(again)["jobs"]
    assert (job["received"], job["restored"]["received"], job["arrays"]) == (3, 3, 2)
    until(lambda: events.named("model_restored"), "its model")


def test_a_server_that_stops_in_order_writes_its_last_word(
    network: Network, tmp_path: Path
) -> None:
    file = tmp_path / "c.npz"
    server = network.server(checkpoint=str(file), checkpoint_every_ms=3_600_000)
    trained(network, server.address, 2)
    server.finish()
    assert checkpoint.load(file).version == 3
    told = stats(server)["checkpoint"]
    assert (told["written"], told["failed"], told["version"]) == (1, 0, 3)
    assert checkpoint.load(file).metadata["is_last"]
    server.stop()
    fresh = network.server(checkpoint=str(file), fresh=True)
    assert stats(fresh)["jobs"] == []
    trained(network, fresh.address, 1)
    fresh.stop()
    assert checkpoint.load(file).version == 2
    assert checkpoint.load(tmp_path / "c.npz.before-1").version == 3


def test_the_model_of_a_run_is_taken_up_as_well(network: Network, tmp_path: Path) -> None:
    from olaf.files.modelfile import write_model

    file = tmp_path / "model.npz"
    write_model(file, 7, {"w": np.full((2, 5), 0.5, np.float32)})
    server = network.server(checkpoint=str(file))
    client = network.client(server.address)
    parts = weights()
    assert client.join(parts, 10.0) == 7
    client.pull(parts, 0)
    assert parts[0].tolist() == [0.5] * 10


def test_a_damaged_file_gives_way_and_two_stop_the_start(network: Network, tmp_path: Path) -> None:
    file = tmp_path / "c.npz"
    for _ in range(2):
        server = network.server(checkpoint=str(file))
        trained(network, server.address, 1).leave()
        server.stop()
    file.write_bytes(file.read_bytes()[:100])
    server = network.server(checkpoint=str(file))
    events = Events(server)
    (restored,) = until(lambda: events.named("restored"), "the checkpoint before")
    assert restored["file"].endswith(".previous")
    assert "damaged" in restored["reason"]
    server.stop()
    for damaged in (file, checkpoint.previous(file)):
        damaged.write_bytes(b"PK")
    config = {"listen": "127.0.0.1:0", "checkpoint": str(file)}
    with pytest.raises(ValueError, match=r"c\.npz: damaged .*previous: damaged .*--fresh"):
        _olaf.Server(json.dumps(config))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"checkpoint": "/proc/none/c.npz"}, "the folder cannot be made"),
        ({"checkpoint": "."}, "name"),
        ({"checkpoint": "c.npz", "checkpoint_every_ms": 0}, "checkpoint_every_ms"),
        ({"checkpoint": "{job}/c.npz"}, "into the name of the file"),
    ],
)
def test_a_place_that_cannot_be_is_refused_at_once(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        _olaf.Server(json.dumps({"listen": "127.0.0.1:0", **config}))


def test_a_second_job_is_not_kept_silently_in_the_first_one_s_file(
    network: Network, tmp_path: Path
) -> None:
    file = tmp_path / "c.npz"
    server = network.server(checkpoint=str(file), checkpoint_every_ms=20)
    events = Events(server)
    trained(network, server.address, 1)
    saved(file, 2)
    trained(network, server.address, 1, job=2)
    (skipped,) = until(lambda: events.named("checkpoint_skipped"), "the warning")
    assert skipped["job"] == 2
    assert "{job}" in skipped["reason"]
