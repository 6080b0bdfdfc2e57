"""``olaf simulate training``: what N machines are worth, before anybody has them.

Whole jobs run in virtual time (`olaf.rl.local_job`) with recorded computation, for several numbers
of machines and several seeds, against one machine with the same learner and no network.
"""
