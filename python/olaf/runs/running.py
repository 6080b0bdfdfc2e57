"""A training from the settings to everything it leaves, its baseline beside it.

`olaf train`, `olaf compare` and `olaf.train` all come through here.
"""

from __future__ import annotations

from olaf.jobs.settings import Settings
from olaf.jobs.training import Command, olaf_command
from olaf.lines import Control
from olaf.runs.session import Observe, Run, Session, Then, begin, go_on


def start(
    settings: Settings,
    observe: Observe,
    control: Control,
    *,
    command: Command = olaf_command,
    signals: bool = False,
) -> Run:
    """Run in a folder of its own, see `train.out`. Raises RunError where no start was made.

    signals: SIGTERM and Ctrl-C end the run, with everything that it leaves.
    """
    then = _baseline(settings, observe, control)
    return begin(settings, observe, control, command=command, signals=signals, then=then)


def resume(session: Session, settings: Settings, observe: Observe) -> Run:
    """Go on with a run.

    Raises RunError: a setting that cannot change, nothing left to do, no start could be made.
    """
    return go_on(session, settings, observe, then=_baseline(settings, observe, session.control))


def _baseline(settings: Settings, observe: Observe, control: Control) -> Then:
    """Adds the baseline that ``train.against`` asks for, if it does."""

    def beside(run: Run) -> Run:
        if settings.train.against is None:
            return run
        from olaf.runs.against import add_baseline

        return add_baseline(run, settings, observe, control)

    return beside
