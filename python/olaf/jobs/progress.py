"""The state of a training run, from the messages of its processes; display and report read it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from olaf.jobs import words
from olaf.jobs.accounts import Accounts, nothing, settle
from olaf.jobs.course import Cluster, Earlier, Episode, Happening, Push, Sample, clusters_of
from olaf.jobs.evaluation import Evaluation
from olaf.jobs.incarnation import Incarnation
from olaf.jobs.instruments import Gathered
from olaf.jobs.settings import Settings
from olaf.jobs.supervisor import Ended, Occurrence, Printed, Said, Started
from olaf.jobs.warnings import ENDLESS, ENDLESS_STEPS, Heard, Watch, endless
from olaf.processes.lines import clock_here

__all__ = [
    "Cluster",
    "Earlier",
    "Episode",
    "Happening",
    "Progress",
    "Push",
    "Sample",
    "clusters_of",
]

RECENT_S = 5.0
"""Seconds over which rates are taken."""

ROUTINE = {
    "alive",
    "update",
    "turn",
    "stats",
    "finished",
    "stopped",
    "saved",
    "listening",
    "ready",
    "joined",
    "worker_joined",
    "worker_left",
}
"""Events that are no news: the display shows their contents in another place."""

GOOD_NEWS = {
    "model_started",
    "restored",
    "model_restored",
    "switch_back",
    "server_back",
    "worker_back",
    "path",
    "path_back",
}

LAST_LINES = 30
"""Lines of a process that are kept for the report of a run that failed."""

ECHO_S = 3.0
"""All workers notice the death of a switch: the first report is news, the others are echoes."""

LASTING = {"path", "models_unchecked", "fault"}
"""Events that say the same of all workers for the whole run: one report of each is news."""


@dataclass
class Progress:
    """The state of the run so far. Times are seconds since its launch."""

    settings: Settings
    earlier: Earlier = field(default_factory=Earlier)
    """Totals of a resumed run's earlier sessions; `updates`, `steps` and the curves continue
    them."""
    reports: dict[tuple[str, int], Incarnation] = field(default_factory=dict)
    """Last statistics of each incarnation of each process."""
    updates_of: dict[tuple[str, int], Mapping[str, Any]] = field(default_factory=dict)
    """Last ``update`` message of each incarnation of each worker."""
    ready: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    """Workers that have reported their last push."""
    stopped: dict[str, str] = field(default_factory=dict)
    """Processes that have stopped, and why."""
    addresses: dict[str, str] = field(default_factory=dict)
    episodes: list[Episode] = field(default_factory=list)
    """Every finished training episode."""
    pushes: list[Push] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)
    """Evaluations of the model while it trained, see `olaf.jobs.evaluating`."""
    complaints: dict[str, str] = field(default_factory=dict)
    """Last line that each process printed, or the error of the user's code that ended it."""
    printed: dict[str, deque[str]] = field(default_factory=dict)
    """The last lines that each process printed."""
    user_fault: tuple[str, Mapping[str, Any]] | None = None
    """The last error of the user's code: its process, and the message ``fault``."""
    fault: Ended | None = None
    """The last unexpected end of a process, or of one that was given up."""
    joined_at_s: float | None = None
    first_update_s: float | None = None
    last_update_s: float | None = None
    now_s: float = 0.0
    best_reward: float | None = None
    local_version: int | None = None
    """Version of the model if there is no server (`olaf train --local`)."""
    ages_at_end: Mapping[str, Any] | None = None
    """The server's report of the job when training ended, before queue and workers stopped."""
    _recent: deque[float] = field(default_factory=deque)
    _window: deque[float] = field(default_factory=deque)
    _iterations: dict[int, int] = field(default_factory=dict)
    _said_at: dict[str, float] = field(default_factory=dict)
    _settled: set[tuple[str, int]] = field(default_factory=set)
    learning: Gathered = field(init=False)
    """What the learners report of their learning."""
    warned: dict[str, Heard] = field(default_factory=dict)
    """The warnings of this session, by name."""
    _watch: Watch = field(init=False)
    _copies: int = field(init=False)
    _to_say: deque[Happening] = field(default_factory=deque)

    def __post_init__(self) -> None:
        earlier = self.earlier
        self.episodes += earlier.episodes
        self.samples += earlier.samples
        self.happenings += earlier.happenings
        self.evaluations += earlier.evaluations
        self.best_reward = earlier.best_reward
        window = self.settings.train.reward_window
        last = earlier.episodes[-window:]
        self._window.extend(episode.reward for episode in last)
        learner = self.settings.learner.model_dump()
        self._copies = int(learner["environments"])
        self._watch = Watch(
            1 if self.settings.train.local else self.settings.train.workers,
            learner["max_gradient_norm"],
        )
        self.learning = Gathered(window, [e.length for e in last if e.length is not None])

    def take(self, occurrence: Occurrence, at_s: float) -> Happening | None:
        """Take in an occurrence; return the line of the log that it deserves, if any."""
        self.now_s = at_s
        happening = self._understand(occurrence, at_s)
        if happening:
            self.happenings.append(happening)
        return happening

    def sample(self, at_s: float) -> None:
        """Add a sample of the run's state."""
        self.now_s = at_s
        counts = self.switch_counts()
        for fate, count in self.earlier.counts.items():
            counts[fate] = counts.get(fate, 0) + count
        reading = self.learning.reading()
        self.samples.append(
            Sample(
                at_s=at_s,
                updates=self.updates,
                steps=self.steps,
                reward=self.reward,
                queue_used=self.queue[0],
                version=self.version,
                ages_s={n: c.age_s for n, c in self.clusters.items() if c.age_s is not None},
                counts=counts,
                losses=reading.losses,
                episode_steps=reading.steps,
                episode_numbers=reading.numbers,
            )
        )

    @property
    def updates(self) -> int:
        """Updates pushed by all workers, in all incarnations and sessions."""
        return self.earlier.updates + self.session_updates

    @property
    def session_updates(self) -> int:
        """Updates pushed since the run was started or resumed."""
        return sum(message["updates"] for message in self.updates_of.values())

    @property
    def steps(self) -> int:
        """Environment steps of all workers, in all sessions."""
        return self.earlier.steps + self.session_steps

    @property
    def session_steps(self) -> int:
        """Environment steps since the run was started or resumed."""
        return sum(message["steps"] for message in self.updates_of.values())

    @property
    def session_trained_s(self) -> float:
        """Seconds from the first worker's join to the last update, in this session."""
        began_s = self.joined_at_s or 0.0
        return max((self.last_update_s or began_s) - began_s, 0.0)

    @property
    def trained_s(self) -> float:
        """Seconds of training in all sessions."""
        return self.earlier.trained_s + self.session_trained_s

    @property
    def reward(self) -> float | None:
        """Mean reward of the last finished episodes; None until there are enough of them."""
        enough = len(self._window) >= self.settings.train.reward_window
        return sum(self._window) / len(self._window) if enough else None

    @property
    def reward_so_far(self) -> float | None:
        """As `reward`, but also with fewer episodes."""
        return sum(self._window) / len(self._window) if self._window else None

    @property
    def updates_per_s(self) -> float:
        """Updates per second over the last few seconds."""
        while self._recent and self._recent[0] < self.now_s - RECENT_S:
            self._recent.popleft()
        span = min(RECENT_S, self.now_s - (self.joined_at_s or 0.0))
        return len(self._recent) / span if span > 0 else 0.0

    @property
    def clusters(self) -> dict[int, Cluster]:
        """Ages and staleness by cluster, from the server's last report."""
        return clusters_of(self.served)

    @property
    def clusters_at_end(self) -> dict[int, Cluster]:
        """As `clusters`, at the end of training."""
        return clusters_of(self.ages_at_end or self.served)

    @property
    def served(self) -> Mapping[str, Any] | None:
        """The server's statistics of this job, or None before the first."""
        stats = self.latest("server")
        jobs = [j for j in stats["jobs"] if j["job"] == self.settings.worker.job] if stats else []
        return jobs[0] if jobs else None

    @property
    def version(self) -> int:
        """Version of the model at the server."""
        if self.local_version is not None:
            return self.local_version
        return int(self.served["version"]) if self.served else 0

    @property
    def queue(self) -> tuple[int, int]:
        """Used slots and all slots of the queue."""
        stats = self.latest("switch")
        if not stats:
            return 0, self.settings.switch.slots
        return int(stats["queue"]["used"]), int(stats["queue"]["slots"])

    def unfinished(self, alive: Iterable[str]) -> list[str]:
        """The living workers that may still push."""
        return [n for n in alive if n.startswith("worker") and n not in self.finished]

    def latest(self, name: str) -> Mapping[str, Any] | None:
        """The last statistics of a process's newest incarnation."""
        known = [one for (who, _), one in self.reports.items() if who == name]
        return max(known, key=lambda one: one.number).stats if known else None

    def switch_counts(self, role: str = "switch") -> dict[str, int]:
        """Contributions by fate at the switch, or at all leaves, over all incarnations."""
        counts: dict[str, int] = {}
        for (name, _), one in self.reports.items():
            if name.split()[0] == role:
                for fate, count in one.stats["fates"].items():
                    if fate == "waiting" and not self._is_newest(name, one.number):
                        continue
                    number = sum(count.values()) if isinstance(count, Mapping) else count
                    counts[fate] = counts.get(fate, 0) + number
        return counts

    def accounts(self) -> Accounts:
        """The fates of all contributions, as far as they were reported."""
        roles = ("worker", "leaf", "switch", "server")
        parties: dict[str, list[Incarnation]] = {role: [] for role in roles}
        for key in sorted(self.reports):
            parties.setdefault(key[0].split()[0], []).append(self.reports[key])
        return settle(
            parties["worker"],
            parties["switch"],
            parties["server"],
            self.settings.worker.job,
            leaves=parties["leaf"],
            is_tcp=self.settings.train.transport == "tcp",
        )

    @property
    def uplink_bytes(self) -> int | None:
        """Bytes that reached the server in this session; None if there is no server."""
        counts = [
            one.stats["io"]["received_bytes"]
            for (name, _), one in self.reports.items()
            if name == "server" and "io" in one.stats
        ]
        return sum(counts) if counts else None

    @property
    def awaited(self) -> int:
        """Over TCP: updates that workers have sent and the server has not received."""
        sent = sum(
            one.stats["sent"] for (name, _), one in self.reports.items() if name[:6] == "worker"
        )
        return int(sent - (self.served["received"] if self.served else 0))

    @property
    def machines(self) -> int:
        """Machines that workers have run on."""
        clocks = {told.get("clock") for told in self.ready.values()}
        return max(len(clocks), 1)

    def switches(self) -> list[dict[str, Any]]:
        """Each switch's fates over its incarnations, leaves first: arrivals and their fates."""
        names = sorted({name for name, _ in self.reports if name.split()[0] in ("leaf", "switch")})
        return [{"name": name, **self._fates_of(name)} for name in names]

    def _fates_of(self, name: str) -> dict[str, int]:
        fates: dict[str, int] = {"received": 0, "departures": 0}
        for (who, number), one in self.reports.items():
            if who != name:
                continue
            fates["received"] += one.stats["received"]
            fates["departures"] += one.stats["departures"]
            for fate, count in one.stats["fates"].items():
                gone = fate == "waiting" and not self._is_newest(name, number)
                total = sum(count.values()) if isinstance(count, Mapping) else count
                fates[fate] = fates.get(fate, 0) + (0 if gone else total)
        return fates

    def _is_newest(self, name: str, number: int) -> bool:
        return number == max(n for who, n in self.reports if who == name)

    def _understand(self, occurrence: Occurrence, at_s: float) -> Happening | None:
        match occurrence:
            case Started(name, incarnation, _):
                again = incarnation > 1
                return Happening(at_s, name, words.started(occurrence), again) if again else None
            case Printed(name, _, text):
                self.complaints[name] = text
                self.printed.setdefault(name, deque(maxlen=LAST_LINES)).append(text)
                return None  # `olaf.jobs.hearing` decides which lines are shown
            case Ended(name, _, _, expected, back_in_s):
                self._close(occurrence)
                if expected:
                    return None
                if self.fault is None or self.fault.back_in_s is not None or back_in_s is None:
                    self.fault = occurrence
                return Happening(at_s, name, words.ended(occurrence), True)
            case Said(name, incarnation, message):
                return self._hear(name, incarnation, message, at_s)

    def _hear(
        self, name: str, incarnation: int, message: Mapping[str, Any], at_s: float
    ) -> Happening | None:
        event = message["event"]
        if event == "alive":  # a turn of whole episodes may have no end either
            self._look_for_end(message.get("longest_episode", 0), at_s)
        if "stats" in message:
            self.reports[name, incarnation] = Incarnation(
                name, incarnation, message["stats"], final=True
            )
        if event in ("update", "turn"):
            self._count(name, incarnation, message, at_s)
            self._look_out(name, message, at_s)
        elif event == "listening":
            self.addresses[name] = message["address"]
        elif event == "ready":
            self.ready[name] = message
        elif event == "finished":
            self.finished.add(name)
        elif event == "stopped":
            self.stopped[name] = str(message.get("why", ""))
            if "stats" in message:
                self._settled.add((name, incarnation))
        elif event == "joined" and self.joined_at_s is None:
            self.joined_at_s = at_s
        elif event == "fault":
            self.complaints[name] = words.cause(message)
            self.user_fault = (name, message)
        if event in ROUTINE:
            return self._to_say.popleft() if self._to_say else None
        return self._news(name, message, at_s)

    def _news(self, name: str, message: Mapping[str, Any], at_s: float) -> Happening:
        event = message["event"]
        sentence = words.sentence(message)
        lasting = event in LASTING
        echo = self.is_echo(name, sentence if lasting else event, at_s, lasting=lasting)
        return Happening(at_s, name, f"{name}: {sentence}", event not in GOOD_NEWS, echo)

    def is_echo(self, name: str, what: str, at_s: float, *, lasting: bool = False) -> bool:
        """True if a worker says what a worker has just said; ``lasting``: has ever said."""
        if not name.startswith("worker"):
            return False
        said_s = self._said_at.get(what, float("-inf"))
        if at_s < said_s + ECHO_S or (lasting and what in self._said_at):
            return True
        self._said_at[what] = at_s
        return False

    def _count(self, name: str, incarnation: int, message: Mapping[str, Any], at_s: float) -> None:
        self.updates_of[name, incarnation] = message
        worker = int(message["worker"])
        if message["event"] == "update":
            reward, ours = float(message["reward"]), self._shares_our_clock(name)
            for told_s in message.get("pushes_at_s", [None]):
                known = ours and told_s is not None
                pushed_at_s = float(told_s) if known else time.monotonic()
                number = self._iterations[worker] = self._iterations.get(worker, 0) + 1
                self.pushes.append(Push(pushed_at_s, worker, number, reward))
                self._recent.append(at_s)
        self.first_update_s = at_s if self.first_update_s is None else self.first_update_s
        self.last_update_s = at_s
        self.learning.take(message)
        rewards = message["episode_rewards"]
        lengths = message.get("episode_steps") or [None] * len(rewards)
        for reward, length in zip(rewards, lengths, strict=False):
            self.episodes.append(Episode(at_s, worker, float(reward), self.steps, length))
            self._window.append(float(reward))
            if len(self._window) > self.settings.train.reward_window:
                self._window.popleft()
        if self.reward is not None:
            best = self.best_reward
            self.best_reward = self.reward if best is None else max(best, self.reward)

    def _look_out(self, name: str, message: Mapping[str, Any], at_s: float) -> None:
        """Warn if a number of the learners is out of its usual range."""
        layout = self.ready.get(name, {}).get("layout") or ()
        discrete = not any(part.endswith("log_std") for part, _ in layout)
        losses = message.get("losses") or {}
        for rule, text, is_over in self._watch.take(losses, self.reward, discrete=discrete):
            if is_over:
                self.warned[rule.name] = self.warned[rule.name]._replace(over_s=at_s)
            else:
                self.warned[rule.name] = Heard(rule.name, at_s, text)
            self._to_say.append(Happening(at_s, "run", f"learning: {text}", not is_over))
        self._look_for_end(self.session_steps / self._watch.workers / self._copies, at_s)

    def _look_for_end(self, steps: float, at_s: float) -> None:
        """Warn if no episode has ended in ``steps`` steps of each copy."""
        if not self.episodes and steps >= ENDLESS_STEPS and ENDLESS not in self.warned:
            text = endless(steps)
            self.warned[ENDLESS] = Heard(ENDLESS, at_s, text)
            self._to_say.append(Happening(at_s, "run", f"learning: {text}", trouble=True))

    def _shares_our_clock(self, name: str) -> bool:
        """True if a worker's times are on this machine's clock."""
        ours = clock_here()
        return bool(self.ready.get(name, {}).get("clock", ours) == ours)

    def _close(self, occurrence: Ended) -> None:
        """Mark the report of a process that ended unexpectedly as not its last.

        A process that has said "stopped" takes nothing in any more. What ends it then changes no
        count: on a busy machine the run itself kills a process that is slow to exit.
        """
        key = occurrence.name, occurrence.incarnation
        if key in self._settled or (
            occurrence.code == 0 and occurrence.expected and key in self.reports
        ):
            return
        report = self.reports.get(key)
        stats = report.stats if report else nothing(occurrence.name.split()[0])
        self.reports[key] = Incarnation(*key, stats, final=False)
