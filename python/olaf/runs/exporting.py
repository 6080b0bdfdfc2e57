"""Exports a run's policy for other programs: ONNX, TorchScript, or named arrays.

ONNX and TorchScript files map ``observation`` ``(batch, *shape)`` to ``action`` (the most likely,
in the environment's form), ``policy`` (logits, or means of continuous actions) and ``value``. A
file is loaded again and compared with the learner's own output before it gets its final name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf import extras
from olaf.checkpoint import Checkpoint
from olaf.errors.outcome import Exit, RunError
from olaf.files.modelfile import OBSERVATIONS, REWARDS, put_into, read_model, write_model
from olaf.rl.moments import LIMIT

KINDS = {"onnx": ".onnx", "torchscript": ".pt", "npz": ".npz"}
"""Kind of file -> ending of its name."""

OUTPUTS = ("action", "policy", "value")

BATCHES = (1, 7, 256)
"""Batch sizes of random observations for the check of a file."""

TOLERANCE = 1e-4
"""Largest allowed difference from the learner's output, relative to the largest output."""

Floats = NDArray[np.float32]
Answers = tuple[NDArray[Any], Floats, Floats]
"""action, policy, value."""


@dataclass(frozen=True)
class Exported:
    """A file that was written and checked."""

    file: Path
    kind: str
    bytes: int
    observations: int
    """Number of random observations in its check."""
    difference: float
    """Largest difference of an output from the learner's."""


