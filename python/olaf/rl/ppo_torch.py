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
from olaf.rl.learner import Iteration, LearnerError, Parts
from olaf.rl.objective import Batch
from olaf.rl.ppo_numpy import NumpyLearner, settle

try:
    import torch
    from tensordict import TensorDict
    from torch import Tensor, nn
    from torchrl.objectives.value.functional import vec_generalized_advantage_estimate
except ModuleNotFoundError as missing:
    told = extras.missing(missing.name, extra="torch", what="learner = 'torch'")
    raise LearnerError(f"{told}, or take learner = 'numpy'") from missing

from olaf.memory.staging import Staging
from olaf.rl.networks import ActorCritic, Network
from olaf.rl.own_module import checked, made_by
from olaf.rl.torch_loss import make_loss


class TorchLearner(NumpyLearner):
    """PPO of a torch module. Implements ``Learner``.

    On the CPU, ``parts()`` are the parameters' own memory. On a GPU they are separate arrays:
    ``collect`` and ``learn`` first copy them to the GPU, and ``learn`` copies the weights back.
    """

    _sees_images = True

    def _start(self) -> None:
        config, spaces = self.config, self.spaces
        first = self._first_draws()
        torch_seed = int(first.integers(2**31))
        self._rng.integers(2**31)  # keeps the place in this worker's numbers
        if config.module or spaces.seen or config.recurrent == "lstm":
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(torch_seed)
                module = (
                    made_by(config.module, spaces) if config.module else Network(config, spaces)
                )
        else:
            self.layout.initial(self._rng, config.log_std)
            module = ActorCritic(self.layout, self.layout.initial(first, config.log_std))
        name = config.module or "the default network"
        self.module = checked(module, name, config, spaces, self.worker)
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
        self._loss = make_loss(self._loss_module(), config, spaces)

    def _loss_module(self) -> nn.Module:
        """The network as the loss calls it."""
        return self.module

    def own_module(self) -> nn.Module | None:
        """The network, unless it is the one that the layout describes."""
        return None if isinstance(self.module, ActorCritic) else self.module

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

    def _network(self) -> Parts:
        """The live weights; on the CPU they share memory with the module's parameters."""
        return self._parts

    def _named_network(self) -> dict[str, NDArray[np.float32]]:
        """The live weights by name: the module's, or those of the default layout."""
        if self.own_module() is None:
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

        if self.config.discount * self.config.trace == 0:  # TorchRL cannot
            return super()._advantages(
                rewards, values, following=following, terminated=terminated, ended=ended
            )
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
        for group in self._optimiser.param_groups:
            group["lr"] = self._rate
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
        if batch.masks is not None:
            tensors["mask"] = self._there(batch.masks)
        found = self._loss(TensorDict(tensors, batch_size=[steps]))
        loss = found["loss_objective"] + found["loss_critic"] + found["loss_entropy"]
        loss.backward()
        return {
            "policy": float(found["loss_objective"].detach()),
            "value": float(found["loss_critic"].detach()) / max(self.config.value, 1e-12),
            "entropy": float(found["entropy"]),
            # TorchRL's is the mean of -log r; r - 1 - log r varies less, and is never below 0.
            "kl": float(found["mean_ratio"]) - 1 + float(found["kl_approx"]),
            "clipped": float(found["clip_fraction"]),
            "loss": float(loss.detach()),
        }
