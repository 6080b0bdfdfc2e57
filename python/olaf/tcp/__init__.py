"""A plain TCP parameter server without a switch, a baseline for Olaf.

``server`` has the model, ``client`` is a worker's connection, and ``relay`` is the narrow link
between them. The package uses nothing of Olaf's protocol. The rule and the statistics are those of
Olaf's server, so that one table can show both.
"""
