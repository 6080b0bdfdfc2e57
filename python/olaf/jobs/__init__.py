"""Running a job: settings, the roles as processes, their supervision and the accounts at the end.

Nothing in here draws or asks; `olaf.cli` does that, and `olaf.report` writes what is kept.
"""
