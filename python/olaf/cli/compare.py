"""``olaf compare``: FIFO, OLAF and two baselines with the same seeds on the same link."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from olaf import extras
from olaf.cli import options
from olaf.jobs import forking
from olaf.jobs.queues import NAMES
from olaf.values.numbers import counted

if TYPE_CHECKING:
    from olaf.jobs.settings import Settings

KEYS = {
    "env": "learner.environment",
    "env_options": "learner.environment_options",
    "workers": "train.workers",
    "clusters": "compare.clusters",
    "learner": "learner.learner",
    "queues": "compare.queues",
    "baselines": "compare.baselines",
    "turns_per_push": "compare.turns_per_push",
    "slots": "compare.slots",
    "uplink": "compare.uplink",
    "rule": "server.rule",
    "updates": "train.updates",
    "until_reward": "train.until_reward",
    "time_limit": "compare.time_limit_s",
    "seeds": "compare.seeds",
    "out": "compare.out",
}


def _seeds(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[int] | None:
    if value is None:
        return None
    try:
        return [int(seed) for seed in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r}: write seeds as 0,1,2") from None


def _names(ctx: click.Context, parameter: click.Parameter, value: str | None) -> list[str] | None:
    if value == "off":
        return []
    return None if value is None else [name.strip() for name in value.split(",")]


@click.command()
@click.option("--env", metavar="ID", help="Any id that gymnasium.make knows, or module:ID.")
@options.env_option
@click.option("--workers", type=int, help="Number of worker processes.")
@click.option("--clusters", type=int, help="Number of clusters; the workers are spread over them.")
@click.option("--learner", metavar="numpy|torch", help="torch needs the extra `torch`.")
@click.option(
    "--queues", callback=_names, metavar="fifo,olaf,..", help=f"Any of {', '.join(NAMES)}."
)
@click.option(
    "--baselines",
    callback=_names,
    metavar="push-less-often,tcp|off",
    help="Baselines to run as well. Default: both.",
)
@click.option(
    "--turns-per-push",
    metavar="K|off",
    help="For push-less-often: turns that a worker sums for one push; off measures a suitable K.",
)
@click.option("--slots", type=int, help="Number of updates that the queue holds.")
@click.option("--uplink", metavar="RATE", help="Bandwidth of the uplink in tc's units: 1.9mbit.")
@click.option("--rule", metavar="delta|paper-literal", help="How an update changes the model.")
@click.option("--updates", metavar="N|off", help="Stop each run after N updates.")
@click.option("--until-reward", metavar="R|solved|off", help="Stop each run at this mean reward.")
@click.option("--time-limit", metavar="TIME|off", help="Stop each run after TIME: 90s, 2min.")
@click.option(
    "--seeds",
    callback=_seeds,
    metavar="0,1,..",
    help="Random seeds: each queue and baseline runs once per seed. Intervals need five seeds.",
)
@click.option(
    "--out",
    metavar="DIR",
    help="Folder of the comparison. Default: runs/<time>-compare-<environment>.",
)
@options.as_json
@options.configuration
@click.pass_context
def compare(ctx: click.Context, /, **given: Any) -> int:
    """Train with FIFO, with OLAF and with two baselines on the same narrow uplink.

    The baselines need no switch that merges. push-less-often: FIFO, and each worker pushes the sum
    of k turns; k is chosen so that it uses no more of the uplink than OLAF did. tcp: a plain TCP
    parameter server without a switch. The table compares each baseline with our best queue, seed by
    seed. With five seeds or more it shows an interval.

    Runs follow each other, so that each has the whole machine. The command writes compare.json,
    compare.html and one folder per run to runs/<time>-compare-<environment>; runs/latest-compare
    links to the newest comparison.

    \b
    Examples:
      olaf compare
      olaf compare --uplink 400kbit --seeds 0,1,2,3,4
      olaf compare --baselines off
      olaf compare --queues olaf,freshest --clusters 8
      olaf compare --env CartPole-v1 --workers 4 --clusters 2 --until-reward 200
    """
    extras.need("train", what="olaf compare")
    with forking.opened():  # one for all runs
        settings = options.settings(ctx, KEYS)
        return run_comparison(settings, json_out=given["json_out"])


def run_comparison(settings: Settings, *, json_out: bool) -> int:
    """Run all, print the table, keep the record; return the exit code."""
    from olaf.cli.train import observer, run_training
    from olaf.errors.outcome import Exit
    from olaf.jobs.comparison import arms_of, plan
    from olaf.rl.packed import shown
    from olaf.runs.folder import LATEST_COMPARISON, given_folder, new_folder

    arms = arms_of(settings)  # refuse invalid settings before the folder exists
    if settings.compare.out is None:
        name = f"compare-{shown(settings.learner.environment)}"
        out = new_folder(name, latest=LATEST_COMPARISON)
    else:
        out = given_folder(Path(settings.compare.out))
    click.echo(_announcement(settings, arms), err=json_out)
    records: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    code = Exit.OK
    for planned in plan(settings, out, results):
        turns = planned.settings.worker.turns_per_push
        more = f", {turns} turns per push" if turns > 1 else ""
        click.echo(f"\n== {planned.name}{more}", err=json_out)
        lines = {"json_out": json_out, "log_format": "text", "log_level": "info"}
        run = run_training(planned.settings, observer(lines))
        click.echo(f"{run.result['outcome']}: {run.result['reason']}", err=json_out)
        results.append({**run.result, "arm": planned.arm})
        records.append({**run.record, "result": results[-1]})
        if run.outcome.kind in ("failed", "interrupted"):
            code = run.outcome.code
            break
    _conclude(out, settings, records, json_out=json_out)
    return int(code)


def _announcement(settings: Settings, arms: list[str]) -> str:
    """Return the number of runs, their longest duration, and the seeds that intervals need."""
    from olaf.statistics.intervals import ENOUGH

    compare = settings.compare
    runs = len(arms) * len(compare.seeds)
    seeds = counted(len(compare.seeds), "seed")
    text = f"{counted(runs, 'run')}: {', '.join(arms)} with {seeds} each"
    if compare.time_limit_s is not None:
        text += f", at most {runs * compare.time_limit_s / 60:.0f} minutes of training"
    if len(compare.seeds) < ENOUGH:
        text += f"; intervals need {ENOUGH} seeds (--seeds {','.join(map(str, range(ENOUGH)))})"
    return text


def _conclude(
    out: Path, settings: Settings, records: list[dict[str, Any]], *, json_out: bool
) -> None:
    from olaf.jobs.summary import ratios, summarize, verdict
    from olaf.report.comparing import comparison_page, comparison_table, notes_of

    runs = [record["result"] for record in records]
    # A run that was interrupted says nothing about its arm.
    results = [run for run in runs if run["outcome"] not in ("failed", "interrupted")]
    comparison = {
        "olaf": records[-1]["olaf"],
        "written_at": records[-1]["written_at"],
        "settings": settings.model_dump(mode="json"),
        "summary": (summary := summarize(results)),
        "ratios": ratios(results),
        "verdict": verdict(summary, results),
        "runs": [{"folder": f"{r['arm']}-seed{r['seed']}", "result": r} for r in runs],
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "compare.json").write_text(json.dumps(comparison, indent=1) + "\n", encoding="utf-8")
    (out / "compare.html").write_text(comparison_page(comparison, records), encoding="utf-8")
    console = options.console(json_out=json_out)
    console.print()
    console.print(comparison_table(comparison))
    console.print(" ".join(notes_of(comparison)), style="dim")
    console.print(f"\n{comparison['verdict']}", highlight=False)
    console.print(f"\nreport  {out / 'compare.html'}   record  {out / 'compare.json'}")
    if json_out:
        keys = ("summary", "ratios", "verdict", "runs")
        click.echo(json.dumps({key: comparison[key] for key in keys}))
