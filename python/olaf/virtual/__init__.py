"""``olaf simulate training``: compare N machines with one, before buying them.

Whole jobs run in virtual time (`olaf.rl.virtual_job`) with recorded computing times, for several
numbers of machines and several seeds. One machine has the same learner and no network.
"""
