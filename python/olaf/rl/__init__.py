"""Asynchronous reinforcement learning over Olaf (OLAF §2.1).

``learner`` says what a learner is, ``ppo_numpy`` is the embedded one, ``ppo_torch`` the one for
users' own networks, ``worker_loop`` ties a learner to a connection, ``baseline`` runs the same
learners without a network, ``local_job`` runs a whole job in virtual time over the real switch and
server, and ``compute`` says how long turns take there.
"""

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


def process_environment() -> dict[str, str]:
    """Environment variables that a worker's process should be started with.

    A worker is one process of small matrices: threads of the algebra library only get in the way
    of the other workers. Set before numpy is imported, hence here as data.
    """
    return {
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYGAME_HIDE_SUPPORT_PROMPT": "1",
        "SDL_VIDEODRIVER": "dummy",
    }
