"""A worker may say what the arrays of its model are called."""

from __future__ import annotations

import json

import pytest
from waiting import until

from conftest import Network, zeros
from olaf.rl.learner import LearnerConfig, layout_of
from olaf.rl.making import make_learner


def test_the_names_of_a_learner_s_arrays_reach_the_server(network: Network) -> None:
    learner = make_learner(LearnerConfig(environment="CartPole-v1"))
    layout = layout_of(learner)
    server = network.server()
    client = network.client(network.switch(server.address).address)
    client.join(learner.parts(), 10.0, layout)

    def arrays() -> int | None:
        (job,) = json.loads(server.stats())["jobs"]
        count: int | None = job["arrays"]
        return count

    assert until(arrays, "the names") == len(json.loads(layout))


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        ("[", "not JSON"),
        ('[{"name": "w", "shape": [9]}]', "the arrays have 9 numbers together; the model has 10"),
        ('[{"name": "", "shape": [10]}]', "a name has 1 to 128 bytes"),
        ('[{"name": "olaf.w", "shape": [10]}]', "does not begin with"),
    ],
)
def test_a_layout_of_another_model_is_refused(network: Network, layout: str, reason: str) -> None:
    client = network.client(network.server().address)
    with pytest.raises(ValueError, match=reason):
        client.join(zeros(), 5.0, layout)
