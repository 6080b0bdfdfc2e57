"""What `olaf.Connection` hands to the core and takes from it: memory, not copies."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

import olaf
from olaf.push_pull.connection import Connection, Model
from olaf.push_pull.movement import PATIENCE_S, PUSHES, ROUNDS, Movement

Array = NDArray[np.float32]


PLAIN = {
    "kind": "delta",
    "aggregate": "each",
    "step": "overlap",
    "gate": "none",
    "factor": 1.0,
    "staleness_power": 0.7,
}


class Client:
    """The core's client as far as memory goes; its newest model is ``model`` at ``version``."""

    def __init__(self) -> None:
        self.worker = 7
        self.version = 0
        self.model: list[Array] = []
        self.pushed: list[tuple[list[Array], float, float]] = []
        self.left = 0
        self.told_rule: dict[str, object] = {**PLAIN}

    def join(self, weights: Sequence[Array], timeout_s: float, layout: str | None = None) -> int:
        self.layout = json.loads(layout or "null")
        self.version = self.version or 1
        self.model = self.model or [part.copy() for part in weights]
        return self.version

    def push(self, parts: Sequence[Array], *, reward: float, weight: float = 1.0) -> int:
        for part in parts:
            assert part.dtype == np.float32
            assert part.flags.c_contiguous
        self.pushed.append((list(parts), reward, weight))
        return len(self.pushed) - 1

    def rule(self) -> str | None:
        return json.dumps(self.told_rule)

    def pull(self, parts: Sequence[Array], newer_than: int) -> int | None:
        if self.version <= newer_than:
            return None
        for part, own in zip(parts, self.model, strict=True):
            part[...] = own
        return self.version

    def wait(self, newer_than: int, timeout_s: float) -> int | None:
        return self.version if self.version > newer_than else None

    def flush(self, timeout_s: float) -> bool:
        return True

    def stats(self) -> str:
        return json.dumps({"role": "worker"})

    def events(self) -> list[str]:
        return [json.dumps({"event": "switch_silent"})]

    def leave(self) -> None:
        self.left += 1

    def serve(self, *parts: Any) -> None:
        """Let there be a new model."""
        self.version += 1
        self.model = [np.asarray(part, np.float32) for part in parts]


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def connection(client: Client) -> Connection:
    return Connection(cast(Any, client))


def test_float32_arrays_are_pushed_where_they_lie(connection: Connection, client: Client) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert connection.push(array, reward=1.5, weight=2.0) == 0
    ((parts, reward, weight),) = client.pushed
    assert parts[0] is array
    assert (reward, weight) == (1.5, 2.0)


@pytest.mark.parametrize("dtype", ["f8", "f2", ">f4", "i4"])
def test_other_dtypes_are_converted_once(
    connection: Connection, client: Client, dtype: str
) -> None:
    connection.push([np.arange(3).astype(dtype)])
    np.testing.assert_array_equal(client.pushed[0][0][0], [0, 1, 2])


def test_strided_arrays_are_copied(connection: Connection, client: Client) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3).T
    connection.push([array])
    np.testing.assert_array_equal(client.pushed[0][0][0], array)


def test_the_first_workers_weights_stay_as_they_are(connection: Connection) -> None:
    weights = [np.ones((2, 2), np.float32), np.zeros(3, np.float32)]
    assert connection.join(weights) == 1
    assert connection.version == 1
    np.testing.assert_array_equal(weights[0], np.ones((2, 2)))


def test_a_later_workers_weights_become_the_jobs(connection: Connection, client: Client) -> None:
    client.serve(np.full(3, 5.0))
    weights = np.zeros(3, np.float32)
    connection.join(weights)
    np.testing.assert_array_equal(weights, np.full(3, 5.0))


def test_pull_gives_fresh_arrays_of_the_joined_shapes(
    connection: Connection, client: Client
) -> None:
    connection.join([np.zeros((2, 2), np.float32), np.zeros(1, np.float32)])
    assert connection.pull() is None
    client.serve(np.full((2, 2), 3.0), [4.0])
    model = connection.pull()
    assert isinstance(model, Model)
    assert model.version == 2
    assert [part.shape for part in model.parts] == [(2, 2), (1,)]
    np.testing.assert_array_equal(model.parts[0], np.full((2, 2), 3.0))
    assert connection.pull() is None


