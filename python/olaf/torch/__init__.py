"""Olaf for users of torch.

- the backend ``olaf`` of `torch.distributed`: importing this module registers it.
- `DistributedOptimizer`: any optimizer, with the mean gradient of all workers; beside it
  `broadcast_parameters`, `broadcast_optimizer_state` and `furthest`.
- `sum_hook`, `SumState`: DDP's gradients through the switch, for programs with their own group.
- `parameters`, `gradients`, `step`, `views`: models as numpy arrays that share their memory, for
  `olaf.connect`.
"""

from olaf import extras

extras.need("torch", "torch", what="olaf.torch")

from olaf.sums.state import furthest  # noqa: E402
from olaf.torch.begin_equal import broadcast_optimizer_state, broadcast_parameters  # noqa: E402
from olaf.torch.optimizer import DistributedOptimizer  # noqa: E402
from olaf.torch.options import SumOptions  # noqa: E402
from olaf.torch.tensors import gradients, parameters, step, views  # noqa: E402

__all__ = [
    "DistributedOptimizer",
    "SumOptions",
    "broadcast_optimizer_state",
    "broadcast_parameters",
    "furthest",
    "gradients",
    "parameters",
    "step",
    "views",
]

import torch.distributed  # noqa: E402

if torch.distributed.is_available():  # a few builds of torch leave it out
    from olaf.torch.hook import SumState, sum_hook
    from olaf.torch.process_group import SumProcessGroup, register

    __all__ += ["SumProcessGroup", "SumState", "register", "sum_hook"]

    register()
