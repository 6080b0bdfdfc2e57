"""A record in Chrome's trace event format: open it in ui.perfetto.dev or chrome://tracing.

One process holds the hosts, a thread each, and one the switches. Trees that a switch holds at the
same time get threads of their own: events of one thread may nest, but not overlap.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from olaf.schedule.timeline.layout import lanes, thinned
from olaf.schedule.timeline.record import Job, Record, Tree, words

CLUSTER, HOSTS, SWITCHES = 1, 2, 3
"""Process ids. Some viewers take 0 as no process."""
MOST_USES = 200_000

Event = dict[str, Any]


def trace(record: Record, title: str) -> dict[str, Any]:
    """The trace as an object for JSON; times in microseconds, as the format requires."""
    end_ns = record.end_ns
    events = [
        _named("process_name", CLUSTER, 0, f"cluster: {title}"),
        _named("process_name", HOSTS, 0, "hosts"),
        _named("process_name", SWITCHES, 0, "switches"),
        *(_sorted("process_sort_index", pid, 0, pid) for pid in (CLUSTER, HOSTS, SWITCHES)),
    ]
    used = sorted({host for job in record.jobs for host in job.hosts})
    for host in used:
        tor = f" ({record.switches[record.tor_of[host]]})" if record.tor_of else ""
        events += _thread(HOSTS, host + 1, f"host {host}{tor}")
    for job in record.jobs:
        events += _on_hosts(job, end_ns)
    gap_ns, held = _on_switches(record, end_ns)
    return {
        "traceEvents": events + held + _counters(record, end_ns),
        "displayTimeUnit": "ms",
        "otherData": {"title": title, "uses_merged_up_to_ns": gap_ns},
    }


def _on_hosts(job: Job, end_ns: int) -> list[Event]:
    if job.start_ns is None:
        return []
    to_ns = end_ns if job.end_ns is None else job.end_ns
    about = {
        "pattern": job.pattern,
        "hosts": len(job.hosts),
        "steps": job.steps,
        "queued_s": job.queued_ns / 1e9,
        "placement": words(job.placement),
    }
    return [
        _complete(f"job {job.job}", "job", (HOSTS, host + 1), (job.start_ns, to_ns), about)
        for host in job.hosts
    ]


def _on_switches(record: Record, end_ns: int) -> tuple[int, list[Event]]:
    """Trees on each of their switches, uses on the roots, an arrow from the job to each root."""
    at_switch: dict[int, list[tuple[Job, Tree]]] = defaultdict(list)
    for job in record.jobs:
        for tree in job.trees:
            for switch in set(tree.switches) | ({tree.root} if tree.root is not None else set()):
                at_switch[switch].append((job, tree))
    events: list[Event] = []
    root_thread: dict[int, int] = {}
    thread = 0
    for switch, trees in sorted(at_switch.items()):
        chosen = lanes([(tree.from_ns, _end(tree, end_ns)) for _, tree in trees])
        for lane in range(max(chosen) + 1):
            name = record.switches[switch] + (f" #{lane + 1}" if max(chosen) else "")
            events += _thread(SWITCHES, thread + lane + 1, name)
        for (job, tree), lane in zip(trees, chosen, strict=True):
            tid = thread + lane + 1
            about = {
                "root": None if tree.root is None else record.switches[tree.root],
                "switches": len(tree.switches),
                "why": words(tree.reason),
            }
            name = f"job {job.job}" + (" root" if switch == tree.root else "")
            span = (tree.from_ns, _end(tree, end_ns))
            events.append(_complete(name, "tree", (SWITCHES, tid), span, about))
            if switch == tree.root:
                root_thread[id(tree)] = tid
        thread += max(chosen) + 1
    events += _arrows(record, root_thread)
    gap_ns, uses = _uses(record, root_thread, end_ns)
    return gap_ns, events + uses


def _arrows(record: Record, root_thread: dict[int, int]) -> list[Event]:
    events: list[Event] = []
    for job in record.jobs:
        for tree in job.trees:
            if job.start_ns is None or not job.hosts or id(tree) not in root_thread:
                continue
            number = len(events) // 2 + 1
            common = {"name": "tree of", "cat": "tree", "id": number, "ts": tree.from_ns / 1e3}
            events.append({**common, "ph": "s", "pid": HOSTS, "tid": job.hosts[0] + 1})
            root = root_thread[id(tree)]
            events.append({**common, "ph": "f", "bp": "e", "pid": SWITCHES, "tid": root})
    return events


def _uses(record: Record, root_thread: dict[int, int], end_ns: int) -> tuple[int, list[Event]]:
    by_job: dict[int | str, list[tuple[int, int]]] = {job.job: [] for job in record.jobs}
    for use in record.uses:
        by_job[use.job].append((use.from_ns, use.to_ns))
    kept, gap_ns = thinned(list(by_job.values()), MOST_USES)
    events: list[Event] = []
    for job, spans in zip(record.jobs, kept, strict=True):
        held = [
            (tree.from_ns, _end(tree, end_ns), root_thread[id(tree)])
            for tree in job.trees
            if id(tree) in root_thread
        ]
        held.sort()
        at = 0
        for from_ns, to_ns in spans:
            while at < len(held) and held[at][1] <= from_ns:
                at += 1
            # Cut at the tree's ends: a use begins and ends on one tree, but merged uses may not.
            for tree_from_ns, tree_to_ns, tid in held[at:]:
                if tree_from_ns >= to_ns:
                    break
                span = max(from_ns, tree_from_ns), min(to_ns, tree_to_ns)
                if span[0] < span[1]:
                    events.append(_complete("sums", "use", (SWITCHES, tid), span, {"job": job.job}))
    return gap_ns, events


def _counters(record: Record, end_ns: int) -> list[Event]:
    """Number of hosts that run jobs, with and without a tree."""
    changes: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for job in record.jobs:
        if job.start_ns is None:
            continue
        changes[job.start_ns][0] += len(job.hosts)
        changes[end_ns if job.end_ns is None else job.end_ns][0] -= len(job.hosts)
        for tree in job.trees:
            if tree.root is not None:
                changes[tree.from_ns][1] += len(job.hosts)
                changes[_end(tree, end_ns)][1] -= len(job.hosts)
    events: list[Event] = []
    busy = with_tree = 0
    for at_ns, (more, more_with_tree) in sorted(changes.items()):
        busy, with_tree = busy + more, with_tree + more_with_tree
        counts = {"with a tree": with_tree, "without": busy - with_tree}
        common = {"ph": "C", "pid": CLUSTER, "tid": 0, "ts": at_ns / 1e3}
        events.append({**common, "name": "busy hosts", "args": counts})
    return events


def _end(tree: Tree, end_ns: int) -> int:
    return end_ns if tree.to_ns is None else tree.to_ns


def _complete(
    name: str, kind: str, thread: tuple[int, int], span: tuple[int, int], about: dict[str, Any]
) -> Event:
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "pid": thread[0],
        "tid": thread[1],
        "ts": span[0] / 1e3,
        "dur": (span[1] - span[0]) / 1e3,
        "args": {key: value for key, value in about.items() if value not in (None, "")},
    }


def _thread(pid: int, tid: int, name: str) -> list[Event]:
    return [_named("thread_name", pid, tid, name), _sorted("thread_sort_index", pid, tid, tid)]


def _named(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}}


def _sorted(kind: str, pid: int, tid: int, index: int) -> Event:
    return {"name": kind, "ph": "M", "pid": pid, "tid": tid, "args": {"sort_index": index}}
