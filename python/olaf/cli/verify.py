"""``olaf verify``: prove that objectives hold in every run, or show a run that violates one."""

from __future__ import annotations

import json
import shlex
import time
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf import extras
from olaf.cli import asking, options
from olaf.values.numbers import counted

if TYPE_CHECKING:
    from threading import Event

    from rich.console import Console

    from olaf.verify.instance import Instance, Objective
    from olaf.verify.spec import ObjectiveSpec, Spec
    from olaf.verify.verdict import Answer, Verdict


@click.command(cls=asking.Question)
@click.argument("file", metavar="SPEC.toml", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--objective",
    "wanted",
    multiple=True,
    metavar="KIND[=LIMIT]",
    help="KIND=LIMIT to prove: fair_peak=100ms, fair_age=.., worst_peak=.., starvation=.., "
    "loss=5%. A KIND alone takes its limit from the file. Repeatable. Default: all of the file.",
)
@click.option(
    "--horizon", callback=asking.time_of, metavar="TIME", help="Length of the observed runs."
)
@click.option(
    "--timeout",
    callback=asking.time_of,
    default="60s",
    show_default=True,
    metavar="TIME",
    help="Time limit for all objectives together.",
)
@click.option("--tightest", is_flag=True, help="Find the smallest limit that holds.")
@click.option(
    "--prover",
    type=click.Choice(["bound", "sweep", "timeline", "events", "all"]),
    default="all",
    show_default=True,
    help="Prover to use. all: compute the bound, then run the others in parallel and take the "
    "first answer.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the run that violates the objective, or comes closest: .png, .svg or .pdf.",
)
@click.option(
    "--trace",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write that run as a trace for `olaf replay`.",
)
@options.as_json
def verify(
    *,
    file: Path,
    wanted: tuple[str, ...],
    horizon: Decimal | None,
    timeout: Decimal,
    tightest: bool,
    prover: str,
    plot: Path | None,
    trace: Path | None,
    json_out: bool,
) -> int:
    """Prove that clusters can share a queue and stay fresh, or show a run in which they do not.

    SPEC.toml describes the clusters, the queue before a narrow link and the objectives. An
    objective must hold in every run, whatever the phases and jitter of the workers. docs/verify.md
    is the tutorial, docs/reference/verify.md lists every key. Ctrl-C prints what is known so far.

    \b
    Examples:
      olaf verify examples/verify/paper-100-300.toml
      olaf verify mine.toml --objective worst_peak=400ms --horizon 2s
      olaf verify mine.toml --objective fair_peak --tightest --timeout 10min
      olaf verify mine.toml --plot worst.png --trace worst.csv
      olaf verify mine.toml --json | jq '.verdicts[] | [.kind, .answer, .value]'

    \b
    Exit codes:
      0: holds   1: violated   2: undecided within --timeout   3: invalid input
      With several objectives, violated takes precedence over undecided.
    """
    extras.need("verify", "z3", "rich", what="olaf verify")
    with asking.interruptible() as stop:
        from olaf.verify.drawing import check_ending
        from olaf.verify.reading import read
        from olaf.verify.ticks import instance_of, objective_of

        if plot is not None:
            check_ending(plot)
        for left in (plot, trace):
            # Checked before the proof, which may take minutes.
            if left is not None and not left.parent.is_dir():
                raise click.UsageError(
                    f"{left}: there is no folder {left.parent}; name an existing folder"
                )
        asking.above_zero(timeout)
        spec = with_horizon(read(file), horizon)
        instance = instance_of(spec)
        asked = [objective_of(each, spec, instance) for each in chosen(spec, wanted, file)]
        provers = None if prover == "all" else [prover]
        verdicts = _ask(
            instance, asked, float(timeout) / 1000, tightest=tightest, provers=provers, stop=stop
        )
    answer = overall(verdicts)
    told = [_leave(v, n, len(verdicts), plot, trace) for n, v in enumerate(verdicts, 1)]
    if json_out:
        from olaf.verify.record import record_of

        click.echo(json.dumps(record_of(str(file), verdicts, answer)))
    console = options.console(json_out=json_out)
    console.print(headline(file, instance), soft_wrap=True, markup=False)
    for verdict, lines in zip(verdicts, told, strict=True):
        show(console, verdict, lines)
    console.print("\nAssumed:")
    from olaf.verify.words import assumed

    said = [line for v in verdicts for line in assumed(v.instance, v.objective)]
    for line in dict.fromkeys(said):
        console.print(f"  - {line}", soft_wrap=True, markup=False)
    return exit_code(answer)


def with_horizon(spec: Spec, horizon_ms: Decimal | None) -> Spec:
    """The spec, with the horizon of the option."""
    if horizon_ms is None:
        return spec
    from olaf.verify.reading import checked
    from olaf.verify.spec import TimeSpec

    told = {**spec.time.model_dump(), "horizon_ms": horizon_ms}
    return spec.model_copy(update={"time": checked(told, TimeSpec, "--horizon")})


def chosen(spec: Spec, wanted: tuple[str, ...], file: Path) -> list[ObjectiveSpec]:
    """The objectives of the options, otherwise all of the file."""
    if not wanted:
        if not spec.objective:
            raise click.UsageError(
                f"{file} has no [[objective]]: write one, or ask with --objective fair_peak=100ms"
            )
        return spec.objective
    return [objective for text in wanted for objective in _objectives(spec, text, file)]