def test_pull_into_writes_in_place_whatever_the_layout(
    connection: Connection, client: Client
) -> None:
    plain, double = np.zeros(2, np.float32), np.zeros(2, np.float64)
    strided = np.zeros((2, 2), np.float32)[:, 0]
    connection.join([plain, double, strided])
    client.serve([1, 2], [3, 4], [5, 6])
    assert connection.pull(into=[plain, double, strided]) == 2
    for array, expected in ((plain, [1, 2]), (double, [3, 4]), (strided, [5, 6])):
        np.testing.assert_array_equal(array, expected)
    assert connection.pull(into=[plain, double, strided]) is None


def test_read_only_weights_join_and_are_pulled_apart(
    connection: Connection, client: Client
) -> None:
    client.serve([9.0, 9.0])
    weights = np.zeros(2, np.float32)
    weights.flags.writeable = False
    connection.join(weights)
    np.testing.assert_array_equal(weights, [0, 0])
    model = connection.pull()
    assert model is not None
    np.testing.assert_array_equal(model.parts[0], [9, 9])
    with pytest.raises(ValueError, match="read-only"):
        connection.pull(into=weights)


def test_pull_before_join_says_what_to_do(connection: Connection) -> None:
    with pytest.raises(ValueError, match=r"before join\(\)"):
        connection.pull()


@pytest.mark.parametrize("wrong", [{"a": 1}, "weights", [[1.0, 2.0]], [], None, 3.0])
def test_what_is_no_array_is_refused(connection: Connection, wrong: object) -> None:
    with pytest.raises(ValueError, match="expected an array"):
        connection.push(wrong)


def test_complex_numbers_are_refused(connection: Connection) -> None:
    with pytest.raises(ValueError, match="real numbers"):
        connection.push(np.zeros(2, np.complex64))


def test_leaving_happens_at_the_end_of_the_block(connection: Connection, client: Client) -> None:
    with connection as same:
        assert same is connection
        assert same.worker == 7
        assert same.flush()
        assert same.stats() == {"role": "worker"}
        assert same.events() == [{"event": "switch_silent"}]
        before = client.left
    assert (before, client.left) == (0, 1)


@pytest.mark.torch
def test_tensors_share_their_memory_both_ways(connection: Connection, client: Client) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(4)
    connection.join([tensor])
    connection.push([tensor])
    assert client.pushed[0][0][0].ctypes.data == tensor.data_ptr()
    client.serve([1, 2, 3, 4])
    assert connection.pull(into=[tensor]) == 2
    assert tensor.tolist() == [1, 2, 3, 4]


@pytest.mark.torch
def test_a_modules_gradients_are_pushed_and_its_parameters_written(
    connection: Connection, client: Client
) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(2, 1)
    connection.join(module)
    with pytest.raises(ValueError, match=r"call backward\(\)"):
        connection.push_gradient(module, learning_rate=0.5)
    module(torch.tensor([[1.0, 2.0]])).sum().backward()
    module.bias.grad = None
    connection.push_gradient(module, learning_rate=0.5)
    weight, bias = client.pushed[0][0]
    np.testing.assert_array_equal(weight, [[-0.5, -1.0]])
    np.testing.assert_array_equal(bias, [0.0])
    before = module.weight.data_ptr()
    client.serve([[7.0, 8.0]], [9.0])
    assert connection.pull(into=module) == 2
    assert module.weight.tolist() == [[7.0, 8.0]]
    assert module.weight.data_ptr() == before


@pytest.mark.torch
def test_tensors_that_numpy_cannot_see_are_converted(
    connection: Connection, client: Client
) -> None:
    torch = pytest.importorskip("torch")
    half = torch.ones(2, dtype=torch.bfloat16)
    connection.join([half])
    connection.push([half])
    np.testing.assert_array_equal(client.pushed[0][0][0], [1, 1])
    client.serve([2, 3])
    connection.pull(into=[half])
    assert half.tolist() == [2, 3]


