"""``olaf config``: print every key with its value and an explanation."""

from __future__ import annotations

from pathlib import Path

import click

from olaf.cli import options


@click.command()
@click.option("--plain", is_flag=True, help="Leave out the explanations.")
@options.configuration
@click.pass_context
def config(
    ctx: click.Context,
    plain: bool,
    config_file: Path | None,
    overrides: tuple[str, ...],
    print_config: bool,
) -> None:
    """Print the effective configuration as TOML, with an explanation of each key.

    The output is a valid configuration file: the defaults, changed by --config and --set.

    \b
    Examples:
      olaf config > my.toml
      olaf config --config my.toml --set switch.slots=4 --plain
    """
    from olaf.jobs.reading import read_settings, write_toml

    click.echo(write_toml(read_settings(config_file, {}, overrides), comments=not plain), nl=False)
