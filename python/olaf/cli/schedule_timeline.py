"""``olaf schedule timeline``: draw which jobs ran on which hosts, and which held switches."""

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
@click.option("--title", default="", help="Title of the drawing. Default: the record's name.")
def timeline(*, file: Path, out: Path, title: str) -> None:
    """Draw the record of a simulation over time.

    `olaf simulate mina --timeline run.record.json` keeps a record; docs/patterns.md shows a page.

    The page works offline. Its rows are hosts, with their jobs, and switches, with their trees. The
    wheel and dragging move in time, shift and wheel move the rows, and a click on a job shows its
    history. FILE.html#job=12&from=1.5&to=2 opens the page at job 12 and these seconds.

    \b
    Examples:
      olaf schedule timeline run.record.json --out page.html
      olaf schedule timeline run.record.json --out trace.json --title "1,000 jobs, first fit"

    \b
    Exit codes: 0: drawn; 2: an invalid record, or a file that cannot be written.
    """
    from olaf.errors.usage import ConfigurationError
    from olaf.schedule.timeline import read, write

    if out.exists() and file.exists() and out.samefile(file):
        raise ConfigurationError(f"--out {out}: that is the record itself")
    write(read(file), out, title=title or file.stem)
    click.echo(f"wrote {out}")