def _objectives(spec: Spec, text: str, file: Path) -> list[ObjectiveSpec]:
    from olaf.verify.instance import Kind
    from olaf.verify.reading import checked
    from olaf.verify.spec import LIMIT_KEYS, ObjectiveSpec

    name, has_limit, limit = text.partition("=")
    if name not in LIMIT_KEYS:
        raise click.BadParameter(
            f"{name!r} is not one of {', '.join(LIMIT_KEYS)}", param_hint="--objective"
        )
    kind = Kind(name)
    if not has_limit:
        listed = [objective for objective in spec.objective if objective.kind is kind]
        if not listed and kind is not Kind.STARVATION:
            raise click.BadParameter(
                f"{file} has no objective {name}: give its limit, as in "
                f"{name}={'5%' if kind is Kind.LOSS else '100ms'}",
                param_hint="--objective",
            )
        return listed or [ObjectiveSpec(kind=kind)]
    try:
        value = asking.share(limit) if kind is Kind.LOSS else asking.milliseconds(limit)
    except ValueError as error:
        raise click.BadParameter(f"{text}: {error}", param_hint="--objective") from None
    told = {"kind": kind, LIMIT_KEYS[kind]: value}
    return [checked(told, ObjectiveSpec, f"--objective {text}")]


def _ask(
    instance: Instance,
    asked: list[Objective],
    timeout_s: float,
    *,
    tightest: bool,
    provers: list[str] | None,
    stop: Event,
) -> list[Verdict]:
    """Decide one objective after the other; each gets its part of the remaining time."""
    from olaf.verify.portfolio import Portfolio
    from olaf.verify.verifying import decide

    ends = time.monotonic() + timeout_s
    verdicts: list[Verdict] = []
    with (
        asking.Thinking() as thinking,
        Portfolio(provers, thinking.say, stop) as portfolio,
    ):
        for number, objective in enumerate(asked):
            part_s = max(ends - time.monotonic(), 0.0) / (len(asked) - number)
            verdicts.append(
                decide(portfolio, instance, objective, timeout_s=part_s, tightest=tightest)
            )
    return verdicts


def overall(verdicts: list[Verdict]) -> Answer:
    """The answer for all objectives: violated beats undecided beats holds."""
    from olaf.verify.verdict import Answer

    given = {verdict.answer for verdict in verdicts}
    order = (Answer.VIOLATED, Answer.UNDECIDED, Answer.HOLDS)
    return next(answer for answer in order if answer in given)


def exit_code(answer: Answer) -> int:
    """The answer's exit code."""
    return {"holds": asking.YES, "violated": asking.NO, "undecided": asking.UNDECIDED}[answer]


def _leave(
    verdict: Verdict, number: int, of: int, plot: Path | None, trace: Path | None
) -> list[str]:
    """Write plot and trace of a verdict's run; return the lines to print."""
    from olaf.verify.drawing import draw
    from olaf.verify.schedule import RATE, trace_of

    if verdict.witness is None:
        return ["no run was found, so there is nothing to write"] if plot or trace else []
    said: list[str] = []
    if plot is not None:
        name = _numbered(plot, number, of, verdict)
        _writing(name, lambda: draw(verdict, name))
        said.append(f"wrote {name}")
    if trace is not None:
        path = _numbered(trace, number, of, verdict)
        text = trace_of(verdict.instance, verdict.witness.schedule)
        _writing(path, lambda: path.write_text(text, encoding="utf-8"))
        slots = verdict.instance.slots
        said.append(f"wrote {path}; it shows with")
        said.append(f"  olaf replay {shlex.quote(str(path))} --rate {RATE} --slots {slots}")
    return said


def _numbered(path: Path, number: int, of: int, verdict: Verdict) -> Path:
    """With several objectives, each has its own file."""
    if of == 1:
        return path
    return path.with_name(f"{path.stem}-{number}-{verdict.objective.kind}{path.suffix}")


def _writing(path: Path, write: Any) -> None:
    from olaf.errors.outcome import Exit, RunError

    try:
        write()
    except OSError as error:
        raise RunError(
            f"{path}: {error.strerror}; name a file that you can write", Exit.USAGE
        ) from None


def headline(file: Path, instance: Instance) -> str:
    """The instance in one line."""
    from olaf.verify.instance import Kind
    from olaf.verify.words import amount

    def ms(ticks: int) -> str:
        from fractions import Fraction

        return amount(Kind.WORST_PEAK, Fraction(ticks * instance.tick_ns))

    return (
        f"{file}: {counted(len(instance.senders), 'worker')} in "
        f"{counted(len(instance.clusters), 'cluster')}, "
        f"{counted(instance.slots, 'slot')}, {ms(instance.service)} an update; "
        f"horizon {ms(instance.horizon)} of {ms(1)} ticks"
    )


def show(console: Console, verdict: Verdict, left: list[str]) -> None:
    """Print one verdict."""
    from olaf.verify import words
    from olaf.verify.tables import run_table, sketch
    from olaf.verify.verdict import Answer

    colour = {Answer.HOLDS: "green", Answer.VIOLATED: "red", Answer.UNDECIDED: "yellow"}
    answer = verdict.answer

    def line(text: str, style: str = "") -> None:
        console.print(text, soft_wrap=True, markup=False, style=style)

    console.print()
    line(
        f"{answer.upper():9}  {words.claim(verdict.instance, verdict.objective)}",
        f"bold {colour[answer]}",
    )
    for text in words.explained(verdict):
        line(f"           {text}")
    if answer is Answer.VIOLATED:
        console.print(run_table(verdict))
        for text in sketch(verdict):
            line(text)
    for text in left:
        line(f"           {text}")
