"""Olaf for users of torch; see the modules.

- `tensors`: models as numpy arrays that share their memory, for `olaf.connect`.
"""

from olaf.torch.tensors import gradients, parameters, step, views

__all__ = ["gradients", "parameters", "step", "views"]
