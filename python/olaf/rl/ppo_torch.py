"""PPO of any torch module, with TorchRL's loss and advantages: ``--learner torch``.

For users' own networks. It collects exactly as the built-in learner does; policy, gradient and
optimiser are torch's. The default module has the built-in learner's layout in one flat parameter,
so workers of both kinds can share a job. Imported only when it is used.
"""

# mypy checks this file with and without torch; without it everything of torch is Any.
# mypy: disable-error-code="import-untyped,import-not-found,misc,untyped-decorator,type-arg"

from typing import Any

import numpy as np
from numpy.typing import NDArray

from olaf import extras
from olaf.rl.actor_critic import Layout
from olaf.rl.learner import Iteration, LearnerError, Parts
from olaf.rl.objective import Batch
from olaf.rl.own import described, import_own
from olaf.rl.ppo_numpy import NumpyLearner, settle
from olaf.rl.spaces import Spaces

try:
    import torch
    from tensordict import TensorDict
    from tensordict.nn import (
        ProbabilisticTensorDictModule,
        ProbabilisticTensorDictSequential,
        TensorDictModule,
    )
    from torch import Tensor, nn
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value.functional import vec_generalized_advantage_estimate
except ModuleNotFoundError as missing:
    told = extras.missing(missing.name, extra="torch", what="learner = 'torch'")
    raise LearnerError(f"{told}, or take learner = 'numpy'") from missing

from olaf.staging import Staging


class ActorCritic(nn.Module):
    """The built-in learner's network as a torch module: same layout, same first weights.

    All parameters lie in ``flat``, float32 ``(layout.size,)``, in ``Layout``'s order.
    """

    def __init__(self, layout: Layout, weights: NDArray[np.float32]) -> None:
        super().__init__()
        self.layout = layout
        self.flat = nn.Parameter(torch.from_numpy(weights.copy()))

    def view(self, name: str) -> Tensor:
        """Return one of the layout's arrays, as part of the graph."""
        entry = next(entry for entry in self.layout.entries if entry.name == name)
        return self.flat[entry.offset : entry.offset + entry.size].view(entry.shape)

    @property
    def log_std(self) -> Tensor:
        """``(actions,)``; only for continuous actions."""
        return self.view("log_std")

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """``(batch, observation)`` to policy ``(batch, actions)`` and value ``(batch,)``."""
        hidden = observations
        for index in range(len(self.layout.hidden)):
            weight, bias = self.view(f"trunk{index}.weight"), self.view(f"trunk{index}.bias")
            hidden = torch.tanh(torch.addmm(bias, hidden, weight))
        outputs = torch.addmm(self.view("heads.bias"), hidden, self.view("heads.weight"))
        return outputs[:, :-1], outputs[:, -1]


class Keyed(nn.Module):
    """A module's outputs under TorchRL's names: distribution, then value (.., 1)."""

    def __init__(self, module: nn.Module, continuous: bool) -> None:
        super().__init__()
        self.module: Any = module
        self.continuous = continuous

    def forward(self, observations: Tensor) -> tuple[Tensor, ...]:
        """``(logits, value)``, or ``(loc, scale, value)`` for continuous actions."""
        policy, value = self.module(observations)
        value = value.reshape(-1, 1)
        if not self.continuous:
            return policy, value
        return policy, torch.exp(self.module.log_std).expand_as(policy), value


