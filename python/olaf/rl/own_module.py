"""A user's own torch module: made by its factory, placed on a device, and tried once."""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,untyped-decorator,type-arg"

import logging
from typing import Any

import torch
from torch import Tensor, nn

from olaf.errors.telling import tell
from olaf.rl.learner import LearnerConfig, LearnerError
from olaf.rl.own import described, import_own
from olaf.rl.spaces import Spaces


def made_by(path: str, spaces: Spaces) -> Any:
    """The module that the factory ``package.module:name`` makes. Raises ``LearnerError``.

    The factory is called with (observations, actions, continuous). ``observations`` is the number
    of floats of a flat observation, or the shape ``(height, width, channels)`` of an image.
    """
    seen = spaces.seen or spaces.observation
    try:
        return load_factory(path)(seen, spaces.actions, spaces.continuous)
    except LearnerError:
        raise
    except Exception as error:
        raise LearnerError(
            f"module = {path!r}: called with ({seen}, {spaces.actions}, {spaces.continuous}) it "
            f"raised {described(error)}"
        ) from error


def load_factory(path: str) -> Any:
    """The object ``package.module:name``. Raises ``LearnerError``."""
    home, _, name = path.partition(":")
    if not home or not name:
        raise LearnerError(f"module = {path!r}: write it as package.module:factory")
    try:
        return getattr(import_own(home, f"module = {path!r}"), name)
    except AttributeError as error:
        raise LearnerError(f"module = {path!r}: {home} has no {name!r}") from error


def placed(
    device: str, devices: set[torch.device], name: str, worker: int, gpus: int | None = None
) -> torch.device:
    """The device of the network. Raises ``LearnerError`` if it does not exist.

    devices: those of the parameters. gpus: number of GPUs; None asks torch.
    """
    if device == "auto":
        if len(devices) > 1:
            places = ", ".join(sorted(str(place) for place in devices))
            raise LearnerError(f"{name}: parameters on {places}: one network needs one device")
        (place,) = devices
        return place
    if device == "cpu":
        return torch.device("cpu")
    gpus = torch.cuda.device_count() if gpus is None else gpus
    if not gpus:
        raise LearnerError(
            "device = 'cuda': torch sees no GPU (torch.cuda.device_count() is 0); install a torch "
            "that is built for CUDA and its driver, or take device = cpu"
        )
    return torch.device("cuda", worker % gpus)


def checked(
    module: Any, name: str, config: LearnerConfig, spaces: Spaces, worker: int
) -> nn.Module:
    """Try the module on one observation; return it. Raises ``LearnerError`` for a wrong shape.

    A module maps float32 observations ``(batch, *observation_shape)`` to (policy, value): logits or
    means ``(batch, actions)``, and ``(batch,)`` or ``(batch, 1)``. For continuous actions it has
    ``log_std`` ``(actions,)``. Its trainable parameters are float32 and contiguous.
    """
    if not isinstance(module, nn.Module):
        raise LearnerError(f"{name} gave {type(module).__name__}, not a torch.nn.Module")
    devices = {tensor.device for tensor in module.parameters()}
    if not devices:
        raise LearnerError(f"{name}: the module has no parameters")
    device = placed(config.device, devices, name, worker)
    module.to(device)
    for which, tensor in module.named_parameters():
        if tensor.dtype != torch.float32:
            raise LearnerError(
                f"{name}: parameter {which!r} is {tensor.dtype}; workers learn in float32"
            )
        if not tensor.is_contiguous():
            raise LearnerError(f"{name}: parameter {which!r} is not contiguous")
    shape = (2, *spaces.observation_shape)
    with torch.no_grad():
        try:
            given = module(torch.zeros(shape, device=device))
        except Exception as error:
            raise LearnerError(
                f"{name}: forward of observations {shape} raised {described(error)}"
            ) from error
    want = (2, spaces.actions)
    if not (isinstance(given, tuple) and len(given) == 2):
        raise LearnerError(f"{name}: forward must give (policy, value), gave {type(given)}")
    policy, value = given
    if tuple(policy.shape) != want or value.numel() != 2:
        raise LearnerError(
            f"{name}: for 2 observations forward gave policy {tuple(policy.shape)} and value "
            f"{tuple(value.shape)}, expected {want} and (2,) or (2, 1)"
        )
    if spaces.continuous and not hasattr(module, "log_std"):
        raise LearnerError(f"{name}: continuous actions need an attribute log_std of {want[1:]}")
    if (buffer := changing_buffer(module, torch.zeros(shape, device=device))) is not None:
        raise LearnerError(
            f"{name}: a forward pass changes the buffer {buffer!r}, and buffers do not travel to "
            f"the other workers. {INSTEAD}"
        )
    in_one_mode(module, name, tells=worker == 0)
    if depends_on_others(module, shape[1:], device):
        raise LearnerError(
            f"{name}: the policy for an observation depends on the others of its batch, and each "
            f"worker and each evaluation has other batches. {INSTEAD}"
        )
    return module


def changing_buffer(module: nn.Module, observations: Tensor) -> str | None:
    """The name of the first buffer that a forward pass in training changes, or None."""
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    if not before:
        return None
    module.train()
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        module(observations)
    after = dict(module.named_buffers())
    return next((name for name, old in before.items() if not torch.equal(after[name], old)), None)


def depends_on_others(module: nn.Module, shape: tuple[int, ...], device: torch.device) -> bool:
    """Whether an observation of this shape has another policy alone than beside others."""
    numbers = torch.Generator().manual_seed(0)
    seen = torch.randn(4, *shape, generator=numbers).to(device)
    with torch.no_grad():
        among, _ = module(seen)
        try:
            alone, _ = module(seen[:1])
        except ValueError:  # batch norm refuses a batch of one
            return True
    return not torch.allclose(among[:1], alone, rtol=1e-3, atol=1e-4)


def in_one_mode(module: nn.Module, name: str, *, tells: bool) -> None:
    """Put the module into the mode of evaluation, in which it stays.

    PPO compares the probabilities of an action under one policy at two times. With dropout, the
    policy that collected, the one that learns and the one that is evaluated would be three
    (Hausknecht and Wagener 2022).
    """
    module.eval()
    active = [
        which
        for which, part in module.named_modules()
        if getattr(part, "p", 0) and isinstance(part, _DROPOUTS)
    ]
    if active and tells:
        tell(
            logging.WARNING,
            f"{name}: the layer {active[0]!r} drops nothing: PPO compares probabilities of one "
            "policy, so networks stay in eval mode, in training too",
        )
    for part in module.modules():
        if isinstance(part, nn.RNNBase) and not part.dropout:
            part.train()  # on a GPU, cuDNN has no gradient of them in eval mode


INSTEAD = (
    "Take LayerNorm or GroupNorm instead of BatchNorm; learner.normalise = on normalises "
    "observations for all workers"
)

_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d, nn.AlphaDropout)
