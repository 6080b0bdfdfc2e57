"""`olaf train --transport tcp`, whole: real processes, CartPole, a narrow link."""

import json
from pathlib import Path
from typing import Any

import commands
import pytest

from olaf.errors.usage import ConfigurationError
from olaf.jobs.reading import read_settings

TRAIN = (
    "train",
    "--transport=tcp",
    "--env=CartPole-v1",
    "--workers=3",
    "--clusters=2",
    "--set=learner.environments=2",
    "--set=train.reward_window=40",
)


def olaf(folder: Path, *argv: str, code: int = 0) -> Any:
    done = commands.olaf(*argv, "--json", folder=folder, timeout_s=140)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_plain_tcp_server_learns_and_its_sums_match(tmp_path: Path) -> None:
    result = olaf(tmp_path, *TRAIN, "--until-reward=60", "--time-limit=60s", "--uplink=500kbit")
    assert result["outcome"] == "reached"
    assert result["reward"]["mean"] >= 60
    assert result["transport"] == "tcp"
    fates = result["fates"]
    assert fates["matches"], fates
    assert result["loss"] == 0.0
    delivered = next(row["count"] for row in fates["rows"] if row["fate"] == "delivered alone")
    unsent = sum(row["count"] for row in fates["rows"] if row["fate"] in ("unsent", "under way"))
    assert delivered == fates["pushed"] - unsent > 0
    assert result["staleness"]["mean"] >= 0
    assert [c["deliveries"] > 0 for c in result["age_of_model"]["clusters"]] == [True, True]
    # The bytes that reached the server are those of the updates, and of the joins.
    update = 4 * result["model"]["parameters"]
    assert update * delivered <= result["uplink_bytes"] <= update * (delivered + 2) * 1.05
    # And no more than the link carries in the time.
    assert result["uplink_bytes"] * 8 <= 500_000 * (result["training_s"] + 15)
    # What it learnt is there, under the names that other runs have.
    record = json.loads((tmp_path / "runs" / "latest" / "run.json").read_text())
    assert record["result"] == result
    from olaf import checkpoint

    saved = checkpoint.load(tmp_path / "runs" / "latest" / "model.npz")
    assert saved.version == result["model"]["version"] == delivered + 1
    # It goes on from its checkpoint, and the model with it.
    more = olaf(tmp_path, "train", "--resume=runs/latest", "--until-reward=off",
                f"--updates={result['updates'] + 6}")  # fmt: skip
    assert more["model"]["version"] > saved.version
    assert more["fates"]["matches"], more["fates"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["train.leaves=2"], "`train.leaves` = 2 does not go with `train.transport` = 'tcp'"),
        (["server.aggregate=round"], "`server.aggregate` = 'round' does not go"),
        (["worker.transmission=fair"], "`worker.transmission` = 'fair' does not go"),
        (["switch.credits=4"], "`switch.credits` = 4 does not go"),
        (["switch.downlink=1mbit"], "`switch.downlink` = '1mbit' does not go"),
    ],
)
def test_what_a_plain_server_does_not_have_is_refused_by_name(more: list[str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        read_settings(overrides=["train.transport=tcp", *more])