class TorchLearner(NumpyLearner):
    """PPO of a torch module. Implements ``Learner``.

    On the CPU, ``parts()`` are the parameters' own memory. On a GPU they are separate arrays:
    ``collect`` and ``learn`` first copy them to the GPU, and ``learn`` copies the weights back.
    """

    def _flat(self) -> bool:
        """A user's own module sees observations in their shape."""
        return not self.config.module

    def _start(self) -> None:
        config, spaces = self.config, self.spaces
        first = self._first_draws()
        torch_seed = int(first.integers(2**31))
        self._rng.integers(2**31)  # keeps the place in this worker's numbers
        if config.module:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(torch_seed)
                module = made_by(config.module, spaces)
        else:
            self.layout.initial(self._rng, config.log_std)
            module = ActorCritic(self.layout, self.layout.initial(first, config.log_std))
        self.module = checked(module, config.module or "ActorCritic", self)
        self._tensors = [parameter for parameter in module.parameters() if parameter.requires_grad]
        self._device = self._tensors[0].device
        self._staging = self._beside()
        if self._staging is None:
            self._parts: Parts = [tensor.detach().numpy() for tensor in self._tensors]
        else:
            hosted = self._staging.hosted(self._tensors)
            self._parts = [tensor.numpy().copy() for tensor in hosted]
        self._updates: Parts = [np.zeros_like(part) for part in self._parts]
        self._optimiser = torch.optim.Adam(
            self._tensors,
            lr=config.learning_rate,
            betas=(config.adam_beta1, config.adam_beta2),
            eps=1e-5,
        )
        self._loss = make_loss(module, self)

    def _beside(self) -> Staging | None:
        """Buffers for a network whose memory the host cannot read."""
        return None if self._device.type == "cpu" else Staging()

    def collect(self) -> int:
        """See `NumpyLearner.collect`; a network on a GPU first takes the pulled weights."""
        self._take_over()
        return super().collect()

    def learn(self, passes: int | None = None) -> Iteration:
        """See `NumpyLearner.learn`; a network on a GPU first takes the pulled weights."""
        self._take_over()
        return super().learn(passes)

    def _take_over(self) -> None:
        if self._staging is not None:
            for index, (part, tensor) in enumerate(zip(self._parts, self._tensors, strict=True)):
                self._staging.receiving(index, tensor)[...] = part
            self._staging.send(dict(enumerate(self._tensors)))

    def _trained(self) -> None:
        """Copy the trained weights into ``parts()``."""
        if self._staging is not None:
            hosted = self._staging.hosted(self._tensors)
            for part, tensor in zip(self._parts, hosted, strict=True):
                part[...] = tensor.numpy()

    @property
    def parameters(self) -> int:
        """Number of floats of the model: the module's trainable parameters."""
        return sum(part.size for part in self._parts)

    def parts(self) -> Parts:
        """Return the live weights; on the CPU they share memory with the module's parameters."""
        return self._parts

    def named_parts(self) -> dict[str, NDArray[np.float32]]:
        """Return the live weights by name: the module's, or those of the default layout."""
        if isinstance(self.module, ActorCritic):
            return self.layout.views(self._parts[0])
        names = [name for name, tensor in self.module.named_parameters() if tensor.requires_grad]
        return dict(zip(names, self._parts, strict=True))

    def _there(self, array: NDArray[Any]) -> Tensor:
        """An array as a tensor on the network's device."""
        return torch.from_numpy(array).to(self._device)

    @torch.no_grad()
    def _outputs(self, observations: NDArray[np.float32]) -> NDArray[np.float32]:
        policy, value = self.module(self._there(observations))
        both = torch.cat([policy, value.reshape(-1, 1)], dim=1)
        outputs: NDArray[np.float32] = both.cpu().numpy()
        return outputs

    def _log_std(self) -> NDArray[np.float32] | None:
        if not self.spaces.continuous:
            return None
        log_std: Any = self.module.log_std
        array: NDArray[np.float32] = log_std.detach().cpu().numpy()
        return array

    def _advantages(
        self,
        rewards: NDArray[np.float32],
        values: NDArray[np.float32],
        *,
        following: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        ended: NDArray[np.bool_],
    ) -> NDArray[np.float32]:
        def series(array: NDArray[Any]) -> Tensor:
            """(steps, environments) to TorchRL's (environments, steps, 1)."""
            return torch.from_numpy(np.ascontiguousarray(array.T))[..., None]

        advantages, _ = vec_generalized_advantage_estimate(
            self.config.discount,
            self.config.trace,
            series(values),
            series(following),
            series(rewards),
            series(ended),
            series(terminated),
        )
        back: NDArray[np.float32] = advantages[..., 0].numpy().T
        return np.ascontiguousarray(back)

    def _learn(self, batch: Batch, passes: int) -> tuple[Parts, dict[str, float]]:
        config = self.config
        if config.gradient_kind == "gradient":
            self._optimiser.zero_grad()
            losses = self._backward(batch.normalised())
            for update, tensor in zip(self._updates, self._tensors, strict=True):
                gradient = tensor.grad
                update[...] = 0 if gradient is None else -gradient.cpu().numpy()
            squares = sum(float(np.vdot(update, update)) for update in self._updates)
            losses["gradient_norm"] = squares**0.5
            return self._updates, losses
        before = [part.copy() for part in self._parts]
        total: dict[str, float] = {}
        for epoch in self._epochs(batch, passes):
            total = {}
            for rows in epoch:
                self._optimiser.zero_grad()
                losses = self._backward(rows)
                norm = nn.utils.clip_grad_norm_(self._tensors, config.max_gradient_norm)
                losses["gradient_norm"] = float(norm)
                for name, value in losses.items():
                    total[name] = total.get(name, 0.0) + value / len(epoch)
                self._optimiser.step()
        self._trained()
        for update, old, new in zip(self._updates, before, self._parts, strict=True):
            settle(new, old, update, config)
        return self._updates, total

    def _backward(self, batch: Batch) -> dict[str, float]:
        """Write the loss's gradient to the parameters; return losses as the built-in learner."""
        steps = len(batch.advantages)
        tensors = {
            "observation": self._there(batch.observations),
            "action": self._there(batch.actions),
            "action_log_prob": self._there(batch.log_probabilities),
            "advantage": self._there(batch.advantages)[:, None],
            "value_target": self._there(batch.returns)[:, None],
        }
        found = self._loss(TensorDict(tensors, batch_size=[steps]))
        loss = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
        loss.backward()
        return {
            "policy": float(found["loss_objective"].detach()),
            "value": float(found["loss_critic"].detach()) / max(self.config.value, 1e-12),
            "entropy": float(found["entropy"]),
            "kl": float(found["kl_approx"]),
            "clipped": float(found["clip_fraction"]),
            "loss": float(loss.detach()),
        }


