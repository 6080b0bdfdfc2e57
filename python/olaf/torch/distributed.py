"""`torch.distributed`, without types.

Its stubs lack names that exist, as `Store`, and differ between releases; without the extra there
are none. What the names stand for is below.
"""

# mypy: disable-error-code="import-untyped,import-not-found,unused-ignore"

from typing import Any, TypeAlias

import torch.distributed

dist: Any = torch.distributed

Store: TypeAlias = Any
"""A `dist.Store`: keys and values that all ranks see."""
Gloo: TypeAlias = Any
"""A `dist.ProcessGroupGloo`."""
Work: TypeAlias = Any
"""A `dist.Work`: the handle of a collective."""
