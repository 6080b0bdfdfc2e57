"""Olaf's processes: their loop, their lines to each other, the machine that they run on."""
