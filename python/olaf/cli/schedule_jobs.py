"""``olaf schedule submit`` and the other clients of a running service."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from olaf.cli import options

if TYPE_CHECKING:
    from olaf.schedule.client import Client

F = TypeVar("F", bound=Callable[..., Any])

STATES = ("queued", "running", "stopping", "finished", "failed", "cancelled")


def asks(command: F) -> F:
    """``--url``, ``--token-file``, ``--timeout`` and ``--json``."""
    for option in (
        options.as_json,
        click.option(
            "--timeout",
            "timeout_ms",
            type=options.Duration(),
            default="10s",
            show_default=True,
            metavar="TIME",
            help="Time limit for the service's answer.",
        ),
        click.option(
            "--token-file",
            type=click.Path(path_type=Path, dir_okay=False),
            metavar="FILE",
            help="File with the service's token. Or set OLAF_SCHEDULE_TOKEN_FILE.",
        ),
        click.option(
            "--url",
            metavar="URL",
            help="URL of the service. Or set OLAF_SCHEDULE_URL. Default: http://127.0.0.1:7070.",
        ),
    ):
        command = option(command)
    return command


def _client(how: dict[str, Any]) -> Client:
    from olaf import extras

    extras.need("schedule", "httpx", what="olaf schedule")
    from olaf.schedule.client import Client

    return Client(
        how["url"], token_file=how["token_file"], timeout_s=max(how["timeout_ms"], 1) / 1000
    )


def _say(answer: dict[str, Any], sentence: str, how: dict[str, Any]) -> None:
    click.echo(json.dumps(answer) if how["json_out"] else sentence)


job_argument = click.argument("job", type=click.IntRange(1, 2**53), metavar="JOB")


@click.command()
@click.argument("name")
@click.option("--hosts", type=int, required=True, metavar="N", help="Number of hosts.")
@click.option("--pattern", metavar="NAME", help="Communication pattern; `status` lists them.")
@click.option(
    "--units", type=int, default=1, show_default=True, help="Units of each switch resource."
)
@click.option("--steps", type=int, help="Number of training steps, if known.")
@click.option("--key", help="Name of this submission; the same key never makes a second job.")
@asks
def submit(
    *,
    name: str,
    hosts: int,
    pattern: str | None,
    units: int,
    steps: int | None,
    key: str | None,
    **how: Any,
) -> None:
    """Submit a job. It is submitted only once, even if the service restarts meanwhile.

    \b
    Examples:
      olaf schedule submit vgg-nightly --hosts 16 --pattern transformer-4
      olaf schedule submit sweep-17 --hosts 4 --key sweep-17 --json
    """
    body = {"name": name, "hosts": hosts, "pattern": pattern, "units": units, "steps": steps}
    with _client(how) as client:
        job = client.submit(body, key)
    where = f", at place {job['position']}" if job["position"] else ""
    _say(job, f"job {job['job']} {job['name']}: {job['state']}{where}", how)


@click.command(name="list")
@click.option("--state", type=click.Choice(STATES), help="List only jobs in this state.")
@asks
def list_jobs(*, state: str | None, **how: Any) -> None:
    """List jobs, in the order of submission. Jobs that ended long ago are left out.

    \b
    Examples:
      olaf schedule list
      olaf schedule list --state queued --json
    """
    found: list[dict[str, Any]] = []
    with _client(how) as client:
        more = True
        while more:
            after = found[-1]["job"] if found else 0
            part = client.get("/jobs", after=after, state=state)
            found += part["jobs"]
            more = part["more"]
    if how["json_out"]:
        click.echo(json.dumps({"jobs": found}))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for heading in ("job", "name", "state", "hosts", "pattern", "tree", "holds", "moved"):
        table.add_column(heading, justify="right" if heading in ("job", "hosts") else "left")
    for job in found:
        held = job["held"]
        state_word = f"{job['state']} {job['position']}" if job["position"] else job["state"]
        table.add_row(
            str(job["job"]),
            Text(job["name"]),
            state_word,
            str(job["hosts"]),
            job["pattern"] or "-",
            job["root"] or "-",
            f"{held['phase']} {held['root']}" if held else "-",
            str(job["migrations"]),
        )
    options.console(json_out=False).print(table)


@click.command()
@job_argument
@asks
def explain(*, job: int, **how: Any) -> None:
    """Explain a job's state: its hosts, its tree, the jobs that it shares with or waits for.

    \b
    Examples:
      olaf schedule explain 3
      olaf schedule explain 3 --json
    """
    from olaf.schedule import words

    with _client(how) as client:
        told = client.get(f"/jobs/{job}/explanation")
    if how["json_out"]:
        click.echo(json.dumps(told))
        return
    for label, sentence in words.explanation(told):
        click.echo(f"{label:8} {sentence}")


def _told(path: str, job: int, how: dict[str, Any], body: dict[str, Any] | None = None) -> None:
    with _client(how) as client:
        answer = client.post(f"/jobs/{job}/{path}", body)
    _say(answer, f"job {answer['job']} {answer['name']}: {answer['state']}", how)


@click.command()
@job_argument
@asks
def finish(*, job: int, **how: Any) -> None:
    """Report that a job has ended well: it has no processes and uses no tree any more.

    \b
    Examples:
      olaf schedule finish 3
    """
    _told("finish", job, how)


@click.command()
@job_argument
@click.option("--reason", default="said to have failed", show_default=True, help="Text for people.")
@asks
def fail(*, job: int, reason: str, **how: Any) -> None:
    """Report that a job is dead. Its hosts are free; its tree is fenced before other jobs get it.

    \b
    Examples:
      olaf schedule fail 3 --reason "host h17 lost power"
    """
    _told("fail", job, how, {"reason": reason})


@click.command()
@job_argument
@asks
def cancel(*, job: int, **how: Any) -> None:
    """Stop a job: a waiting job ends, a running job is told to stop.

    \b
    Examples:
      olaf schedule cancel 3
    """
    _told("cancel", job, how)


def _nodes(names: tuple[str, ...], verb: str, how: dict[str, Any], *, hosts: bool) -> None:
    from urllib.parse import quote

    from olaf.errors.outcome import RunError
    from olaf.schedule import words
    from olaf.schedule.client import ProblemError

    kind = "hosts" if hosts else "switches"
    with _client(how) as client:
        for name in names:
            try:
                answer = client.post(f"/{kind}/{quote(name, safe='')}/{verb}")
            except ProblemError as error:
                if error.status != 404 or hosts:
                    raise
                raise RunError(f"{error}; a host needs --host", error.code) from None
            told = answer["told"]
            moved = f"; told to release their trees: {words.jobs(told)}" if told else ""
            again = "" if answer["changed"] else " already"
            state = "drained" if answer["drained"] else "in use"
            _say(answer, f"{name} is {state}{again}{moved}", how)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--host", "hosts", is_flag=True, help="The names are hosts: no new job gets them.")
@asks
def drain(*, names: tuple[str, ...], hosts: bool, **how: Any) -> None:
    """Keep trees off a switch; its jobs move to other trees, or go without a tree.

    \b
    Examples:
      olaf schedule drain agg0.1
      olaf schedule drain --host h17 h18
    """
    _nodes(names, "drain", how, hosts=hosts)


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--host", "hosts", is_flag=True, help="The names are hosts.")
@asks
def undrain(*, names: tuple[str, ...], hosts: bool, **how: Any) -> None:
    """Allow trees through a switch again, or jobs on a host.

    \b
    Examples:
      olaf schedule undrain agg0.1
      olaf schedule undrain --host h17
    """
    _nodes(names, "undrain", how, hosts=hosts)


@click.command()
@asks
def status(**how: Any) -> None:
    """Show the cluster: hosts, jobs, trees, drained switches and hosts, and the policies.

    \b
    Examples:
      olaf schedule status
      olaf schedule status --json --url http://10.0.0.5:7070
    """
    with _client(how) as client:
        told = client.get("/cluster")
    if how["json_out"]:
        click.echo(json.dumps(told))
        return
    from olaf.schedule import words
    from olaf.schedule.worth import show

    def line(label: str, text: str) -> None:
        click.echo(f"{label:10} {text}")

    line("hosts", f"{told['hosts']}, {told['free_hosts']} free")
    line("switches", f"{told['switches']}, each sums for {told['capacity']}")
    line("jobs", f"{told['running']} running, {told['queued']} waiting")
    between = f", {told['migrating']} between two" if told["migrating"] else ""
    fencing = f", {told['fencing']} of dead jobs to be fenced" if told["fencing"] else ""
    line("trees", f"{told['with_tree']} in use{between}{fencing}")
    for what in ("switches", "hosts"):
        if told[f"drained_{what}"]:
            line("drained", words.names(told[f"drained_{what}"]))
    line("placement", words.policy(told["placement"]))
    line("trees by", words.policy(told["trees"]))
    network = told["network"]
    line(
        "network",
        f"{show('bytes_per_second', network['bytes_per_second'])}, "
        f"{show('speedup_millis', network['speedup_millis'])} times as fast when switches sum",
    )
    line("patterns", words.names(told["patterns"]) or "none")


@click.command()
@click.option("--after", type=click.IntRange(0, 2**53), default=0, help="Skip up to this number.")
@click.option("--job", type=click.IntRange(1, 2**53), help="Print only events of this job.")
@click.option("--follow", is_flag=True, help="Print new events until Ctrl-C.")
@asks
def events(*, after: int, job: int | None, follow: bool, **how: Any) -> None:
    """Print past events; with --follow, new events as well.

    \b
    Examples:
      olaf schedule events --job 3
      olaf schedule events --follow --json
    """
    from olaf.schedule import words

    with _client(how) as client:
        while True:
            found, after = client.events(after, job=job, wait_s=30.0 if follow else 0.0)
            for each in found:
                text = (
                    json.dumps(each) if how["json_out"] else f"{each['seq']:6}  {words.event(each)}"
                )
                click.echo(text)
            if not follow:
                return
