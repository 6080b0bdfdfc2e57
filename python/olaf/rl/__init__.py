"""Asynchronous reinforcement learning over Olaf (OLAF §2.1).

``learner`` defines the interface of a learner, ``ppo_numpy`` is the embedded learner, ``ppo_torch``
the learner for users' own networks, ``ppo_recurrent`` the same with a memory. ``worker_loop``
connects a learner to the network, ``baseline`` runs the same learners without a network.
``virtual_job`` runs a whole job in virtual time over the real switch and server, and ``compute``
gives the lengths of turns there.

``environments`` makes environments by name (``packed`` those given as objects, ``own`` the user's
modules), ``spaces`` says what a policy sees of them, ``checking`` refuses what cannot be learnt
from, ``copies`` and ``parallel`` step several, and ``collecting`` makes rollouts of that.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from olaf.rl.learner import Iteration, Learner, LearnerConfig, LearnerError
    from olaf.rl.making import make_learner

__all__ = [
    "Iteration",
    "Learner",
    "LearnerConfig",
    "LearnerError",
    "make_learner",
    "process_environment",
]


def __getattr__(name: str) -> object:
    """Import the name that is asked for: `process_environment` needs no numpy."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = "olaf.rl.making" if name == "make_learner" else "olaf.rl.learner"
    return getattr(import_module(home), name)


def process_environment() -> dict[str, str]:
    """Environment variables for the start of a worker's process.

    A worker works on small matrices: threads of the algebra library only slow down the other
    workers. numpy reads these variables when it is imported, so they are data for its parent.
    """
    return {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYGAME_HIDE_SUPPORT_PROMPT": "1",
        "SDL_VIDEODRIVER": "dummy",
    }
