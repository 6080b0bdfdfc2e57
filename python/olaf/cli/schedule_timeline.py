"""``olaf schedule timeline``: who ran where, and who held which switch when, to look at."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", metavar="RECORD.json", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help=".html: a page for any browser; .json: Chrome's trace format, for ui.perfetto.dev or "
    "chrome://tracing.",
)
@click.option("--title", default="", help="What was run, in words. Default: the record's name.")
def timeline(*, file: Path, out: Path, title: str) -> None:
    """Draw the record of a simulation over time.

    `olaf simulate mina --timeline run.record.json` keeps a record; docs/patterns.md shows a page.

    The page needs no network. Rows are hosts, with the jobs on them, and switches, with the trees
    they hold; wheel and drag to move in time, shift and wheel for the rows, click for a job's
    story. FILE.html#job=12&from=1.5&to=2 opens at a job and at these seconds.

    \b
    Examples:
      olaf schedule timeline run.record.json --out page.html
      olaf schedule timeline run.record.json --out trace.json --title "1,000 jobs, first fit"

    \b
    Exit codes: 0 drawn; 2 a record that is none, or a place that cannot be written to.
    """
    from olaf.schedule.timeline import read, write
    from olaf.usage import ConfigurationError

    if out.exists() and file.exists() and out.samefile(file):
        raise ConfigurationError(f"--out {out}: that is the record itself")
    write(read(file), out, title=title or file.stem)
    click.echo(f"wrote {out}")
