"""``olaf simulate training``: compare N machines with one, in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf import extras
from olaf.cli import options
from olaf.cli.options import Seconds
from olaf.jobs.queues import METAVAR

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings
    from olaf.rl.recorded import Recorded
    from olaf.virtual.plan import Plan, Uplink
    from olaf.virtual.running import Run
    from olaf.virtual.summary import Arm

KEYS = {
    "env": "learner.environment",
    "learner": "learner.learner",
    "queue": "switch.queue",
    "slots": "switch.slots",
    "aggregate": "server.aggregate",
    "transmission": "worker.transmission",
    "until_reward": "train.until_reward",
}
TIMED_TURNS = 20
"""Number of turns to time for a learner without recorded turns in the package."""


class Numbers(click.ParamType[list[int]]):
    """Whole numbers separated by commas, each given once."""

    name = "N,N,.."

    def __init__(self, least: int) -> None:
        self.least = least

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        """The numbers, in the order in which they were given."""
        try:
            numbers = [int(part) for part in str(value).split(",")]
        except ValueError:
            self.fail(f"{value!r}: write whole numbers with commas, as in 1,2,4", param, ctx)
        if min(numbers) < self.least or len(set(numbers)) < len(numbers):
            self.fail(f"{value!r}: each must be at least {self.least}, and given once", param, ctx)
        return numbers


class UplinkRate(click.ParamType["Uplink"]):
    """``free``, a rate with its unit, or a fraction of the rate at which workers push."""

    name = "free|RATE|SHARE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Uplink:
        """The uplink as a settings value."""
        from olaf._olaf import parse_rate
        from olaf.virtual.plan import Uplink

        if value == "free":
            return Uplink("free")
        try:
            share = float(value)
        except ValueError:
            try:
                return Uplink("rate", parse_rate(value))
            except ValueError as error:
                self.fail(
                    f"{error}; or give a fraction of the workers' push rate: 0.25", param, ctx
                )
        if not 0 < share <= 1000:
            self.fail(f"{value!r}: a fraction must be above 0; a rate needs a unit", param, ctx)
        return Uplink("share", share)


@click.command()
@click.option("--env", metavar="ID", help="Any id that gymnasium.make knows, or module:ID.")
@click.option(
    "--workers",
    type=Numbers(1),
    default="1,2,4,8",
    show_default=True,
    help="Numbers of machines to simulate; each machine has one worker.",
)
@click.option(
    "--uplink",
    type=UplinkRate(),
    help="Bandwidth of the link from the switch to the server: free (nothing waits), a rate "
    "(2mbit), or a fraction of the workers' push rate (0.25). Default: the settings' uplink, free.",
)
@click.option(
    "--speeds",
    type=click.FloatRange(min=1, max=1000),
    default=1.0,
    show_default=True,
    metavar="RATIO",
    help="Speed of the fastest machine divided by the slowest's. Speeds are evenly spread; their "
    "mean is the speed of one machine.",
)
@click.option(
    "--delay",
    type=Seconds(),
    default="50us",
    show_default=True,
    help="One-way delay of each link: worker to switch, switch to server.",
)
@click.option(
    "--loss",
    type=click.FloatRange(min=0, max=1, max_open=True),
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Probability that one of these links loses a datagram.",
)
@click.option(
    "--seeds", type=Numbers(0), default="0,1,2,3,4", show_default=True, help="Random seeds."
)
@click.option("--until-reward", metavar="R|solved", help="Target: mean reward of 100 episodes.")
@click.option(
    "--step-limit",
    type=click.IntRange(min=1),
    default=1_000_000,
    show_default=True,
    metavar="N",
    help="Stop a run after N environment steps of all machines together.",
)
@click.option("--learner", metavar="numpy|torch", help="torch needs the extra `torch`.")
@click.option("--queue", metavar=METAVAR, help="Discipline of the switch's uplink.")
@click.option("--slots", type=int, help="Number of updates that the queue holds.")
@click.option("--aggregate", metavar="each|periodic|round", help="When updates change the model.")
@click.option("--transmission", metavar="off|paper|fair", help="When a worker sends (OLAF §5).")
@click.option(
    "--turns",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="File with recorded lengths of turns, instead of the package's: turns.json of an earlier "
    "--out, or the output of python -m olaf.rl.recorded.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    metavar="N",
    help="Number of simulating processes; the results do not depend on it.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write results.json, the table, reward.svg and reward.png to this folder.",
)
@options.as_json
@options.configuration
@click.pass_context
def training(ctx: click.Context, /, **given: Any) -> None:
    """Simulate training on N machines and on one: when do they reach the target reward?

    Real learners, the real switch and the real server run in virtual time. The length of a turn was
    recorded on one core, so a busy machine changes nothing: the same options give the same numbers.
    One machine is one process with the same learner and no network. The command first times
    learners without recorded turns. docs/training.md explains the table.

    \b
    Examples:
      olaf simulate training
      olaf simulate training --env CartPole-v1 --workers 1,4,16 --until-reward 200
      olaf simulate training --uplink 0.25 --queue fifo --out runs/fifo
      olaf simulate training --speeds 2.5 --aggregate round
      olaf simulate training --delay 20ms --loss 0.01 --seeds 0,1 --json
      olaf simulate training --set learner.steps_per_update=250 --set server.staleness_power=0.5

    \b
    Exit codes: 0: simulated; 2: an invalid option or value; 130: interrupted.
    """
    extras.need("train", what="olaf simulate training")
    from olaf.virtual.plan import ALONE
    from olaf.virtual.running import run_all
    from olaf.virtual.summary import summarize, where_it_stops

    out = options.apart_from_user_code(ctx, json_out=given["json_out"])
    settings = options.settings(ctx, KEYS)
    plan = plan_of(settings, given)
    runs = run_all(plan, [ALONE, *given["workers"]], given["seeds"], given["jobs"], _say)
    arms = summarize(runs)
    record = _record(plan, given, arms, runs)
    written = [] if given["out"] is None else _write(given["out"], plan, record, arms, runs)
    if out is not None:
        click.echo(json.dumps(record), file=out)
    else:
        from olaf.virtual.tables import table

        console = options.console(json_out=False)
        console.print(_title(plan, given), soft_wrap=True)
        console.print(table(arms))
        if said := where_it_stops(arms):
            console.print(said, soft_wrap=True)
        console.print(_legend(plan), soft_wrap=True)
    for path in written:
        click.echo(f"wrote {path}", err=given["json_out"])


def plan_of(settings: Settings, given: dict[str, Any]) -> Plan:
    """The plan that the options ask for. Raises ConfigurationError."""
    from olaf.jobs.rehearsal import rehearse
    from olaf.virtual.plan import Plan, Uplink, mark_of, simulable

    settings = rehearse(simulable(settings))
    return Plan(
        settings=settings,
        turns=_turns(settings, given["turns"]),
        until_reward=mark_of(settings),
        step_limit=given["step_limit"],
        uplink=given["uplink"] or Uplink(),
        speeds=given["speeds"],
        delay_s=given["delay"],
        loss=given["loss"],
    )


def _turns(settings: Settings, file: Path | None) -> Recorded:
    from olaf.errors.usage import ConfigurationError
    from olaf.rl.recorded import reread, shipped
    from olaf.virtual.plan import learner_of
    from olaf.virtual.running import time_turns

    config = learner_of(settings, 0)
    if file is not None:
        try:
            record = json.loads(file.read_text(encoding="utf-8"))
            return reread(config, record, record["environments"][config.environment])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(
                f"--turns {file}: not a record of turns of {config.environment} ({error!r}): "
                "name a turns.json of an earlier --out"
            ) from None
    known = shipped(config)
    if known is not None:
        return known
    record = time_turns(config, TIMED_TURNS, _say)
    return reread(config, record, record["environments"][config.environment])


def _say(text: str) -> None:
    click.echo(text, err=True)


def _title(plan: Plan, given: dict[str, Any]) -> str:
    settings, source = plan.settings, plan.turns.source
    seeds = ", ".join(str(seed) for seed in given["seeds"])
    links = f"each link {plan.delay_s * 1000:g} ms one way, {100 * plan.loss:g} % lost"
    return (
        f"{settings.learner.environment} to a mean reward of {plan.until_reward:g} over 100 "
        f"episodes, in virtual time; seeds {seeds}\n"
        f"queue {settings.switch.queue}, uplink {_uplink(plan)}; {links}; fastest over slowest "
        f"{plan.speeds:g}\n"
        f"turns: {source['turns']} recorded on {source['cpu']}, {source['recorded_at']}"
    )


def _uplink(plan: Plan) -> str:
    from olaf._olaf import format_rate

    kind, value = plan.uplink.kind, plan.uplink.value
    if kind == "settings":
        own = plan.settings.switch
        return own.uplink or (f"{own.credits} credits" if own.credits else "free")
    if kind == "share":
        return f"{value:g} of the workers' push rate"
    return "free" if kind == "free" else format_rate(round(value))


def _legend(plan: Plan) -> str:
    return (
        "virtual s: median over the seeds; a dash: target not reached within "
        f"{plan.step_limit:,} environment steps.\n"
        "speed-up: median of one machine without a network divided by this median, with its "
        "interval over the seeds of both."
    )


def _record(plan: Plan, given: dict[str, Any], arms: list[Arm], runs: list[Run]) -> dict[str, Any]:
    from olaf.jobs.result import version
    from olaf.virtual.summary import where_it_stops

    return {
        "olaf": version(),
        "settings": plan.settings.model_dump(mode="json"),
        "machines": given["workers"],
        "seeds": given["seeds"],
        "until_reward": plan.until_reward,
        "step_limit": plan.step_limit,
        "uplink": {"kind": plan.uplink.kind, "value": plan.uplink.value},
        "speeds": plan.speeds,
        "delay_s": plan.delay_s,
        "loss": plan.loss,
        "turns": dict(plan.turns.source),
        "where_it_stops": where_it_stops(arms),
        "arms": [arm.model_dump(mode="json") for arm in arms],
        "runs": [run.model_dump(mode="json") for run in runs],
    }


def _write(
    out: Path, plan: Plan, record: dict[str, Any], arms: list[Arm], runs: list[Run]
) -> list[Path]:
    from olaf.errors.outcome import Exit, RunError
    from olaf.rl.recorded import written
    from olaf.virtual.drawing import draw_rewards
    from olaf.virtual.plan import learner_of
    from olaf.virtual.tables import markdown

    texts = {
        "results.json": json.dumps(record, indent=1) + "\n",
        "turns.json": json.dumps(written(learner_of(plan.settings, 0), plan.turns)) + "\n",
        "table.md": markdown(arms) + "\n",
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (out / name).write_text(text, encoding="utf-8")
        title = f"{plan.settings.learner.environment}, uplink {_uplink(plan)}"
        draw_rewards(runs, title, plan.until_reward, out / "reward")
    except OSError as error:
        reason = f"--out {out}: {error.strerror}; name a folder that you can write to"
        raise RunError(reason, Exit.USAGE) from None
    return [out / name for name in (*texts, "reward.svg", "reward.png")]
