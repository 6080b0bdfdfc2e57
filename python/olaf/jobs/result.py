"""The result of a run: the numbers of the final table, as JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from olaf.files.modelfile import BEST
from olaf.files.writing import write_text
from olaf.jobs.evaluation import best_of
from olaf.jobs.limits import goal_of
from olaf.jobs.progress import Progress
from olaf.jobs.settings import Settings
from olaf.jobs.training import Outcome
from olaf.rl.packed import shown

Result = dict[str, Any]


def conclude(outcome: Outcome) -> Result:
    """The result of a run, from counters only."""
    progress = outcome.progress
    settings = progress.settings
    accounts = progress.accounts()
    served = progress.served or {}
    training_s = progress.session_trained_s
    clusters = progress.clusters_at_end
    ages = [one.mean_s for one in clusters.values() if one.mean_s is not None]
    peaks = [one.peak_s for one in clusters.values() if one.peak_s is not None]
    delivered = accounts.count("delivered alone") + accounts.count("delivered merged")
    said = next(iter(progress.ready.values()), {})
    parameters = served.get("parameters") or said.get("parameters", 0)
    payload = 4 * parameters / max(served.get("segments", 1), 1)
    return {
        "outcome": outcome.kind,
        "reason": outcome.reason,
        "exit_code": int(outcome.code),
        "fault": _fault(outcome),
        **_setting(settings),
        "session": {
            "number": len(progress.earlier.sessions) + 1,
            "began_at_s": progress.earlier.at_s,
            "updates": progress.session_updates,
            "env_steps": progress.session_steps,
            "training_s": training_s,
        },
        "wall_s": outcome.ended_s,
        "joined_s": _since(progress.joined_at_s, progress.earlier.at_s),
        "ready_s": _since(progress.first_update_s, progress.earlier.at_s),
        "training_s": progress.trained_s,
        "reached_s": outcome.ended_s if outcome.kind == "reached" else None,
        "reward": {
            "mean": outcome.reward,
            "best": progress.best_reward,
            "goal": goal_of(progress),
            "window": settings.train.reward_window,
            "episodes": len(progress.episodes),
        },
        "learning": {
            "losses": progress.learning.latest,
            "episode_steps": progress.learning.steps,
            "episode_numbers": progress.learning.numbers,
        },
        "warnings": [one._asdict() for one in progress.warned.values()],
        "aggregate": {
            "mode": settings.server.aggregate,
            "collections": served.get("collections", 0),
            "rounds_short": served.get("rounds_short", 0),
        },
        "updates": progress.updates,
        "updates_per_s": _per(progress.session_updates, training_s),
        "env_steps": progress.steps,
        "env_steps_per_s": _per(progress.session_steps, training_s),
        "fates": accounts.to_json(),
        "switches": progress.switches(),
        "loss": accounts.loss,
        "age_of_model": {
            "mean_s": _mean(ages),
            "peak_mean_s": _mean(peaks),
            "clusters": [
                {
                    "cluster": number,
                    "mean_s": one.mean_s,
                    "peak_mean_s": one.peak_s,
                    "deliveries": one.deliveries,
                    "contributions": one.contributions,
                    "staleness_mean": one.staleness_mean,
                    "staleness_max": one.staleness_max,
                    "clock_error_s": one.clock_error_s,
                }
                for number, one in sorted(clusters.items())
            ],
        },
        "fairness": (progress.ages_at_end or served).get("fairness"),
        "staleness": {"mean": served.get("staleness_mean"), "max": served.get("staleness_max")},
        "goodput_bytes_per_s": _per(delivered * payload, training_s),
        "model": {
            "version": served.get("version", progress.local_version),
            "parameters": parameters,
            "segments": served.get("segments", 1),
            "file": outcome.model_file.name if outcome.model_file.exists() else None,
        },
        "evaluation": _evaluation(progress),
        "restarts": outcome.restarts,
        "cpu_s": outcome.cpu_s,
        "machines": progress.machines,
        "uplink_bytes": progress.uplink_bytes,
    }


def write_run(
    folder: Path, outcome: Outcome, result: Result, sessions: Sequence[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """Write ``run.json``, and ``model.npz`` with the names and shapes of its arrays.

    sessions: the start of each session, in order: ``session``, ``began_at`` and ``at_s``.
    """
    progress = outcome.progress
    record = {
        "olaf": version(),
        "written_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "settings": progress.settings.model_dump(mode="json"),
        "result": result,
        "sessions": [dict(session) for session in sessions],
        "history": history(progress),
        "episodes": [
            [round(e.at_s, 3), e.worker, e.reward, e.steps, e.length] for e in progress.episodes
        ],
        "evaluations": [dataclasses.asdict(one) for one in progress.evaluations],
        "events": [
            {
                "at_s": round(h.at_s, 3),
                "who": h.who,
                "text": h.text,
                "trouble": h.trouble,
                "echo": h.echo,
                "printed": h.printed,
            }
            for h in progress.happenings
        ],
        "reports": [
            {"process": r.name, "incarnation": r.number, "final": r.final, "stats": r.stats}
            for _, r in sorted(progress.reports.items())
        ],
    }
    write_text(folder / "run.json", json.dumps(record, indent=1) + "\n")
    _name_parts(outcome)
    return record


def history(progress: Progress) -> list[dict[str, Any]]:
    """The curves of a run, one point per report."""
    return [
        {
            "at_s": round(s.at_s, 3),
            "updates": s.updates,
            "steps": s.steps,
            "reward": s.reward,
            "queue_used": s.queue_used,
            "version": s.version,
            "ages_s": {str(cluster): age for cluster, age in sorted(s.ages_s.items())},
            "counts": s.counts,
            "losses": s.losses,
            "episode_steps": s.episode_steps,
            "episode_numbers": s.episode_numbers,
        }
        for s in progress.samples
    ]


def _fault(outcome: Outcome) -> dict[str, Any] | None:
    """For a run that failed: the process at fault, its end, its error, and its last lines."""
    progress = outcome.progress
    end, told = progress.fault, progress.user_fault
    if end and end.back_in_s is None and not end.name.startswith("worker"):
        told = None  # A switch or the server was given up, whatever a worker's code did before.
    name = told[0] if told else end.name if end else next(reversed(progress.complaints), None)
    if outcome.kind != "failed" or name is None:
        return None
    return {
        "process": name,
        "how": end.how if end and end.name == name else None,
        "error": str(told[1].get("error", "")) if told else "",
        "frames": str(told[1].get("frames", "")) if told else "",
        "lines": list(progress.printed.get(name, ())),
    }


def _name_parts(outcome: Outcome) -> None:
    """Write model.npz again, with the workers' names and shapes of the arrays."""
    ready = next(iter(outcome.progress.ready.values()), {})
    layout = ready.get("layout") or [
        [f"part_{index}", shape] for index, shape in enumerate(ready.get("shapes", ()))
    ]
    if not layout or not outcome.model_file.exists():
        return
    from olaf.files.modelfile import write_named

    write_named(outcome.model_file, outcome.model_file, layout)


