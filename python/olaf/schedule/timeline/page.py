"""A record as one HTML page that opens in any browser and needs no network."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path
from typing import Any

from olaf.schedule.timeline.layout import lanes, runs, thinned
from olaf.schedule.timeline.record import Record, words

MOST_USES = 200_000
"""Largest number of drawn uses; more are merged with their neighbours, and the page says so."""
BLOCK = 16
"""Hosts per block, if their switches are unknown."""

_HERE = Path(__file__).parent


def page(record: Record, title: str) -> str:
    """The page. title: describes the run to a person."""
    data = json.dumps(drawn(record, title), separators=(",", ":"), ensure_ascii=True)
    parts = {
        "TITLE": escape(title),
        "STYLE": _file("page.css"),
        # A name in the record may hold "</script>", so "<" is always escaped.
        "DATA": data.replace("<", "\\u003c"),
        "SCRIPT": "\n".join(_file(name) for name in ("model.js", "draw.js", "page.js")),
    }
    return re.sub(r"@([A-Z]+)@", lambda place: parts[place[1]], _file("page.html"))


def drawn(record: Record, title: str) -> dict[str, Any]:
    """The data of the page's script: lists in the order of ``fields``, indices for names."""
    end_ns = record.end_ns
    by_job: dict[int | str, list[tuple[int, int]]] = {job.job: [] for job in record.jobs}
    for use in record.uses:
        by_job[use.job].append((use.from_ns, use.to_ns))
    uses, gap_ns = thinned(list(by_job.values()), MOST_USES)
    reasons: dict[str, int] = {}

    def reason(told: Any) -> int:
        return reasons.setdefault(words(told), len(reasons))

    jobs: list[list[Any]] = []
    trees: list[list[Any]] = []
    held: list[tuple[int, tuple[int, int], int]] = []
    for number, (job, spans) in enumerate(zip(record.jobs, uses, strict=True)):
        to_ns = end_ns if job.end_ns is None else job.end_ns
        over = job.end_ns is not None
        jobs.append(
            [str(job.job), job.pattern, runs(job.hosts), job.queued_ns, job.start_ns, to_ns, over,
             job.steps, reason(job.placement), [time for span in spans for time in span]]
        )  # fmt: skip
        for tree in job.trees:
            span = (tree.from_ns, end_ns if tree.to_ns is None else tree.to_ns)
            switches = sorted({*tree.switches} | ({tree.root} if tree.root is not None else set()))
            held += [(switch, span, len(trees)) for switch in switches]
            trees.append([number, *span, tree.root, reason(tree.reason)])
    return {
        "title": title,
        "end": end_ns,
        "hosts": record.hosts,
        "blocks": _blocks(record),
        "switches": record.switches,
        "jobs": jobs,
        "trees": trees,
        "held": _lanes(held, len(record.switches)),
        "reasons": list(reasons),
        "gap": gap_ns,
        "told": _told(record, end_ns),
    }


def _told(record: Record, end_ns: int) -> list[int] | None:
    """Begin and end of the part with recorded uses; None: no part."""
    if record.window is not None:
        return [record.window.from_ns, record.window.to_ns]
    return [0, end_ns] if record.uses else None


def _blocks(record: Record) -> list[tuple[str, int]]:
    """(name, hosts) of each block of neighbouring hosts."""
    if not record.tor_of:
        return [
            (f"from {first}", min(BLOCK, record.hosts - first))
            for first in range(0, record.hosts, BLOCK)
        ]
    blocks: list[tuple[str, int]] = []
    for tor in record.tor_of:
        name = record.switches[tor]
        if blocks and blocks[-1][0] == name:
            blocks[-1] = (name, blocks[-1][1] + 1)
        else:
            blocks.append((name, 1))
    return blocks


def _lanes(held: list[tuple[int, tuple[int, int], int]], switches: int) -> list[list[int]]:
    """For each switch: its number of lanes, then (tree, lane) of each tree that it holds."""
    of: list[list[tuple[tuple[int, int], int]]] = [[] for _ in range(switches)]
    for switch, span, tree in held:
        of[switch].append((span, tree))
    result = []
    for each in of:
        chosen = lanes([span for span, _ in each])
        pairs = [(tree, lane) for (_, tree), lane in zip(each, chosen, strict=True)]
        result.append([max(chosen, default=0) + 1, *(number for pair in pairs for number in pair)])
    return result


def _file(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")
