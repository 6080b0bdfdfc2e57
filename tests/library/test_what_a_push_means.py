"""The two loops that people paste in, for real: a change that local training made, and a gradient.

Both once ran and learnt nothing, or the wrong way round.
"""

from __future__ import annotations

import difflib
import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import olaf

STRANGER = Path(__file__).parents[2] / "examples" / "stranger"
WORKER = STRANGER / "ppo_with_olaf.py"


def play(job: olaf.LocalJob, seeds: range) -> list[str]:
    """Run a worker a seed until each has learnt; what they printed last."""
    runs = [
        subprocess.Popen(
            [sys.executable, str(WORKER), str(seed), job.address],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in seeds
    ]
    last = []
    for run in runs:
        try:
            out, errors = run.communicate(timeout=240)
        except subprocess.TimeoutExpired:
            for one in runs:
                one.kill()
            raise
        assert run.returncode == 0, errors
        assert "pushes are applied at 1.0" in errors
        assert "hardly follows" not in errors
        last.append(out.splitlines()[-1])
    return last


def test_olaf_is_a_few_lines_of_a_strangers_loop() -> None:
    before = (STRANGER / "ppo_before.py").read_text().splitlines()
    after = WORKER.read_text().splitlines()
    changed = [
        line for line in difflib.ndiff(before, after) if line[0] in "+-" and line[2:].strip()
    ]
    assert 80 <= len(before) <= 100
    assert len(changed) <= 10, changed


@pytest.mark.torch
@pytest.mark.timeout(600)
def test_a_ppo_loop_that_pushes_what_it_learnt_solves_cartpole() -> None:
    pytest.importorskip("torch")
    with olaf.local(queue="olaf", slots=8) as job:
        for line in play(job, range(2)):
            found = re.search(r"reward ([\d.]+)", line)
            assert found is not None
            assert float(found[1]) >= 200.0, line
        (served,) = job.stats()["server"]["jobs"]
    assert served["received"] > 20


@pytest.mark.torch
def test_pushed_gradients_descend_as_torchs_own_sgd() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    inputs = torch.randn(64, 3)
    targets = inputs @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.3
    model, simple = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
    simple.load_state_dict(model.state_dict())
    sgd = torch.optim.SGD(simple.parameters(), lr=0.1)
    losses = []
    with olaf.local() as job, olaf.connect(job.address) as switch:
        switch.join(model)
        for _ in range(20):
            model.zero_grad()
            loss = (model(inputs) - targets).pow(2).mean()
            loss.backward()
            losses.append(loss.item())
            switch.push_gradient(model, learning_rate=0.1)
            assert switch.wait(timeout_s=30)
            switch.pull(into=model)
            sgd.zero_grad()
            (simple(inputs) - targets).pow(2).mean().backward()
            sgd.step()
        with pytest.raises(ValueError, match="push_gradient"):
            switch.push(model)
    assert all(later < earlier for earlier, later in itertools.pairwise(losses))
    assert losses[-1] < losses[0] / 20
    for ours, theirs in zip(model.parameters(), simple.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


def test_at_the_papers_factor_a_worker_is_told_what_is_wrong(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with olaf.local(learning_rate=0.0005) as job, olaf.connect(job.address) as switch:
        weights = np.zeros(8, np.float32)
        switch.join(weights)
        for _ in range(25):
            before = olaf.snapshot(weights)
            weights += 1.0
            switch.push_delta(before, weights)
            assert switch.wait(timeout_s=30)
            switch.pull(into=weights)
    said = [r.getMessage() for r in caplog.records if "hardly follows" in r.getMessage()]
    assert len(said) == 1
    assert "multiplies every update by 0.0005" in said[0]
