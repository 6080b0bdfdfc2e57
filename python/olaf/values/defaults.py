"""The defaults of the engines as the core says them, in `olaf._olaf.defaults`: none of our own.

The keys are the fields of the settings, but for a rate, which the settings have as text.
"""

from __future__ import annotations

import json
from typing import Any

from olaf import _olaf

_TABLES: dict[str, dict[str, Any]] = json.loads(_olaf.defaults())

SWITCH = _TABLES["switch"]
"""Of ``[switch]`` and ``[leaf]``."""
SERVER = _TABLES["server"]
"""Of ``[server]``."""
WORKER = _TABLES["worker"]
"""Of ``[worker]``, as far as the core reads it."""
SHARING = _TABLES["sharing"]
"""Of the files of ``olaf schedule share`` and ``host``, and of their options."""
_ENGINES = ("reduce", "iswitch", "trio", "atp", "atp_server")
SUMMING: dict[str, dict[str, Any]] = {name: SWITCH.pop(name) for name in _ENGINES}
"""Of ``[switch.reduce]`` and so on: of each engine that sums, by its name."""

for _table in (SWITCH, *SUMMING.values()):
    for _field in [field for field in _table if field.endswith("_bps")]:
        _rate = _table.pop(_field)
        _table[_field.removesuffix("_bps")] = None if _rate is None else _olaf.format_rate(_rate)
