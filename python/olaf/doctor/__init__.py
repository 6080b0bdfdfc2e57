"""``olaf doctor``: what the way to a switch does to datagrams, and what aggregation would gain."""