def test_names_and_shapes_go_to_the_server(connection: Connection, client: Client) -> None:
    connection.join([np.zeros((2, 3), np.float32), np.zeros(4)])
    assert client.layout == [
        {"name": "array_0", "shape": [2, 3]},
        {"name": "array_1", "shape": [4]},
    ]


@pytest.mark.torch
def test_a_modules_parameters_have_their_names(connection: Connection, client: Client) -> None:
    torch = pytest.importorskip("torch")
    connection.join(torch.nn.Linear(3, 2))
    assert client.layout == [{"name": "weight", "shape": [2, 3]}, {"name": "bias", "shape": [2]}]


# The three ways to push.


def test_a_delta_is_what_the_model_should_move_by(connection: Connection, client: Client) -> None:
    before = [np.ones((2, 2), np.float32), np.zeros(3, np.float32)]
    after = [np.full((2, 2), 3.0, np.float32), np.full(3, -1.0, np.float32)]
    assert connection.push_delta(before, after, reward=2.0, weight=3.0) == 0
    ((parts, reward, weight),) = client.pushed
    np.testing.assert_array_equal(parts[0], np.full((2, 2), 2.0))
    np.testing.assert_array_equal(parts[1], np.full(3, -1.0))
    assert (reward, weight) == (2.0, 3.0)


def test_a_gradient_is_a_step_downhill(connection: Connection, client: Client) -> None:
    connection.push_gradient(np.array([1.0, -2.0], np.float32), learning_rate=0.1, reward=4.0)
    ((parts, reward, _),) = client.pushed
    np.testing.assert_allclose(parts[0], [-0.1, 0.2], rtol=1e-6)
    assert reward == 4.0


def test_the_buffer_of_a_delta_is_made_once(connection: Connection, client: Client) -> None:
    before, after = np.zeros(4, np.float32), np.ones(4, np.float32)
    connection.push_delta(before, after)
    connection.push_delta(before, after)
    connection.push_gradient(after, learning_rate=1.0)
    places = {parts[0].ctypes.data for parts, _, _ in client.pushed}
    assert len(places) == 1


@pytest.mark.parametrize("dtype", ["f8", "f2", ">f4", "i8", "u1"])
def test_a_delta_of_other_dtypes_is_exact(
    connection: Connection, client: Client, dtype: str
) -> None:
    connection.push_delta(np.array([3, 200]).astype(dtype), np.array([1, 201]).astype(dtype))
    np.testing.assert_array_equal(client.pushed[0][0][0], [-2, 1])


def test_before_that_was_not_copied_is_refused(connection: Connection) -> None:
    weights = np.zeros((2, 2), np.float32)
    with pytest.raises(ValueError, match=r"same memory.*olaf\.snapshot"):
        connection.push_delta(weights, weights)
    with pytest.raises(ValueError, match="same memory"):
        connection.push_delta([weights[:]], [weights])


def test_a_snapshot_is_a_copy_of_its_own() -> None:
    weights: list[NDArray[Any]] = [np.arange(3.0), np.ones((2, 2), np.float32)]
    copy = olaf.snapshot(weights)
    weights[0][...] = 7
    np.testing.assert_array_equal(copy[0], [0, 1, 2])
    assert [part.dtype for part in copy] == [np.float32, np.float32]
    assert not np.shares_memory(copy[1], weights[1])


def test_models_that_do_not_belong_together_are_named(connection: Connection) -> None:
    one, other = np.zeros((3, 1), np.float32), np.zeros(3, np.float32)
    with pytest.raises(ValueError, match=r"array 0: before has the shape \(3, 1\), after \(3,\)"):
        connection.push_delta(one, other)
    with pytest.raises(ValueError, match="before has 2 arrays, after has 1"):
        connection.push_delta([one, one], [other])


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_learning_rate_that_cannot_be_is_refused(connection: Connection, rate: float) -> None:
    with pytest.raises(ValueError, match=r"learning_rate = .*above 0"):
        connection.push_gradient(np.zeros(2, np.float32), learning_rate=rate)


