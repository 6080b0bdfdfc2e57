"""One run from its settings to its files: a new one, or a resumed one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from olaf.errors.outcome import Exit, RunError
from olaf.files.modelfile import CHECKPOINT, normalises, read_model
from olaf.files.writing import write_text
from olaf.jobs.progress import Earlier, Happening, Progress
from olaf.jobs.settings import Settings
from olaf.jobs.training import Command, Observer, Outcome, olaf_command
from olaf.processes.lines import Control
from olaf.runs import folder as folders
from olaf.runs.folder import Hold
from olaf.runs.journal import FILE as JOURNAL
from olaf.runs.journal import Journal, read_journal
from olaf.runs.kept_environment import keep_environment
from olaf.runs.settings import changes, described, settings_of, write_settings
from olaf.runs.trust import mark_settings

Observe = Callable[[Settings], AbstractContextManager[Observer]]
"""Makes the observer of a run, a display or a log, from its settings."""

YOUNG_S = 30.0
"""Seconds of training below which a run without a checkpoint may begin again."""

ORPHANS_S = 20.0
"""Seconds for the processes of a killed parent to end, before a run is resumed."""


@dataclass(frozen=True)
class Run:
    """A run that has ended."""

    folder: Path
    outcome: Outcome
    result: dict[str, Any]
    record: dict[str, Any]
    """The contents of run.json."""


Then = Callable[[Run], Run]
"""Work on a run that has ended, while its folder is still locked."""


def _nothing_more(run: Run) -> Run:
    return run


def begin(
    settings: Settings,
    observe: Observe,
    control: Control,
    *,
    command: Command = olaf_command,
    signals: bool = False,
    then: Then = _nothing_more,
) -> Run:
    """Run in a folder of its own, see `train.out`. Raises RunError if the run could not start.

    signals: SIGTERM and Ctrl-C end the run, which still writes its files.
    """
    from olaf.jobs.places import check_place
    from olaf.jobs.rehearsal import rehearse

    check_place(settings)
    rehearsed = rehearse(settings, control)  # refuse invalid settings before the folder exists
    out, before = settings.train.out, folders.latest()
    made = out is None or not Path(out).exists()
    if out is None:
        folder = folders.new_folder(settings.learner.environment)
    else:
        folder = folders.given_folder(Path(out), from_batch=settings.train.on == "srun")
    try:
        with Hold(folder).take() as hold:
            session = Session(folder, hold, Earlier(), control, command, signals)
            settings, rehearsed = (keep_environment(folder, one) for one in (settings, rehearsed))
            return then(session.run(settings, rehearsed, observe))
    except Exception:
        if learnt_nothing(folder):
            # Nothing was learnt, so keep nothing: the same command may be given again.
            folders.forget(folder, made=made)
            if out is None:
                folders.show_again(before)
        raise


def learnt_nothing(folder: Path) -> bool:
    """True if there is nothing to keep: no update in the journal, or no journal."""
    if not (folder / JOURNAL).exists():
        return True
    try:
        return not read_journal(folder).updates
    except RunError:  # unreadable: keep it
        return False


def go_on(
    session: Session, settings: Settings, observe: Observe, *, then: Then = _nothing_more
) -> Run:
    """Continue a run.

    Raises RunError if a setting cannot change, nothing is left to do, or it could not start.
    """
    from olaf.jobs.places import check_place
    from olaf.jobs.rehearsal import rehearse

    changes(settings_of(session.folder), settings)
    nothing_left(settings, session.earlier)
    anew = nothing_kept(session.folder, settings, session.earlier)
    check_place(settings)
    rehearsed = rehearse(as_before(settings, session.folder), session.control)
    if (session.folder.parent / folders.LATEST).is_symlink():
        folders.show_latest(session.folder)
    return then(session.run(settings, rehearsed, observe, said=anew))


def as_before(settings: Settings, folder: Path) -> Settings:
    """The settings, with normalised observations if the model that the run continues has them."""
    if not (folder / CHECKPOINT).exists():
        return settings
    own = settings.learner.model_copy(update=normalises(read_model(folder / CHECKPOINT)))
    return settings.model_copy(update={"learner": own})


def nothing_left(settings: Settings, earlier: Earlier) -> None:
    """Raise RunError if a resumed run would end at once, with the limit that ends it."""
    from olaf.jobs.limits import Limits
    from olaf.rl.environments import reward_threshold

    progress = Progress(settings, earlier)
    threshold = reward_threshold(settings.learner.environment)
    progress.ready["nobody"] = {"reward_threshold": threshold}
    verdict = Limits(progress, Control()).enough(earlier.at_s)
    if verdict is None:
        return
    kind, reason, _ = verdict
    more = {
        "reached": "ask for more with --until-reward REWARD, or --until-reward off",
        "updates": "give a higher --updates, or --updates off",
        "steps": "give a higher --steps, or --steps off",
        "time": "give a higher --time-limit, or --time-limit off",
    }[kind]
    raise RunError(f"--resume: this run has ended: {reason}; {more}", Exit.USAGE)


def nothing_kept(folder: Path, settings: Settings, earlier: Earlier) -> str | None:
    """A message about a run without a checkpoint; None if it has one.

    Raises RunError if the run trained for so long that a new model would lose much.
    """
    missing, instead = missing_checkpoint(folder, settings)
    if missing is None:
        return None
    if earlier.trained_s < YOUNG_S:
        return f"{missing} yet: the run begins with a new model"
    raise RunError(
        f"--resume {folder}: {missing}, so the run cannot continue what it learnt in "
        f"{earlier.trained_s:.0f} s; {instead}start a new run",
        Exit.USAGE,
    )


def missing_checkpoint(folder: Path, settings: Settings) -> tuple[str | None, str]:
    """What a resumed run would miss, and the way out; None if it has its checkpoint."""
    kept = (folder / CHECKPOINT).exists()
    if settings.train.local or "checkpoint" not in settings.server.model_fields_set:
        return (None if kept else f"there is no {CHECKPOINT}"), ""
    own = "use the run's own with `--set server.checkpoint=" + str(folder / CHECKPOINT) + "`, "
    instead = f"{own}or " if kept else ""
    told = settings.server.checkpoint
    if told is None:
        return "server.checkpoint is off and there is no checkpoint", instead
    file = Path(told.replace("{job}", str(settings.worker.job)))
    # Ray may run the server on another machine, whose files are not visible here.
    if file.exists() or (settings.ray.switches == "any" and settings.train.on.startswith("ray")):
        return None, ""
    return f"there is no {file} (server.checkpoint)", instead


@dataclass(frozen=True)
class Session:
    """One start of a run in its folder: the first, or a resumption."""

    folder: Path
    hold: Hold
    earlier: Earlier
    control: Control
    command: Command = field(default=olaf_command)
    signals: bool = False

    def run(
        self, settings: Settings, rehearsed: Settings, observe: Observe, *, said: str | None = None
    ) -> Run:
        """Run to the end, and write record and report.

        settings: as the user gave them, for later sessions; ``rehearsed``: as they are used.
        said: the first messages for the observer.
        """
        trace = self._trace_file(settings)
        write_settings(self.folder, settings)
        mark_settings(self.folder, settings)
        train = rehearsed.train.model_copy(update={"out": str(self.folder)})
        rehearsed = rehearsed.model_copy(update={"train": train})
        outcome: Outcome | None = None
        everyone = Everyone([])
        try:
            with ExitStack() as stack:
                observers: list[Any] = [stack.enter_context(observe(rehearsed))]
                observers += [stack.enter_context(one) for one in self._writers(settings)]
                everyone = Everyone(observers)
                for text in filter(None, (self.hold.trouble, said)):
                    everyone.happened(Happening(self.earlier.at_s, "run", text, trouble=True))
                outcome = self._training(rehearsed, everyone)
                everyone.stands(outcome.progress, "ended")
            run = self._written(outcome, trace)
        except OSError as error:
            if outcome is None:  # it has not trained
                raise
            raise self._incomplete(outcome, error.filename, reason_of(error)) from error
        for file, why in everyone.unwritten():
            raise self._incomplete(outcome, file, why)
        return run

    def _incomplete(self, outcome: Outcome, file: str | None, why: str) -> RunError:
        return RunError(
            f"{file or self.folder}: {why}: the run has ended ({outcome.reason}), and its record "
            f"is not complete; `olaf train --resume {self.folder}` goes on from its last checkpoint"
        )

    def _written(self, outcome: Outcome, trace: Path | None) -> Run:
        """Write record and report of a run that has ended."""
        from olaf.jobs.recording import write_trace
        from olaf.jobs.result import conclude, write_run
        from olaf.report.page import run_page

        result = conclude(outcome)
        sessions = [
            {key: line.get(key) for key in ("session", "began_at", "at_s")}
            for line in read_journal(self.folder).sessions
        ]
        record = write_run(self.folder, outcome, result, sessions)
        write_text(self.folder / "report.html", run_page(record))
        if trace is not None:  # last: if it fails, everything else is written
            write_trace(trace, outcome.progress)
        return Run(self.folder, outcome, result, record)

    def _trace_file(self, settings: Settings) -> Path | None:
        """File for the pushes of this session. Raises RunError if it cannot be written."""
        from olaf.jobs.recording import check_trace, session_trace

        if settings.train.record is None:
            return None
        file = Path(settings.train.record)
        if self.earlier.sessions:
            file = session_trace(file, len(self.earlier.sessions) + 1)
        check_trace(file)
        return file

    def _writers(self, settings: Settings) -> list[AbstractContextManager[Observer]]:
        from olaf.jobs.result import version
        from olaf.report.scalars import Scalars, WeightsAndBiases

        number = len(self.earlier.sessions) + 1
        at_s = self.earlier.at_s
        line = {"session": number, "at_s": at_s, "olaf": version(), **described(settings)}
        writers: list[Any] = [Journal(self.folder, line), Scalars(self.folder)]
        if settings.train.wandb is not None:
            told = settings.model_dump(mode="json")
            writers.append(WeightsAndBiases(self.folder, settings.train.wandb, told))
        return writers

    def _training(self, settings: Settings, observer: Observer) -> Outcome:
        if settings.train.local:
            from olaf.jobs.alone import TrainingAlone

            self._catch_signals()
            return TrainingAlone(
                settings,
                observer,
                self.control,
                earlier=self.earlier,
                descriptors=self.hold.descriptors,
            ).run()
        from olaf.jobs.places import open_place
        from olaf.jobs.training import Training

        place = open_place(settings, descriptors=self.hold.descriptors)
        self._catch_signals()  # only now: Ray installs its own handlers when it starts
        control, command = self.control, self.command
        return Training(
            settings, observer, control, command, place=place, earlier=self.earlier
        ).run()

    def _catch_signals(self) -> None:
        if self.signals:
            self.control.catch_signals()


class Everyone:
    """Several observers as one. One that cannot write to its file ends no run.

    The others are told so once, and once more when it writes again.
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self._silent: dict[int, str] = {}
        """Observers that cannot write at present, by their place, and why."""

    def unwritten(self) -> Iterator[tuple[str, str]]:
        """The files of observers that could not be written to the end, and why."""
        for at, why in self._silent.items():
            yield _name(self._observers[at]), why

    def happened(self, happening: Happening) -> None:
        """Pass it on to all."""
        for at in range(len(self._observers)):
            self._tell(at, happening)

    def stands(self, progress: Progress, phase: str) -> None:
        """Pass it on to all."""
        for at, observer in enumerate(self._observers):
            before = self._silent.get(at)
            try:
                observer.stands(progress, phase)
            except OSError as error:
                self._silent[at] = why = reason_of(error)
                if before is None:
                    text = f"{_name(observer)} cannot be written ({why}); the run goes on"
                    self._tell_others(at, progress, text, trouble=True)
            else:
                if self._silent.pop(at, None) is not None:
                    self._tell_others(at, progress, f"{_name(observer)} is written again")

    def _tell(self, at: int, happening: Happening) -> None:
        try:
            self._observers[at].happened(happening)
        except OSError as error:
            self._silent[at] = reason_of(error)

    def _tell_others(
        self, at: int, progress: Progress, text: str, *, trouble: bool = False
    ) -> None:
        now_s = progress.samples[-1].at_s if progress.samples else progress.earlier.at_s
        for other in range(len(self._observers)):
            if other != at:
                self._tell(other, Happening(now_s, "run", text, trouble=trouble))


def _name(observer: Observer) -> str:
    return str(getattr(observer, "written_to", type(observer).__name__))


def reason_of(error: OSError) -> str:
    """The reason of an error of the system, in words."""
    return error.strerror or str(error)
