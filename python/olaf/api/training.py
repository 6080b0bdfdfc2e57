"""`olaf.train`: the command of that name as a function, for scripts, notebooks and sweeps."""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from gymnasium.envs.registration import EnvSpec

    from olaf.jobs.settings import Settings
    from olaf.processes.lines import Control
    from olaf.runs.calls import Calls, OnEvaluation, OnUpdate, TrainEvaluation
    from olaf.runs.session import Observe, Run

Display = Literal["auto", "live", "lines", "quiet"]
DISPLAYS = ("auto", "live", "lines", "quiet")

T = TypeVar("T")


class Point(NamedTuple):
    """The state of a run at one moment."""

    seconds: float
    steps: int
    """Environment steps of all workers together."""
    reward: float
    """Mean reward of the last episodes (`train.reward_window`)."""


@dataclass(frozen=True)
class TrainResult:
    """The result of a training, and its files. ``print(result)`` is one line."""

    outcome: str
    """``reached``, ``updates``, ``steps``, ``time``, ``done``, ``stopped`` (a function of yours
    ended the run) or ``failed``."""
    reason: str
    """The outcome in a sentence."""
    ok: bool
    """False if the run failed, or missed the requested reward."""
    reward: float | None
    """Mean reward of the last episodes at the end; None before the first episodes ended."""
    seconds: float
    """Seconds of training."""
    steps: int
    """Environment steps of all workers."""
    updates: int
    curve: list[Point] = field(repr=False)
    """Reward over seconds and environment steps."""
    fates: dict[str, int] = field(repr=False)
    """Number of updates for each fate; they add up to ``updates``."""
    folder: Path
    """The run's folder with record, report, model and scalars."""
    report: Path
    """The report page, for a browser."""
    model: Path | None
    """The learnt model; `olaf evaluate` and `olaf export` read it."""
    evaluations: list[TrainEvaluation] = field(repr=False)
    """The evaluations of the model while it trained (``evaluate_every``)."""
    best_model: Path | None
    """The model with the best evaluation; None if there was none."""
    record: dict[str, Any] = field(repr=False)
    """Everything in ``run.json``."""

    def __str__(self) -> str:
        """One line: outcome, reward, steps, time, report."""
        reward = "-" if self.reward is None else f"{self.reward:.1f}"
        return (
            f"{self.reason}; reward {reward} after {self.steps:,} environment steps and "
            f"{self.seconds:.1f} s; report {self.report}"
        )


def train(
    env: str | Callable[..., Any] | EnvSpec | None = None,
    *,
    env_options: Mapping[str, Any] | None = None,
    workers: int | None = None,
    queue: str | None = None,
    slots: int | None = None,
    uplink: str | None = None,
    updates: int | str | None = None,
    until_reward: float | str | None = None,
    time_limit_s: float | str | None = None,
    seed: int | None = None,
    out: str | Path | None = None,
    resume: str | Path | None = None,
    trust: bool = False,
    config: str | Path | None = None,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    display: Display = "auto",
    on_update: OnUpdate | None = None,
    on_evaluation: OnEvaluation | None = None,
    **options: Any,
) -> TrainResult:
    """Train as the command `olaf train` does, and wait for the end. ::

        result = olaf.train("CartPole-v1", workers=4, until_reward=200)
        print(result.reward, result.report)

    env: any id that gymnasium.make knows, or ``module:ID``; or the class of an environment, or a
    function that makes one: ``olaf.train(Dot)``, ``olaf.train(lambda: Dot(size=3))``. An id may
    also be registered in the same script or notebook. env_options: arguments of the environment's
    constructor, as in ``{"size": 3}``.
    workers, queue, slots, uplink, updates, until_reward, time_limit_s, seed, out: the options of
    the command; "off" if the command allows it. None uses the default. resume: continue the run in
    this folder instead, with its settings. trust: run the code that it names although it is not
    your own run. config: a TOML file, as `olaf config` prints it.
    preset: settings for a common task (``olaf train --preset list``); all the others change them.
    settings: any key of `olaf config` with its section: ``{"learner.epochs": 8, "server.step":
    "sum"}``. It takes precedence over everything else. display: "live" redraws a picture of the
    run, "lines" prints a line every two seconds, "quiet" prints nothing; "auto" is "live" on a
    terminal and "lines" elsewhere. options: every other option of the command, with ``_`` for
    ``-``: ``clusters=4``, ``learner="torch"``, ``local=True``.

    on_update: a function that is called with a `TrainUpdate` for every sample of the run
    (`train.every_s`, 0.5 s). on_evaluation: one that is called with a `TrainEvaluation` after each
    evaluation (``evaluate_every=N``). Both are called in this process and thread. A function that
    takes long holds up no worker; it then gets the newest state. If it returns False, the run ends
    in order, with outcome ``stopped``. If it raises, the run ends in order, and the exception
    passes through. See `stop_when_stalled`.

    The processes end with the call, however it ends. Ctrl-C, or the stop button of a notebook, ends
    the run in order, writes its files, and then raises KeyboardInterrupt.

    Raises ValueError for an invalid setting (with the key and its allowed values),
    MissingExtraError if the extra `train` is not installed, and OlafError or a subclass if the run
    could not start. A run that started and then failed returns a result with ``ok`` False.
    """
    from olaf import extras

    extras.need("train", what="olaf.train")
    if display not in DISPLAYS:
        raise ValueError(f"display = {display!r}: must be one of {', '.join(DISPLAYS)}")
    given = {
        "env": env,
        "env_options": dict(env_options) if env_options else None,
        "workers": workers,
        "queue": queue,
        "slots": slots,
        "uplink": uplink,
        "updates": updates,
        "until_reward": until_reward,
        "time_limit": time_limit_s,
        "seed": seed,
        "out": out,
        **options,
    }
    with _packed(env, resume) as named, _same_environment():
        chosen = _chosen({**given, "env": named}) | _settings(settings or {})
        file = None if config is None else Path(config)

        def run(control: Control, calls: Calls) -> Run:
            def observe(told: Settings) -> AbstractContextManager[Any]:
                return _observer(told, display, calls)

            if resume is None:
                return _start(file, preset, chosen, observe, control)
            return _resume(Path(resume), file, chosen, observe, control, trust=trust)

        return _result(_interruptible(run, on_update, on_evaluation))