def test_a_generator_of_arrays_is_read_once(connection: Connection, client: Client) -> None:
    connection.push(np.full(2, n, np.float32) for n in (1, 2))
    np.testing.assert_array_equal(client.pushed[0][0][1], [2, 2])


def test_a_dict_of_arrays_is_refused_with_advice(connection: Connection) -> None:
    with pytest.raises(ValueError, match=r"not dict: pass the module itself"):
        connection.join({"weight": np.zeros(2, np.float32)})


@pytest.mark.torch
def test_push_refuses_a_module_and_its_parameters(connection: Connection, client: Client) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(2, 1)
    module(torch.ones(1, 2)).sum().backward()
    for meant in (module, list(module.parameters()), module.weight, module.parameters()):
        with pytest.raises(ValueError, match=r"push_gradient\(module.*push_delta\(before"):
            connection.push(meant)
    assert client.pushed == []


@pytest.mark.torch
def test_deltas_and_snapshots_of_a_module(connection: Connection, client: Client) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(2, 1)
    before = olaf.snapshot(module)
    with torch.no_grad():
        module.weight += 1.0
        module.bias -= 2.0
    connection.push_delta(before, module)
    weight, bias = client.pushed[0][0]
    np.testing.assert_allclose(weight, [[1.0, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(bias, [-2.0], rtol=1e-6)
    with pytest.raises(ValueError, match="same memory"):
        connection.push_delta([p.detach() for p in module.parameters()], module)


@pytest.mark.torch
def test_the_gradients_of_parameters_may_be_given_apart(
    connection: Connection, client: Client
) -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(1, 1)
    module(torch.full((1, 1), 3.0)).sum().backward()
    connection.push_gradient(module.parameters(), learning_rate=1.0)
    connection.push_gradient([p.grad for p in module.parameters()], learning_rate=1.0)
    for parts, _, _ in client.pushed:
        assert [part.reshape(-1).tolist() for part in parts] == [[-3.0], [-1.0]]


# What a connection says.


def test_joining_says_what_a_push_will_do(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    one = Connection(cast(Any, client), address="udp://10.0.0.1:5555", job=3)
    assert one.rule is None
    one.join(np.zeros(2, np.float32))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("olaf", "INFO")
    assert record.getMessage() == (
        "joined job 3 at 10.0.0.1:5555 (model version 1); pushes are applied at 1.0: the server "
        "does model += 1 * k^-0.7 * update, while k workers push"
    )
    assert one.rule == olaf.Rule("delta", "each", "overlap", "none", 1.0, 0.7)


def test_a_quiet_connection_says_only_warnings(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    Connection(cast(Any, client), quiet=True).join(np.zeros(2, np.float32))
    assert caplog.records == []
    client.told_rule["factor"] = 0.001
    Connection(cast(Any, client), quiet=True).join(np.zeros(2, np.float32))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "applied at 0.001, not at 1" in record.getMessage()
    assert "--learning-rate 1" in record.getMessage()


def test_the_paper_literal_rule_is_a_warning(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    client.told_rule |= {"kind": "paper-literal", "factor": 0.001}
    Connection(cast(Any, client)).join(np.zeros(2, np.float32))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "only an update whose reward beats the best so far" in record.getMessage()


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"staleness_power": 0.0, "step": "sum"}, "model += 1 * sum(update)"),
        ({"gate": "best"}, "while k workers push, unless the reward is below the best one"),
        ({"aggregate": "round"}, "while k workers push, once per round of all workers"),
        ({"aggregate": "periodic", "factor": 0.5}, "model += 0.5 * "),
    ],
)
def test_a_rule_explains_itself_in_one_sentence(told: dict[str, object], sentence: str) -> None:
    assert sentence in str(olaf.Rule.from_json(json.dumps({**PLAIN, **told})))


def _script(lines: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"import logging\nfrom olaf.errors.telling import tell\n{lines}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


def test_a_plain_script_sees_it_on_standard_error() -> None:
    ran = _script("tell(logging.INFO, 'one'); tell(logging.WARNING, 'two')")
    assert (ran.stdout, ran.stderr) == ("", "olaf: one\nolaf: warning: two\n")


@pytest.mark.parametrize(
    ("setup", "seen"),
    [
        ("logging.basicConfig(level=logging.INFO, format='%(name)s|%(message)s')", "olaf|one\n"),
        ("logging.basicConfig()", ""),
        ("logging.getLogger('olaf').setLevel(logging.WARNING)", ""),
        ("logging.getLogger('olaf').addHandler(logging.NullHandler())", ""),
    ],
)
def test_a_program_that_configured_logging_decides_itself(setup: str, seen: str) -> None:
    assert _script(f"{setup}\ntell(logging.INFO, 'one')").stderr == seen


# A model that does not follow.


def _play(connection: Connection, client: Client, factor: float, rounds: int) -> None:
    """Push and pull; the server applies each update at ``factor``."""
    weights = np.zeros(4, np.float32)
    connection.join(weights)
    for _ in range(rounds):
        connection.push(np.ones(4, np.float32))
        client.serve(client.model[0] + np.float32(factor))
        connection.pull(into=weights)


@pytest.mark.parametrize(
    ("told", "cause"),
    [
        ({"factor": 0.0005}, "multiplies every update by 0.0005.*--learning-rate 1"),
        ({"gate": "best"}, "Pass the episode's reward"),
        ({}, "do not reach the server, or it refuses them"),
    ],
)
def test_a_worker_that_moves_nothing_is_told_once(
    connection: Connection,
    client: Client,
    caplog: pytest.LogCaptureFixture,
    told: dict[str, object],
    cause: str,
) -> None:
    client.told_rule |= told
    _play(connection, client, factor=0.0005, rounds=3 * ROUNDS)
    said = [r.getMessage() for r in caplog.records if "hardly follows" in r.getMessage()]
    assert len(said) == 1
    assert "worker 7 of job 1" in said[0]
    assert "moved by 0.0005 of the pushed change" in said[0]
    assert re.search(cause, said[0])


def test_a_worker_that_moves_the_model_is_told_nothing(
    connection: Connection, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    _play(connection, client, factor=0.002, rounds=3 * ROUNDS)
    assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


def test_measuring_ends_and_lets_its_memory_go() -> None:
    movement, model = Movement(), [np.zeros(2, np.float32)]
    movement.joined(model)
    for number in range(ROUNDS):
        assert not movement.over
        movement.pushed([np.ones(2, np.float32)])
        assert movement.verdict(None) is None
        movement.pulled([np.full(2, number + 1.0, np.float32)])
        assert movement.verdict(None) is None
    assert movement.over


def test_a_model_that_never_comes_is_noticed_by_pushes_and_time() -> None:
    now = [0.0]
    movement = Movement(clock=lambda: now[0])
    movement.joined([np.zeros(2, np.float32)])
    for _ in range(2 * PUSHES):
        movement.pushed([np.ones(2, np.float32)])
        movement.pulled(None)
        assert movement.verdict(None) is None  # a slow network is no fault
    now[0] = PATIENCE_S
    said = movement.verdict(None)
    assert said is not None
    assert "0 newer models" in said


@pytest.mark.parametrize(
    ("value", "said"), [(float("nan"), "not finite"), (float("inf"), "not finite"), (0.0, "zero")]
)
def test_updates_that_cannot_teach_are_named(value: float, said: str) -> None:
    movement = Movement()
    movement.joined([np.zeros(2, np.float32)])
    for _ in range(ROUNDS):
        movement.pushed([np.full(2, value, np.float32)])
        movement.pulled([np.zeros(2, np.float32)])
    assert said in (movement.verdict(None) or "")


def test_large_numbers_are_finite() -> None:
    movement = Movement()
    movement.joined([np.zeros(2, np.float32)])
    movement.pushed([np.full(2, 1e30, np.float32)])
    assert movement.verdict(None) is None
