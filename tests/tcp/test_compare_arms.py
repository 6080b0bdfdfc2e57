"""`olaf compare` over real processes: the arms do what they say on one narrow uplink."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from olaf.jobs.comparison import carried


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_push_less_often_carries_about_the_bytes_of_olaf_and_tcp_loses_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable, "-m", "olaf", "compare", "--env=CartPole-v1", "--workers=3",
            "--clusters=2", "--queues=olaf", "--seeds=3", "--until-reward=off", "--time-limit=6s",
            "--uplink=300kbit", "--set=learner.environments=2",
            f"--out={tmp_path}", "--json",
        ],
        capture_output=True, text=True, timeout=380, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    comparison = json.loads(done.stdout)
    runs = {run["result"]["arm"]: run["result"] for run in comparison["runs"]}
    assert list(runs) == ["olaf", "push-less-often", "tcp"]
    assert [run["folder"] for run in comparison["runs"]] == [f"{arm}-seed3" for arm in runs]
    for run in runs.values():
        assert run["fates"]["matches"], run["fates"]
        # The link of each carries no more updates than its rate allows, drain included.
        update_bits = 8 * 4 * run["model"]["parameters"]
        assert carried(run) * update_bits <= 300_000 * (run["training_s"] + 20)
    olaf, less, tcp = runs.values()
    k = less["turns_per_push"]
    assert k > 1
    assert olaf["turns_per_push"] == tcp["turns_per_push"] == 1
    # k turns of 500 steps for each push.
    assert less["env_steps"] >= 500 * k * less["updates"]
    # For each turn of training no more crosses the uplink than with OLAF, however busy the machine
    # was in either run; the last push of each worker may come early.
    per_turn = [carried(run) / (run["env_steps"] / 500) for run in (olaf, less)]
    assert per_turn[1] <= 1.1 * per_turn[0]
    # A model that came to be of k turns moved on at each push.
    assert less["model"]["version"] - 1 <= less["updates"]
    assert tcp["loss"] == 0.0
    assert tcp["transport"] == "tcp"
    page = (tmp_path / "compare.html").read_text()
    assert f"k = {k}" in page
    assert "push-less-often" in comparison["verdict"]
    assert "An interval needs five seeds" in comparison["verdict"]
