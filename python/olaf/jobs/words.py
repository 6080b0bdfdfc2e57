"""Sentences for events, in one place, so that log, display and report use the same words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from olaf.jobs.supervisor import Ended, Started
from olaf.values.defaults import SUMMING
from olaf.values.numbers import counted, score

_SENTENCES = {
    "ready": "plays {environment} with {parameters:parameter}",
    "joined": "joined the job at model version {version}",
    "model_started": "job {job}: worker {worker} sent the first model, {parameters:parameter}",
    "restored": "job {job}: continues from {file}, model version {version}",
    "model_restored": "job {job}: continues from the checkpoint at model version {version}",
    "job_forgotten": "job {job}: forgotten at model version {version}, without workers for "
    "{seconds:.0f} s (server.forget_jobs_after)",
    "checkpoint_kept": "job {job}: the checkpoint stays in {file}; a new job of that number begins "
    "anew, and the file then gets another name",
    "save_failed": "{file} could not be written: {reason}",
    "checkpoint_failed": "job {job}: {file} could not be written: {reason}",
    "checkpoint_not_locked": "{file} has no lock against a second server: {reason}",
    "checkpoint_set_aside": "the previous {file} is kept as {kept_as}",
    "checkpoint_skipped": "job {job}: not saved to {file}: {reason}",
    "worker_joined": "worker {worker} of cluster {cluster} joined job {job} from {address}",
    "worker_left": "worker {worker} of cluster {cluster} left job {job}",
    "fence": "job {job} has failed ({why}): its tree is torn down",
    "left": "job {job} has left",
    "superseded": "another controller has taken over",
    "worker_silent": "worker {worker} of cluster {cluster} is silent",
    "worker_back": "worker {worker} of cluster {cluster} is back",
    "worker_moved": "worker {worker} of cluster {cluster} moved to {address}",
    "worker_refused": "worker {worker} at {address} refused: {reason}",
    "admission_wanted": "may cluster {cluster} of job {job} join? (worker {worker} at {address})",
    "admission_unanswered": "no answer in time whether cluster {cluster} of job {job} may join: "
    "{answer}, as configured",
    "admission_not_asked": "too many clusters wait for an answer to ask about cluster {cluster} of "
    "job {job} too: {answer}, as configured",
    "admission_mismatch": "not as the policy says: {reason}",
    "cluster_admitted": "cluster {cluster} of job {job} admitted after {seconds:.1f} s: {reason}",
    "cluster_refused": "cluster {cluster} of job {job} refused after {seconds:.1f} s: {reason}",
    "server_silent": "server {address} is silent",
    "server_back": "server {address} is back",
    "server_restarted": "server {address} started again",
    "switch_silent": "switch {address} is silent",
    "switch_back": "switch {address} is back",
    "switch_restarted": "switch {address} started again",
    "loop": "updates for job {job} come back from {address}: the switches form a loop, "
    "correct their upstream",
    "path": "the path carries packets of {mtu_bytes:byte}: segments of {segment_lanes:value}",
    "path_too_narrow": "{reason}",
    "path_back": "the path through {through} carries the job's packets again",
    "turned_away": "turned away from job {job}: {reason}",
    "round_without": "a round ended without worker {worker} of cluster {cluster}",
    "model_missing": "no model newer than {model_version} came from {address} within {seconds} s: "
    "continuing with the worker's own",
    "contribution_rejected": "a contribution of worker {worker} rejected: {reason}",
    "contribution_clipped": "a contribution of worker {worker} reduced to the limit of its "
    "{clipped}",
    "model_forged": "model version {version} of job {job} is not the one that the server signed: "
    "the switch {through}, or one above it, changed it; the worker refused the model",
    "signature_forged": "a signature under model version {version} of job {job} is not the "
    "server's: the switch {through}, or one above it, changed it",
    "model_unsigned": "no signature of the server came for model version {version} of job {job} "
    "through {through}: give the server the job's key; the worker refused the model",
    "models_unchecked": "job {job}: the worker has a switch's key and cannot check who made its "
    "models: give it the job's key",
    "datagram_too_large": "a datagram of {bytes} bytes to {address} did not leave: {reason}",
    "send_failed": "a datagram of {bytes} bytes to {address} did not leave: {reason}",
    "generation_began": "job {job}: {workers:worker} reduce together",
    "generation_closed": "job {job}: its workers begin anew before operation {operation}: {reason}",
    "in_generation": "job {job}: rank {rank} of {workers:worker} that reduce together",
    "join_refused": "turned away from job {job}: {reason}",
    "sum_worker_refused": "a worker of job {job} at {address} refused: {reason}",
    "sum_worker_left": "worker {rank} of job {job} left",
    "sum_worker_misplaced": "worker {rank} of job {job} is behind other switches than the topology "
    "says",
    "straggler": "job {job}: worker {rank} is a straggler: {straggling}; {blocks} blocks went "
    "without it",
    "sum_straggler": "job {job}: worker {rank} at {address} is a straggler: {straggling}; {blocks} "
    "blocks went without it",
    "cores_differ": "job {job}: this switch has {here} cores and the switch above {above}: give "
    "both the same --cores; the workers are refused",
    "other_version": "a datagram of {address} has version {version}, and this side speaks version "
    "{own_version}: {reason}",
    "key_refused": "keys kept out a datagram of {address} ({reason}): {advice}",
    "key_of_a_job": "{file} is a job's key, with which a switch could sign models: give the switch "
    "a switch's key (olaf keys switch {file} switch.key)",
    "keys_renewed": "took up the keys of {file}",
    "keys_unreadable": "{file} was replaced and cannot be used, the keys from before stay in use: "
    "{reason}",
    "key_over": "the switch says that this worker's key {key} was replaced, and that the time of "
    "the old one is over: give the worker the job's present key file",
    "suppressed": "{lines:more line} of {of} left out",
    "log_lost": "{lines:line} of its messages lost: {why}",
    "non_finite": "job {job}: worker {rank} sent a NaN or an infinity in operation {operation}",
}


class _Blanks(dict[str, Any]):
    """The fields of a message; ``{workers:worker}`` is a count with its noun."""

    def __getitem__(self, key: str) -> Any:
        value = super().__getitem__(key)
        return _Count(value) if type(value) is int else value

    def __missing__(self, key: str) -> str:
        return _Unknown("?")


class _Count(int):
    def __format__(self, form: str) -> str:
        return counted(int(self), form) if _is_noun(form) else int.__format__(self, form)


class _Unknown(str):
    __slots__ = ()

    def __format__(self, form: str) -> str:
        return f"{self} {form}s" if _is_noun(form) else str(self)


def _is_noun(form: str) -> bool:
    return len(form) > 1 and form.replace(" ", "").isalpha()


def sentence(message: Mapping[str, Any]) -> str:
    """The sentence for an event; an event without a sentence is shown as it is."""
    event = str(message["event"])
    if event == "fault":
        return _fault(message)
    if event == "listening":
        return _listening(message)
    pattern = _SENTENCES.get(event)
    if pattern and event == "restored" and "reason" in message:
        pattern += "; the newest file cannot be used: {reason}"
    if pattern and event == "generation_closed" and "rank" in message:
        pattern += " (worker {rank} at {address})" if "address" in message else " (worker {rank})"
    if pattern and "through" in message:
        # A worker reaches its server only through the switch.
        pattern = pattern.replace("{address}", "behind {through}")
    if pattern:
        return pattern.format_map(_Blanks(message))
    rest = ", ".join(f"{k}={v}" for k, v in message.items() if k not in ("event", "at_ns"))
    return f"{event.replace('_', ' ')}: {rest}" if rest else event.replace("_", " ")


def cause(fault: Mapping[str, Any]) -> str:
    """The error of a message ``fault`` in a line, with its place."""
    place = f" ({fault['where']})" if fault.get("frames") else ""
    return f"{fault['error']}{place}"


def _fault(message: Mapping[str, Any]) -> str:
    """An error in the user's code: its text, and the user's frames."""
    frames = str(message.get("frames", ""))
    return f"{message['error']}\n{frames}" if frames else str(message["error"])


def _listening(message: Mapping[str, Any]) -> str:
    engines = message.get("engines", {})
    if list(engines) in ([], ["queue"]):
        where = f"listens on {message.get('address', '?')}"
    else:
        where = ", ".join(f"{name} listens on {address}" for name, address in engines.items())
    return f"{where}, metrics on {message['metrics']}" if "metrics" in message else where


def started(occurrence: Started) -> str:
    """The sentence for the start or restart of a child."""
    process = f"process {occurrence.pid}" + (
        f" on {occurrence.machine}" if occurrence.machine else ""
    )
    if occurrence.incarnation == 1:
        return f"{occurrence.name} started ({process})"
    return f"{occurrence.name} is started again (#{occurrence.incarnation}, {process})"


def ended(occurrence: Ended) -> str:
    """The sentence for the end of a child and its restart."""
    if occurrence.expected:
        return f"{occurrence.name} stopped"
    then = (
        "given up"
        if occurrence.back_in_s is None
        else f"starting it again in {occurrence.back_in_s:.1f} s"
    )
    return f"{occurrence.name} died: {occurrence.how}; {then}"


def status_of_switch(stats: Mapping[str, Any]) -> str:
    """One line of a switch's statistics: of each of its engines."""
    told = [_status_of_queue(stats)] if "queue" in stats else []
    told += [f"{name}: {_status_of_sums(stats[name])}" for name in SUMMING if name in stats]
    return "; ".join(told)