def export(
    learner: Any, saved: Checkpoint, kind: str, file: Path, about: dict[str, Any]
) -> Exported:
    """Write the policy of ``learner``, whose weights are ``saved``, and check it.

    about: facts for the file's metadata, such as the environment's name. Raises RunError if it
    cannot be written or differs, MissingExtraError for a missing package.
    """
    if learner.memory_size and kind != "npz":
        raise RunError(
            f"--to {kind}: the policy has a memory (learner.recurrent = "
            f"{learner.config.recurrent!r}), which such a file has no place for; --to npz writes "
            "its arrays",
            Exit.USAGE,
        )
    write: Callable[[Any, Path, dict[str, Any]], Callable[[Floats], Answers]]
    if kind == "npz":

        def write(learner: Any, half: Path, about: dict[str, Any]) -> Callable[[Floats], Answers]:
            return _write_arrays(learner, saved, half, about)

    else:
        write = {"onnx": _write_onnx, "torchscript": _write_torchscript}[kind]
    # The same ending, since some libraries depend on it.
    half = file.with_name(f".{file.stem}.part{file.suffix}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        half.touch()
        answer = write(learner, half, {**about, **_described(learner)})
        difference, count = _compare(learner, answer, kind)
        half.replace(file)
    except OSError as error:
        raise RunError(f"--out {file}: cannot write there ({error.strerror})", Exit.USAGE) from None
    finally:
        half.unlink(missing_ok=True)
    return Exported(file, kind, file.stat().st_size, count, difference)


def _described(learner: Any) -> dict[str, Any]:
    spaces = learner.spaces
    about: dict[str, Any] = {
        "observation_shape": list(spaces.observation_shape),
        "actions": spaces.actions,
        "continuous": spaces.continuous,
    }
    if spaces.continuous:
        about |= {"low": spaces.low.tolist(), "high": spaces.high.tolist()}
    elif len(spaces.discrete) == 1:
        about["start"] = spaces.starts[0]
    else:
        about |= {"parts": list(spaces.discrete), "starts": list(spaces.starts)}
    if (normalisation := learner.normalisation()) is not None:
        shift, factor = normalisation  # ONNX and TorchScript do this themselves
        about["normalisation"] = {
            "shift": shift.tolist(),
            "factor": factor.tolist(),
            "limit": LIMIT,
        }
    return about


# Checking.


def _compare(learner: Any, answer: Callable[[Floats], Answers], kind: str) -> tuple[float, int]:
    """Largest difference from the learner, over random observations. Raises RunError if large."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for count in BATCHES:
        seen = _observations(rng, count, learner)
        own = learner.policy(seen)
        action, policy, value = answer(seen)
        bound = TOLERANCE * max(1.0, float(np.abs(own).max()))
        for name, given, expected in (
            ("policy", policy, own[:, :-1]),
            ("value", np.reshape(value, -1), own[:, -1]),
            ("action", *_actions(learner, seen, own, action, bound)),
        ):
            if given.shape != expected.shape:
                raise RunError(f"--to {kind}: {name} is {given.shape}, expected {expected.shape}")
            difference = float(np.abs(given - expected).max(initial=0.0))
            if not difference <= bound:
                raise RunError(
                    f"--to {kind}: {name} differs from the learner's own by {difference:.3g} on "
                    f"random observations, more than {bound:.3g}; nothing was written"
                )
            largest = max(largest, difference)
    return largest, sum(BATCHES)


def _actions(
    learner: Any, seen: Floats, own: Floats, action: NDArray[Any], bound: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Given and expected actions, without ties, which both may break in any way."""
    expected = np.array(learner.greedy(seen))
    action = np.asarray(action)
    if learner.spaces.whole and action.shape == expected.shape:
        moved = own[:, :-1] * learner.spaces.range.half + learner.spaces.range.middle
        from_half = np.abs(moved - np.floor(moved) - 0.5)
        clear = (from_half > 2 * bound * learner.spaces.range.half).reshape(action.shape)
        return action[clear].astype(np.float64), expected[clear].astype(np.float64)
    if learner.spaces.continuous or action.shape != expected.shape:
        return action, expected
    parts = learner.spaces.discrete
    clear = np.stack(
        [_lead(logits) > 2 * bound for logits in np.split(own[:, :-1], np.cumsum(parts)[:-1], 1)],
        axis=1,
    ).reshape(action.shape)
    return action[clear].astype(np.float64), expected[clear].astype(np.float64)


def _lead(logits: Floats) -> Floats:
    """The distance of the largest of each row from the next one."""
    if logits.shape[1] < 2:
        return np.full(len(logits), np.inf, np.float32)
    best = np.sort(logits, axis=1)
    lead: Floats = best[:, -1] - best[:, -2]
    return lead


def _observations(rng: np.random.Generator, count: int, learner: Any) -> Floats:
    shape = (count, *learner.spaces.observation_shape)
    if learner.spaces.seen:  # an image
        return rng.integers(256, size=shape).astype(np.float32)
    drawn = rng.standard_normal(shape, np.float32)
    normalisation = learner.normalisation()
    if normalisation is None:
        return drawn
    shift, factor = normalisation  # observations as in training, and some beyond the limit
    drawn[::2] *= 4
    seen: Floats = drawn / factor + shift
    return seen


# Named arrays.


def _write_arrays(
    learner: Any, saved: Checkpoint, half: Path, about: dict[str, Any]
) -> Callable[[Floats], Answers]:
    from olaf.rl.learner import named_parts

    write_model(half, saved.version, named_parts(learner), **about)
    again = read_model(half)

    def answer(seen: Floats) -> Answers:
        put_into(learner, again)
        own = learner.policy(seen)
        return np.array(learner.greedy(seen)), own[:, :-1], own[:, -1]

    return answer


# ONNX.


def _write_onnx(learner: Any, half: Path, about: dict[str, Any]) -> Callable[[Floats], Answers]:
    extras.need("onnx", "onnx", "onnxruntime", what="--to onnx")
    if _module_of(learner) is None:
        _onnx_of_layout(learner, half, about)
    else:
        _onnx_of_module(learner, half, about)
    import onnxruntime

    session = onnxruntime.InferenceSession(str(half), providers=["CPUExecutionProvider"])

    def answer(seen: Floats) -> Answers:
        action, policy, value = session.run(list(OUTPUTS), {"observation": seen})
        return action, policy, value

    return answer


def _onnx_of_layout(learner: Any, half: Path, about: dict[str, Any]) -> None:
    """The built-in network as an ONNX graph; it needs no torch."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    spaces, layout = learner.spaces, learner.layout
    arrays = {name: np.array(array) for name, array in learner.named_parts().items()}
    heads = {"weight": arrays.pop("heads.weight"), "bias": arrays.pop("heads.bias")}
    for name, columns in (("policy", slice(0, -1)), ("value", slice(-1, None))):
        arrays[f"{name}.weight"] = np.ascontiguousarray(heads["weight"][:, columns])
        arrays[f"{name}.bias"] = np.ascontiguousarray(heads["bias"][columns])
    for unused in ("log_std", OBSERVATIONS, REWARDS):
        arrays.pop(unused, None)
    nodes, below = _onnx_of_normalisation(learner, arrays)
    for index in range(len(layout.hidden)):
        inputs = [below, f"trunk{index}.weight", f"trunk{index}.bias"]
        nodes.append(helper.make_node("Gemm", inputs, [f"sum{index}"]))
        nodes.append(helper.make_node("Tanh", [f"sum{index}"], [f"hidden{index}"]))
        below = f"hidden{index}"
    for name in ("policy", "value"):
        inputs = [below, f"{name}.weight", f"{name}.bias"]
        nodes.append(helper.make_node("Gemm", inputs, [name]))
    shape: list[str | int] = ["batch"]
    if spaces.continuous:
        arrays |= spaces.range._asdict()
        nodes += [
            helper.make_node("Mul", ["policy", "half"], ["scaled"]),
            helper.make_node("Add", ["scaled", "middle"], ["moved"]),
            helper.make_node("Max", ["moved", "low"], ["above"]),
            helper.make_node("Min", ["above", "high"], ["clipped"]),
        ]
        if spaces.whole:
            nodes.append(helper.make_node("Round", ["clipped"], ["rounded"]))
        shape += list(spaces.shape)
        arrays["action.shape"] = np.array([-1, *spaces.shape], np.int64)
        nodes.append(helper.make_node("Reshape", [nodes[-1].output[0], "action.shape"], ["action"]))
        kind = TensorProto.FLOAT
    else:
        parts = range(len(spaces.discrete))
        arrays["parts"] = np.array(spaces.discrete, np.int64)
        arrays["starts"] = np.array(spaces.starts, np.int64)
        arrays["action.shape"] = np.array([-1, *spaces.shape], np.int64)
        logits = [f"logits{part}" for part in parts]
        indices = [f"likeliest{part}" for part in parts]
        nodes.append(helper.make_node("Split", ["policy", "parts"], logits, axis=1))
        for one, largest in zip(logits, indices, strict=True):
            nodes.append(helper.make_node("ArgMax", [one], [largest], axis=1, keepdims=1))
        nodes += [
            helper.make_node("Concat", indices, ["likeliest"], axis=1),
            helper.make_node("Add", ["likeliest", "starts"], ["moved"]),
            helper.make_node("Reshape", ["moved", "action.shape"], ["action"]),
        ]
        shape += list(spaces.shape)
        kind = TensorProto.INT64
    seen = [helper.make_tensor_value_info("observation", 1, ["batch", spaces.observation])]
    given = [
        helper.make_tensor_value_info("action", kind, shape),
        helper.make_tensor_value_info("policy", 1, ["batch", spaces.actions]),
        helper.make_tensor_value_info("value", 1, ["batch", 1]),
    ]
    weights = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "policy", seen, given, weights)
    # Versions that readers of some years ago support.
    opset = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="olaf")
    helper.set_model_props(model, _texts(about))
    onnx.checker.check_model(model)
    onnx.save(model, str(half))


def _onnx_of_normalisation(learner: Any, arrays: dict[str, Any]) -> tuple[list[Any], str]:
    """The nodes before the network, and the name of their output; adds their constants."""
    from onnx import helper

    if (normalisation := learner.normalisation()) is None:
        return [], "observation"
    arrays["shift"], arrays["factor"] = normalisation
    arrays["least"], arrays["most"] = np.array([-LIMIT], np.float32), np.array([LIMIT], np.float32)
    nodes, below = [], "observation"
    for kind, constant in (("Sub", "shift"), ("Mul", "factor"), ("Max", "least"), ("Min", "most")):
        nodes.append(helper.make_node(kind, [below, constant], [f"after.{constant}"]))
        below = f"after.{constant}"
    return nodes, below


def _onnx_of_module(learner: Any, half: Path, about: dict[str, Any]) -> None:
    import warnings

    import onnx
    import torch

    policy = _policy_module(learner)
    example = torch.zeros(2, *learner.spaces.observation_shape)
    with warnings.catch_warnings():
        # torch calls the exporter that needs no further package legacy, and warns.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            policy,
            (example,),
            str(half),
            input_names=["observation"],
            output_names=list(OUTPUTS),
            dynamic_axes={name: {0: "batch"} for name in ("observation", *OUTPUTS)},
            dynamo=False,
        )
    model = onnx.load(str(half))
    onnx.helper.set_model_props(model, _texts(about))
    onnx.save(model, str(half))


def _texts(about: dict[str, Any]) -> dict[str, str]:
    return {key: v if isinstance(v, str) else json.dumps(v) for key, v in about.items()}


# TorchScript.


def _write_torchscript(
    learner: Any, half: Path, about: dict[str, Any]
) -> Callable[[Floats], Answers]:
    extras.need("torch", "torch", what="--to torchscript")
    import warnings

    import torch

    policy = _policy_module(learner)
    example = torch.zeros(2, *learner.spaces.observation_shape)
    with warnings.catch_warnings():
        # torch prefers its own newer formats, but the user asked for this one.
        warnings.simplefilter("ignore")
        jit: Any = torch.jit
        traced = jit.trace(policy, (example,))
        jit.save(traced, str(half), _extra_files={"olaf.json": json.dumps(about)})
        again = jit.load(str(half))

    def answer(seen: Floats) -> Answers:
        with torch.no_grad():
            action, policy, value = again(torch.from_numpy(seen))
        return action.numpy(), policy.numpy(), value.numpy()

    return answer


def _module_of(learner: Any) -> Any:
    """The torch module, or None for the built-in network."""
    own = getattr(learner, "own_module", None)
    return None if own is None else own()


def _policy_module(learner: Any) -> Any:
    from olaf.runs.policy_module import BuiltIn, Policy

    module = _module_of(learner)
    if module is None:
        module = BuiltIn(learner.layout, learner.named_parts())
    return Policy(module, learner.spaces, learner.normalisation()).eval()
