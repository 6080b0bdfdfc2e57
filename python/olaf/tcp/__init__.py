"""A plain TCP parameter server, without any switch: what a sceptic compares Olaf with.

``server`` has the model, ``client`` is a worker's end, and ``relay`` is the narrow link between
them. Nothing of Olaf's protocol is in here; the rule and the statistics are those of its server,
so that one table can show both.
"""
