"""Options that several commands share, and how options become settings."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

import click

from olaf.cli.asking import milliseconds
from olaf.cli.consoles import plain_console
from olaf.processes.lines import apart, no_child_stays
from olaf.values import units
from olaf.values.parsed import toml_of

if TYPE_CHECKING:
    from rich.console import Console

    from olaf.jobs.settings import Settings

WIDTH = 120

F = TypeVar("F", bound=Callable[..., Any])


class Seconds(click.ParamType[float]):
    """A time with its unit, ``5s`` or ``800ms``, as seconds; a plain number means seconds."""

    name = "TIME"

    def __init__(self, least: float = 0.0, most: float = float("inf"), why: str = "") -> None:
        self.least = least
        self.most = most
        self.why = why

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The time in seconds, within the bounds."""
        try:
            seconds = float(units.read("_s", str(value)))
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        if not self.least <= seconds <= self.most:
            bounds = [units.write("_s", end) for end in (self.least, self.most) if end < 1e9]
            why = f": {self.why}" if self.why else ""
            within = " and at most ".join(bounds)
            self.fail(f"{value!r}: must be at least {within}{why}", param, ctx)
        return seconds


class Duration(click.ParamType[int]):
    """A time with its unit, ``5s`` or ``800ms``, as whole milliseconds."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The time in milliseconds; an integer is in milliseconds already."""
        if isinstance(value, int):
            return value
        try:
            return round(milliseconds(str(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def configuration(command: F) -> F:
    """``--config``, ``--set`` and ``--print-config``."""
    for option in (
        click.option(
            "--print-config", is_flag=True, help="Print the effective configuration and stop."
        ),
        click.option(
            "--set",
            "overrides",
            multiple=True,
            metavar="KEY=VALUE",
            help="Set any key of the configuration, as in --set learner.epochs=8. Repeatable.",
        ),
        click.option(
            "--config",
            "config_file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="TOML file; `olaf config` prints one with every key explained.",
        ),
    ):
        command = option(command)
    return command


def _listing_presets(
    ctx: click.Context, parameter: click.Parameter, name: str | None
) -> str | None:
    """Print the presets and stop, if the name is ``list``."""
    if name != "list" or ctx.resilient_parsing:
        return name
    from olaf.jobs import presets

    width = max(map(len, presets.names()))
    for one in presets.names():
        click.echo(f"{one:{width}}  {presets.purpose(one)}")
    raise click.exceptions.Exit(0)


preset = click.option(
    "--preset",
    metavar="NAME|list",
    callback=_listing_presets,
    help="Settings for a common task, as in --preset pendulum. Options and --config change them.",
)


def _table(
    ctx: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, Any] | None:
    table: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.isidentifier():
            raise click.BadParameter(f"{pair!r}: write it name=value, as in size=3")
        try:
            table[key] = toml_of(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            table[key] = value  # a bare word
    return table or None


env_option = click.option(
    "--env-option",
    "env_options",
    multiple=True,
    callback=_table,
    metavar="NAME=VALUE",
    help="Argument of the environment's constructor, as in --env-option size=3. Repeatable.",
)

metrics = click.option(
    "--metrics",
    metavar="HOST:PORT",
    help="Serve metrics, health and a status page on this address, by HTTP.",
)
metrics_token = click.option(
    "--metrics-token-file",
    metavar="FILE",
    help="File with the token that readers of --metrics send; other machines need one.",
)
log_format = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Lines of the log: sentences, or JSON objects with their time and level.",
)
log_level = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Least level of the lines. Many lines of one kind are cut, and counted.",
)


def as_json(command: F) -> F:
    """``--json``."""
    return click.option(
        "--json", "json_out", is_flag=True, help="Print JSON to stdout and messages to stderr."
    )(command)


def trust(command: F) -> F:
    """``--trust``."""
    return click.option(
        "--trust",
        is_flag=True,
        help="Run the code that RUN names (environment, module) although it is not your own run.",
    )(command)


def given(ctx: click.Context, keys: Mapping[str, str]) -> dict[str, tuple[str, Any]]:
    """The named options that were given on the command line, as ``{key: (option, value)}``.

    keys: parameter name -> configuration key.
    """
    chosen: dict[str, tuple[str, Any]] = {}
    options = {parameter.name: parameter for parameter in ctx.command.params}
    for name, key in keys.items():
        value = ctx.params[name]
        if value is not None and value != ():
            value = list(value) if isinstance(value, tuple) else value
            chosen[key] = (options[name].opts[0], value)
    return chosen


def settings(
    ctx: click.Context,
    keys: Mapping[str, str],
    *,
    base: Mapping[str, Mapping[str, Any]] | None = None,
    more: Mapping[str, tuple[str, Any]] | None = None,
) -> Settings:
    """Check the file and the options of this command. With ``--print-config``, print and stop.

    base: tables with lower precedence than the file and the options, as from a resumed run.
    more: keys of options that the command reads itself, as `given` returns them.
    """
    from olaf.jobs.effects import refuse_useless
    from olaf.jobs.reading import read_settings, write_toml

    chosen = {**given(ctx, keys), **(more or {})}
    if ctx.params.get("preset"):
        from olaf.jobs.presets import preset

        base = preset(ctx.params["preset"])
    overrides = ctx.params["overrides"]
    checked = read_settings(ctx.params["config_file"], chosen, overrides, base=base)
    if ctx.command.name == "train":
        refuse_useless(checked, chosen, overrides)
    if ctx.params["print_config"]:
        click.echo(write_toml(checked), nl=False)
        ctx.exit()
    return checked


def apart_from_user_code(ctx: click.Context, *, json_out: bool) -> IO[str] | None:
    """For a command that runs the user's code: a stream for the result of --json alone.

    What that code prints goes to stderr until the command ends. The folder that it changes to is
    left again, and programs that it has started and not ended are killed at the command's end.
    Returns None without --json: the result and the prints share stdout.
    """
    ctx.with_resource(no_child_stays())
    ctx.with_resource(contextlib.chdir("."))
    return ctx.with_resource(apart()) if json_out else None


def console(*, json_out: bool) -> Console:
    """The console for tables: stdout, or stderr if stdout is for JSON."""
    from olaf import extras

    extras.need("train", "rich", what="a table")
    made = plain_console(stderr=json_out)
    if not made.is_terminal:
        made.width = max(made.width, WIDTH)  # a log has no right margin
    return made
