"""Draws a record of a cluster: which jobs ran on which hosts, and which held which switches.

    record = timeline.read(Path("record.json"))      # or check({...})
    timeline.write(record, Path("page.html"))        # opens in any browser, works offline
    timeline.write(record, Path("trace.json"))       # for ui.perfetto.dev or chrome://tracing
    timeline.write(record, Path("run.record.json"))  # the record itself, for later drawing

``olaf simulate mina --timeline`` makes records; ``record.py`` defines their contents.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from olaf.errors.usage import ConfigurationError
from olaf.schedule.timeline.page import page
from olaf.schedule.timeline.record import Job, Record, Tree, Use, check, read
from olaf.schedule.timeline.trace import trace

__all__ = ["Job", "Record", "Tree", "Use", "check", "page", "read", "trace", "write"]


def write(record: Record | Mapping[str, Any], path: Path, *, title: str = "") -> None:
    """Draw a record: a page if the path ends in .html, Chrome's trace format if in .json.

    A path in .record.json stores the record for ``olaf schedule timeline``.

    title: describes the run to a person. Raises ConfigurationError for an invalid record, an
    unknown ending, and a file that cannot be written.
    """
    checked = record if isinstance(record, Record) else check(record)
    kind = ".record.json" if path.name.lower().endswith(".record.json") else path.suffix.lower()
    match kind:
        case ".record.json":
            text = checked.model_dump_json() + "\n"
        case ".html" | ".htm":
            text = page(checked, title or path.stem)
        case ".json":
            text = json.dumps(trace(checked, title or path.stem), separators=(",", ":")) + "\n"
        case _:
            raise ConfigurationError(f"{path}: name it .html for a page, .json for a trace")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}") from None
