"""Can these clusters share that queue and stay fresh? Proved, or a counterexample to replay."""