def _status_of_sums(stats: Mapping[str, Any]) -> str:
    # The server of ATP calls them gradient fragment packets.
    pieces = stats["pieces"] if "pieces" in stats else stats["gradients"]
    # A job is listed for each core; its workers are the same there.
    jobs = "".join(
        f"job {job['job']} with {counted(_number(job['workers']), 'worker')}, "
        for job in stats["jobs"]
        if job.get("core", 0) == 0
    )
    counts = {name: _total(value) for name, value in pieces.items()}
    always = ("received", "summed", "waiting", "late", "repeated")
    fates = ", ".join(
        f"{name.replace('_', ' ')} {counts[name]}"
        for name in dict.fromkeys((*always, *counts))
        if name in counts and (counts[name] or name in always)
    )
    sent = ""
    if "results" in stats:
        sent = f"; results sent {stats['results']}, again {stats['results_again']}"
    return f"{jobs or 'no job yet, '}pieces {fates}{sent}{refused(stats)}"


def _total(counted: int | Mapping[str, int]) -> int:
    """A number, or the sum of numbers by reason."""
    return counted if isinstance(counted, int) else sum(counted.values())


def _number(workers: int | list[Any]) -> int:
    """The engines of papers say how many there are, reduce lists them."""
    return workers if isinstance(workers, int) else len(workers)


