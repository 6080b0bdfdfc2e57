"""Seeds the random numbers that an environment may draw beside its own generator."""

import random

import numpy as np


def seed_everything(seed: int, worker: int) -> None:
    """Seed ``random`` and ``np.random`` of this process from (seed, worker).

    Some environments draw from them, and would otherwise differ from run to run.
    """
    first, second = np.random.SeedSequence([seed, worker]).generate_state(2)
    random.seed(int(first))
    np.random.seed(int(second))
