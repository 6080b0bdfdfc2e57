"""``olaf doctor``: what is wrong on the way to a switch, and what aggregation would gain."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from olaf.cli import options
from olaf.errors.outcome import ConfigurationError, Exit

if TYPE_CHECKING:
    from olaf.doctor.finding import Section
    from olaf.doctor.path import Question

MARK = {"ok": "ok  ", "note": "    ", "fix": "FIX "}


class Amount(click.ParamType[int]):
    """A size or a rate with its unit; a plain number is a size in bytes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes, or bits a second; above 0."""
        from olaf import _olaf
        from olaf.values import units

        text = str(value)
        try:
            if self.name == "RATE":
                found = units.rate(text)
            else:
                found = int(text) if text.isdecimal() else _olaf.parse_size(text)
        except ValueError as error:
            self.fail(f"{value!r}: {error}", param, ctx)
        if found <= 0:
            self.fail(f"{value!r}: must be above 0", param, ctx)
        return found


SIZE, RATE = Amount("SIZE"), Amount("RATE")


@click.command()
@click.option("--switch", metavar="HOST:PORT", help="Switch to ask.")
@click.option("--server", metavar="HOST:PORT", help="Parameter server to ask.")
@click.option("--job", default=1, show_default=True, type=click.IntRange(0, 2**32 - 1))
@click.option("--key-file", metavar="FILE", help="Key of the job. Default: OLAF_KEY_FILE.")
@click.option(
    "--questions",
    default=100,
    show_default=True,
    type=click.IntRange(1, 10_000),
    help="Short questions, 10 ms apart. Loss is counted in them.",
)
@click.option("--model-bytes", type=SIZE, help="Size of the model: 400MB. With --workers: predict.")
@click.option("--workers", type=click.IntRange(1), help="Workers of the job.")
@click.option(
    "--compute-ms",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Computation between two exchanges, in milliseconds.",
)
@click.option("--link", type=RATE, help="Rate of a worker's link. Default: that of the interface.")
@click.option(
    "--switch-link",
    type=RATE,
    help="Rate into the switch, all of its ports together. Default: that of a worker's link.",
)
@click.option(
    "--uplink", type=RATE, help="Rate into the parameter server. Default: a worker's link."
)
@options.as_json
def doctor(
    *,
    switch: str | None,
    server: str | None,
    job: int,
    key_file: str | None,
    questions: int,
    model_bytes: int | None,
    workers: int | None,
    compute_ms: float,
    link: int | None,
    switch_link: int | None,
    uplink: int | None,
    json_out: bool,
) -> int:
    """Look for what is wrong between this machine and a switch, and predict the gain.

    Asks the switch and the server some hundred short questions and some long ones. No worker joins,
    no job begins. Each finding to fix says what to do.

    \b
    Examples:
      olaf doctor                                        this machine alone
      olaf doctor --switch 10.0.0.1:5555 --server 10.0.0.2:5556
      olaf doctor --switch 10.0.0.1:5555 --model-bytes 400MB --workers 8 --compute-ms 120
      olaf doctor --model-bytes 9kB --workers 4 --compute-ms 26 --link 1gbit --uplink 10mbit

    \b
    Exit codes:
      0: all good   1: there is something to fix   2: invalid options
    """
    from olaf.doctor.machine import machine
    from olaf.doctor.path import Question
    from olaf.files.keyfile import VARIABLE

    if (model_bytes is None) != (workers is None):
        raise click.UsageError("--model-bytes and --workers go together: the prediction needs both")
    key_file = key_file or os.environ.get(VARIABLE)
    question = Question(job=job, questions=questions, key_file=key_file)
    if model_bytes is not None:
        question = replace(question, parameters=min(max(model_bytes // 4, 1), 2**32 - 1))
    sections = [machine(key_file)]
    for name, address in (("switch", switch), ("server", server)):
        if address is not None and _has_usable_key(sections[0]):
            sections.append(_asked(name, address, question))
    if model_bytes is not None and workers is not None:
        rates = {"link": link, "switch_link": switch_link, "uplink": uplink}
        sections.append(_forecast(model_bytes, workers, compute_ms / 1000, rates, sections))
    good = all(section.is_good for section in sections)
    if json_out:
        told = {"good": good, "sections": [section.told() for section in sections]}
        click.echo(json.dumps(told))
    else:
        for section in sections:
            _print(section)
        click.echo(_summary(sections))
    return Exit.OK if good else Exit.FAILED


def _has_usable_key(here: Section) -> bool:
    return all(finding.about != "key" or finding.level != "fix" for finding in here.findings)


def _asked(name: str, address: str, question: Question) -> Section:
    from olaf.doctor.path import path

    try:
        return path(name, address, question)
    except ValueError as error:
        raise ConfigurationError(str(error)) from None


def _forecast(
    model_bytes: int,
    workers: int,
    compute_s: float,
    rates: dict[str, int | None],
    sections: list[Section],
) -> Section:
    from olaf.doctor.finding import Section
    from olaf.doctor.forecast import forecast
    from olaf.doctor.machine import link_of
    from olaf.doctor.prediction import Job

    asked = [section.measured for section in sections if "local_address" in section.measured]
    link: float | None = rates["link"]
    if link is None and asked:
        found = link_of(asked[0]["local_address"])
        link = found.bits_per_s if found else None
    if link is None:
        section = Section("prediction")
        section.fix(
            "links",
            "the rate of a worker's link is not known: the interface does not tell it",
            "give it, as in --link 10gbit",
        )
        return section
    round_trip_ns = next((one["round_trip_median_ns"] for one in asked), None)
    return forecast(
        Job(
            model_bytes=model_bytes,
            workers=workers,
            compute_s=compute_s,
            link_bps=link,
            switch_bps=rates["switch_link"] or link,
            uplink_bps=rates["uplink"] or link,
            round_trip_s=(round_trip_ns or 0) / 1e9,
        ),
        is_measured=round_trip_ns is not None,
    )


def _print(section: Section) -> None:
    click.echo(section.name)
    widest = max((len(finding.about) for finding in section.findings), default=0)
    for finding in section.findings:
        click.echo(f"  {MARK[finding.level]}{finding.about:<{widest}}  {finding.found}")
        if finding.to_do:
            click.echo(f"      {'':<{widest}}  -> {finding.to_do}")
    click.echo()


def _summary(sections: list[Section]) -> str:
    bad = sum(finding.level == "fix" for section in sections for finding in section.findings)
    if not bad:
        return "all good"
    return f"{bad} {'finding' if bad == 1 else 'findings'} to fix"