@contextlib.contextmanager
def _packed(env: Any, resume: str | Path | None) -> Iterator[str | None]:
    """The name of an environment; one that only this process knows is written to a file."""
    known = sys.modules.get("gymnasium")
    if isinstance(env, str) and known is not None and env in known.registry:
        # Gymnasium's own ids are known to every process, others perhaps only to this one.
        spec = known.registry[env]
        made_by = spec.entry_point
        if not (isinstance(made_by, str) and made_by.startswith("gymnasium.")):
            env = spec
    if env is None or isinstance(env, str):
        yield env
        return
    if resume is not None:
        raise ValueError("env does not go with resume: a run continues with its own environment")
    from olaf.rl.learner import LearnerError
    from olaf.rl.packed import pack

    with tempfile.TemporaryDirectory(prefix="olaf-") as folder:
        try:
            named = pack(env, Path(folder))
        except LearnerError as error:
            raise ValueError(str(error)) from error
        yield named


def _chosen(given: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """The given options, as `read_settings` takes them."""
    from olaf.cli.train import KEYS

    chosen: dict[str, tuple[str, Any]] = {}
    for name, value in given.items():
        if name not in KEYS:
            known = [*KEYS, "time_limit_s", "preset", "resume", "config", "settings", "display"]
            near = difflib.get_close_matches(name, known, n=1)
            advice = f"did you mean {near[0]}?" if near else f"options: {', '.join(sorted(KEYS))}"
            raise ValueError(
                f"olaf.train has no option {name}; {advice} Any key of `olaf config` can be given "
                'as settings={"section.key": value}'
            )
        if value is not None:
            plain = str(value) if isinstance(value, Path) else value
            shown = "time_limit_s" if name == "time_limit" else name
            chosen[KEYS[name]] = (f"olaf.train({shown}={plain!r})", plain)
    return chosen


def _settings(settings: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    for key in settings:
        if not isinstance(key, str) or isinstance(settings[key], Mapping):
            raise ValueError(
                f"settings: {key!r}: write a key with its section, as in "
                '{"learner.epochs": 8}; `olaf config` lists them'
            )
    return {key: (f"settings[{key!r}]", value) for key, value in settings.items()}


def _start(
    file: Path | None,
    named: str | None,
    chosen: dict[str, tuple[str, Any]],
    observe: Observe,
    control: Control,
) -> Run:
    from olaf.jobs.effects import refuse_useless
    from olaf.jobs.presets import preset
    from olaf.jobs.reading import read_settings
    from olaf.runs.running import start

    base = None if named is None else preset(named)
    settings = read_settings(file, chosen, base=base)
    refuse_useless(settings, chosen)
    return start(settings, observe, control)


def _resume(
    named: Path,
    file: Path | None,
    chosen: dict[str, tuple[str, Any]],
    observe: Observe,
    control: Control,
    *,
    trust: bool,
) -> Run:
    from olaf.jobs.effects import refuse_useless
    from olaf.jobs.reading import read_settings
    from olaf.runs.folder import Hold, find_folder
    from olaf.runs.journal import read_journal
    from olaf.runs.running import resume
    from olaf.runs.session import ORPHANS_S, Session
    from olaf.runs.settings import resumed
    from olaf.runs.trust import need_trust

    if file is not None or "train.out" in chosen:
        raise ValueError(
            "config and out do not go with resume: a run continues in its own folder with its own "
            "settings; change single settings by their options, or by settings={..}"
        )
    folder = find_folder(named)
    with Hold(folder).take(patience_s=ORPHANS_S, waiting=lambda: None) as hold:
        earlier = read_journal(folder)
        base = resumed(folder, earlier)
        need_trust(folder, base, trusts=trust, starts_jobs=True)
        settings = read_settings(None, chosen, base=base)
        refuse_useless(settings, chosen)
        session = Session(folder, hold, earlier, control)
        return resume(session, settings, observe)


def _result(run: Run) -> TrainResult:
    from olaf.files.modelfile import BEST
    from olaf.runs.calls import evaluations_of

    result = run.result
    file = result["model"]["file"]
    return TrainResult(
        outcome=result["outcome"],
        reason=result["reason"],
        ok=result["exit_code"] == 0,
        reward=result["reward"]["mean"],
        seconds=result["training_s"],
        steps=result["env_steps"],
        updates=result["updates"],
        curve=[
            Point(sample["at_s"], sample["steps"], sample["reward"])
            for sample in run.record["history"]
            if sample["reward"] is not None
        ],
        fates={row["fate"]: row["count"] for row in result["fates"]["rows"]},
        folder=run.folder,
        report=run.folder / "report.html",
        model=run.folder / file if file else None,
        evaluations=evaluations_of(run.outcome.progress.evaluations),
        best_model=run.folder / BEST if (run.folder / BEST).exists() else None,
        record=run.record,
    )


# Watching.


class _Quiet:
    """An observer that prints nothing."""

    def happened(self, happening: object) -> None:
        pass

    def stands(self, progress: object, phase: str) -> None:
        pass


@contextlib.contextmanager
def _observer(settings: Settings, display: Display, calls: Calls) -> Iterator[Any]:
    from olaf.runs.session import Everyone

    with _display(settings, display) as shown:
        yield Everyone([shown, calls])


@contextlib.contextmanager
def _display(settings: Settings, display: Display) -> Iterator[Any]:
    if display == "quiet":
        yield _Quiet()
    elif display == "live" or (display == "auto" and sys.stdout.isatty()):
        from olaf.cli.consoles import plain_console
        from olaf.cli.live import Display as Live
        from olaf.cli.train import title

        with Live(plain_console(), title(settings)) as live:
            yield live
    else:
        from olaf.cli.display import Lines

        with Lines(sys.stdout) as lines:
            yield lines


# Ending.


def _interruptible(
    run: Callable[[Control, Calls], T],
    on_update: OnUpdate | None,
    on_evaluation: OnEvaluation | None,
) -> T:
    """Run in a separate thread, so that an interrupt at any moment ends the run in order.

    Meanwhile this thread calls the functions of the caller.
    """
    from olaf.errors.outcome import failure_of
    from olaf.processes.lines import Control
    from olaf.runs.calls import Calls

    control, ended = Control(), threading.Event()
    calls = Calls(on_update, on_evaluation, control)
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(run(control, calls))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()
            calls.end()

    threading.Thread(target=work, name="olaf.train", daemon=True).start()
    try:
        calls.wait()  # not join(): Python 3.11 marks a thread as ended if its join is interrupted
    except BaseException as error:  # Ctrl-C, or sys.exit in a function of the caller
        control.stop(type(error).__name__)
        ended.wait()  # cannot be interrupted again
        raise
    if calls.error is not None:
        raise calls.error
    if errors:
        failure = failure_of(errors[0])
        if failure is None:
            raise errors[0]
        raise _public(failure.code)(str(failure)) from errors[0]
    return results[0]


def _public(code: int) -> type[Exception]:
    from olaf._olaf import OlafError, RefusedError, UnreachableError
    from olaf.errors.outcome import Exit

    kinds: dict[int, type[Exception]] = {
        Exit.USAGE: ValueError,
        Exit.UNREACHABLE: UnreachableError,
        Exit.REFUSED: RefusedError,
    }
    return kinds.get(code, OlafError)


@contextlib.contextmanager
def _same_environment() -> Iterator[None]:
    """Restore the environment variables that are meant only for the run's processes."""
    before = dict(os.environ)
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
