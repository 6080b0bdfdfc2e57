"""Running a job: settings, the roles as processes, their supervision and the final accounts.

Nothing here draws or prompts; `olaf.cli` does that, and `olaf.report` writes the files.
"""