def _evaluation(progress: Progress) -> dict[str, Any] | None:
    """The best and the last evaluation of the run, if there was one."""
    best = best_of(progress.evaluations)
    if best is None:
        return None
    return {
        "count": len(progress.evaluations),
        "best": dataclasses.asdict(best),
        "last": dataclasses.asdict(progress.evaluations[-1]),
        "file": BEST if (progress.settings.train.folder / BEST).exists() else None,
    }


def _setting(settings: Settings) -> Mapping[str, Any]:
    switch = settings.switch
    link = "unlimited"
    if switch.uplink is not None:
        link = switch.uplink
    elif switch.credits is not None:
        link = f"{switch.credits} credits"
    local = settings.train.local
    return {
        "environment": shown(settings.learner.environment),
        "learner": settings.learner.learner,
        "normalise": settings.learner.model_dump()["normalise"],
        "local": local,
        "workers": 1 if local else settings.train.workers,
        "clusters": 1 if local else settings.train.clusters,
        "leaves": settings.train.leaves,
        "transport": settings.train.transport,
        "turns_per_push": settings.worker.turns_per_push,
        "queue": switch.queue,
        "slots": switch.slots,
        "uplink": link,
        "gate": switch.gate,
        "rule": settings.server.rule,
        "seed": settings.train.seed,
    }


def _since(at_s: float | None, begin_s: float) -> float | None:
    return None if at_s is None else at_s - begin_s


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _per(count: float, seconds: float) -> float | None:
    return count / seconds if seconds > 0 else None


def version() -> str:
    """Olaf's version."""
    try:
        from olaf._olaf import __version__
    except ImportError:
        return "unbuilt"
    return __version__
