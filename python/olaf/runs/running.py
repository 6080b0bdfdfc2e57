"""A training from its settings to its files, and its baseline.

`olaf train`, `olaf compare` and `olaf.train` all use this module.
"""

from __future__ import annotations

from olaf.jobs import forking
from olaf.jobs.settings import Settings
from olaf.jobs.training import Command, olaf_command
from olaf.processes.lines import Control
from olaf.runs.session import Observe, Run, Session, Then, begin, go_on


def start(
    settings: Settings,
    observe: Observe,
    control: Control,
    *,
    command: Command = olaf_command,
    signals: bool = False,
) -> Run:
    """Run in a folder of its own, see `train.out`. Raises RunError if the run could not start.

    signals: SIGTERM and Ctrl-C end the run, which still writes its files.
    """
    then = _baseline(settings, observe, control)
    with forking.opened():
        return begin(settings, observe, control, command=command, signals=signals, then=then)


def resume(session: Session, settings: Settings, observe: Observe) -> Run:
    """Continue a run.

    Raises RunError if a setting cannot change, nothing is left to do, or it could not start.
    """
    then = _baseline(settings, observe, session.control)
    with forking.opened():
        return go_on(session, settings, observe, then=then)


def _baseline(settings: Settings, observe: Observe, control: Control) -> Then:
    """Add the baseline that ``train.against`` asks for, if it does."""

    def beside(run: Run) -> Run:
        if settings.train.against is None:
            return run
        from olaf.runs.against import add_baseline

        return add_baseline(run, settings, observe, control)

    return beside