def make_loss(module: nn.Module, learner: TorchLearner) -> ClipPPOLoss:
    """TorchRL's clipped loss on a module that gives policy and value in one pass."""
    config, continuous = learner.config, learner.spaces.continuous
    names = ["loc", "scale"] if continuous else ["logits"]
    keyed = TensorDictModule(
        Keyed(module, continuous), in_keys=["observation"], out_keys=[*names, "state_value"]
    )
    distribution: Any = torch.distributions.Categorical
    if continuous:
        distribution = DiagonalNormal
    actor = ProbabilisticTensorDictSequential(
        keyed,
        ProbabilisticTensorDictModule(
            in_keys=names, out_keys=["action"], distribution_class=distribution
        ),
    )
    return ClipPPOLoss(
        actor_network=actor,
        critic_network=keyed,
        functional=False,
        clip_epsilon=config.clip,
        entropy_coeff=config.entropy,
        # TorchRL's l2 is (v - R)^2, the built-in learner's is half of that.
        critic_coeff=config.value / 2,
        loss_critic_type="l2",
        normalize_advantage=False,  # already done, as in the built-in learner
    )


class DiagonalNormal(torch.distributions.Independent):
    """Independent normal dimensions: one log probability and one entropy per step."""

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        super().__init__(torch.distributions.Normal(loc, scale, validate_args=False), 1)


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


def checked(module: Any, name: str, learner: NumpyLearner) -> nn.Module:
    """Try the module on one observation; return it. Raises ``LearnerError`` for a wrong shape.

    A module maps float32 observations ``(batch, *observation_shape)`` to (policy, value): logits or
    means ``(batch, actions)``, and ``(batch,)`` or ``(batch, 1)``. For continuous actions it has
    ``log_std`` ``(actions,)``. Its trainable parameters are float32 and contiguous.
    """
    spaces = learner.spaces
    if not isinstance(module, nn.Module):
        raise LearnerError(f"{name} gave {type(module).__name__}, not a torch.nn.Module")
    devices = {tensor.device for tensor in module.parameters()}
    if not devices:
        raise LearnerError(f"{name}: the module has no parameters")
    device = placed(learner.config.device, devices, name, learner.worker)
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
    return module