def _status_of_queue(stats: Mapping[str, Any]) -> str:
    fates, queue = stats["fates"], stats["queue"]
    return (
        f"received {stats['received']}, left {fates['sent_alone']} alone and {fates['merged']} "
        f"merged in {stats['departures']}, replaced {fates['replaced']}, "
        f"filtered {fates['filtered']}, dropped {sum(fates['dropped'].values())}, "
        f"rejected {sum(fates['rejected'].values())}, waiting {fates['waiting']}; "
        f"queue {queue['used']}/{queue['slots']}{refused(stats)}"
    )


def refused(stats: Mapping[str, Any]) -> str:
    """Refused datagrams by reason, with advice."""
    counts = {reason: count for reason, count in stats.get("refused", {}).items() if count}
    if not counts:
        return ""
    reasons = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in counts.items())
    advice = ": run the same olaf everywhere" if "wrong_version" in counts else ""
    return f"; refused datagrams {sum(counts.values())} ({reasons}{advice})"


def status_of_server(stats: Mapping[str, Any]) -> str:
    """One line of a server's statistics."""
    if not stats["jobs"]:
        return f"no job yet{refused(stats)}"
    jobs = "; ".join(
        f"job {job['job']}: version {job['version']}, {job['received']} contributions in "
        f"{job['deliveries']} deliveries, "
        + ", ".join(
            f"cluster {c['cluster']} age {milliseconds(c['aom_now_ns'])}" for c in job["clusters"]
        )
        for job in stats["jobs"]
    )
    return f"{jobs}{refused(stats)}"


def milliseconds(ns: float | None) -> str:
    """An age as text; a dash before the first delivery."""
    return "-" if ns is None else f"{ns / 1e6:.0f} ms"


def status_of_worker(message: Mapping[str, Any]) -> str:
    """One line of a worker's update."""
    return (
        f"update {message['updates']}, {counted(message['steps'], 'step')}, "
        f"{counted(message['episodes'], 'episode')}, reward {score(message['reward'])}, "
        f"model version {message['model_version']}"
    )
