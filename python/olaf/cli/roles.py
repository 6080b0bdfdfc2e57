"""``olaf switch``, ``olaf server``, ``olaf worker``: one role per process, on any machines.

`olaf train` starts its roles with ``--attached``. Such a role reads its checked configuration
from the first line of stdin, and stops at the end of stdin.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from olaf import extras
from olaf.cli import options
from olaf.jobs import roles as running
from olaf.jobs.queues import METAVAR
from olaf.processes.lines import PROGRESS, Control, Message, Reporter, apart, orders_apart

attached_option = click.option("--attached", is_flag=True, hidden=True)
key_option = click.option(
    "--key-file",
    "key_files",
    multiple=True,
    metavar="FILE",
    help="Let in only parties with this key (olaf keys). Repeatable: a key for each job.",
)
insecure_option = click.option(
    "--insecure",
    is_flag=True,
    default=None,
    help="Listen beyond this machine without a key, so that anybody there may take part.",
)
every_option = click.option(
    "--every",
    type=options.Seconds(least=0.01),
    default="5s",
    show_default=True,
    metavar="TIME",
    help="Interval between status lines.",
)


@click.command()
@click.option(
    "--engines",
    metavar="NAME,..",
    help="Engines that the switch runs: queue (the default) merges updates for a server; reduce "
    "sums the arrays of all workers (all-reduce); iswitch, trio and atp do so after their "
    "papers; atp needs an atp_server.",
)
@click.option(
    "--listen",
    multiple=True,
    metavar="[ENGINE=]HOST:PORT",
    help="Address that workers and servers send to. It is the first engine's; each next engine "
    "takes the next port. With ENGINE= before it, the address of that engine. Repeatable.",
)
@click.option(
    "--upstream",
    multiple=True,
    metavar="[ENGINE=]HOST:PORT",
    help="The parameter server, or the next switch, of the engine queue. ENGINE=HOST:PORT: the "
    "switch that sums the sums of that engine. Repeatable.",
)
@click.option(
    "--cores",
    type=int,
    metavar="N",
    help="Cores that the engine reduce sums on. Each has a port: those after the engine's own.",
)
@key_option
@insecure_option
@click.option("--queue", metavar=METAVAR, help="Discipline of the uplink.")
@click.option("--slots", type=int, help="Number of segments that the queue holds.")
@click.option("--gate", metavar="THRESHOLD|off", help="Reward gate.")
@click.option("--uplink", metavar="RATE", help="Bandwidth of the uplink in tc's units: 1.9mbit.")
@click.option("--credits", metavar="N", help="Most unanswered updates on the way to a server.")
@click.option(
    "--downlink",
    metavar="RATE|off",
    help="Bandwidth of the link towards the workers: 10mbit. off sends at once.",
)
@click.option(
    "--downlink-limit",
    "downlink_limit_datagrams",
    type=int,
    metavar="N",
    help="Number of datagrams that may wait for the downlink; more are dropped.",
)
@click.option(
    "--uplink-ecn-depth",
    "uplink_ecn_depth_datagrams",
    metavar="N|off",
    help="Mark updates (ECN) while N or more datagrams wait for the uplink. Only updates of "
    "workers with `ecn` = true can be marked.",
)
@click.option(
    "--downlink-ecn-depth",
    "downlink_ecn_depth_datagrams",
    metavar="N|off",
    help="Mark answers (ECN) while N or more datagrams wait for the downlink. Only answers of a "
    "server with `ecn` = true can be marked.",
)
@click.option(
    "--admission",
    metavar="POLICY.toml|off",
    help="Ask the verifier whether a new cluster fits beside the present ones.",
)
@click.option(
    "--admission-timeout",
    "admission_timeout_ms",
    type=options.Duration(),
    help="Time limit for the verifier's answer: 5s, 800ms.",
)
@click.option(
    "--admission-unanswered", metavar="admit|refuse", help="The answer at the time limit."
)
@click.option(
    "--admission-mismatch",
    metavar="say|refuse",
    help="What follows if slots, rate, workers or intervals are not what POLICY.toml says.",
)
@options.metrics
@options.metrics_token
@options.log_format
@options.log_level
@every_option
@options.as_json
@options.configuration
@attached_option
@click.pass_context
def switch(ctx: click.Context, /, **given: Any) -> None:
    """Run an aggregation switch until SIGTERM or Ctrl-C.

    Workers send their updates to the switch. It queues them for the server, replaces and merges
    waiting updates, and sends the answers back. Its upstream may be another switch, which merges
    the merged updates further. The engine reduce needs no server: it sums the arrays of all workers
    and sends each of them the sum (olaf.connect_sum, docs/all-reduce.md).

    \b
    Examples:
      olaf switch --listen 0.0.0.0:5555 --upstream 10.0.0.2:5556 --key-file switch.key
      olaf switch --upstream 10.0.0.9:5555 --uplink 40gbit         # 10.0.0.9 is a switch too
      olaf switch --queue fifo --slots 4 --json --every 1s
      olaf switch --uplink 2mbit --uplink-ecn-depth 4 --downlink 10mbit
      olaf switch --admission running.toml --admission-timeout 5s --admission-unanswered refuse
      olaf switch --engines reduce --listen 127.0.0.1:5555        # sums arrays; needs no server
      olaf switch --engines queue,reduce --listen 127.0.0.1:5555  # reduce listens on port 5556
      olaf switch --engines queue,reduce --listen reduce=127.0.0.1:7000
      olaf switch --engines reduce --listen 0.0.0.0:5555 --insecure   # for anybody who reaches it
      olaf switch --engines reduce --upstream reduce=10.0.0.9:5555   # sums further up
      olaf switch --engines reduce --cores 4 --listen 127.0.0.1:5555  # ports 5555 to 5558
      olaf switch --engines reduce --set switch.reduce.memory=1GiB --set switch.reduce.deadline=20ms
    """
    keys = (
        *("metrics", "metrics_token_file"),
        *("engines", "key_files", "insecure", "queue", "slots", "gate", "uplink", "credits"),
        *("downlink", "downlink_limit_datagrams"),
        *("uplink_ecn_depth_datagrams", "downlink_ecn_depth_datagrams"),
        *("admission", "admission_timeout_ms", "admission_unanswered"),
        "admission_mismatch",
    )
    control, told = _begin(given)
    if told is None:
        chosen = _by_engine("listen", given["listen"], "switch.listen_at.{}")
        chosen |= _by_engine("upstream", given["upstream"], "switch.{}.upstream")
        if given["cores"] is not None:
            chosen["switch.reduce.cores"] = ("--cores", given["cores"])
        settings = options.settings(ctx, {key: f"switch.{key}" for key in keys}, more=chosen)
        told = {
            "core": settings.switch.to_core(),
            "every_s": given["every"],
            "admission": settings.switch.to_admission(),
        }
    reporter = _reporter(ctx, given, "switch")  # from here on stdout is for its messages alone
    with contextlib.closing(control):
        running.run_told("switch", told, reporter, control)


@click.command()
@click.option("--listen", metavar="HOST:PORT", help="Address that the switch sends to.")
@key_option
@insecure_option
@click.option("--rule", metavar="delta|paper-literal", help="How an update changes the model.")
@click.option("--learning-rate", type=float, help="Factor on every update; 1 changes nothing.")
@click.option(
    "--model",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npz",
    help="Write the model of job 1 to this file at the end.",
)
@click.option(
    "--checkpoint",
    metavar="FILE.npz",
    help="Save the job to this file, and load it at start. See docs/reference/checkpoint.md.",
)
@click.option(
    "--checkpoint-every",
    type=options.Duration(),
    metavar="TIME",
    help="Interval between two saves: 30s.",
)
@click.option("--fresh", is_flag=True, default=None, help="Ignore an existing checkpoint.")
@options.metrics
@options.metrics_token
@options.log_format
@options.log_level
@every_option
@options.as_json
@options.configuration
@attached_option
@click.pass_context
def server(ctx: click.Context, /, **given: Any) -> None:
    """Run a parameter server until SIGTERM or Ctrl-C.

    The first worker of a job sends the first model. Every update that arrives changes the model,
    and the server sends the new model back to the update's cluster.

    \b
    Examples:
      olaf server --listen 0.0.0.0:5556 --key-file job.key --model lander.npz
      olaf server --checkpoint lander.npz --checkpoint-every 1min
      olaf server --rule paper-literal --json
    """
    own = ("listen", "key_files", "insecure", "rule", "learning_rate", "checkpoint", "fresh")
    keys = {key: key for key in (*own, "metrics", "metrics_token_file")}
    keys["checkpoint_every"] = "checkpoint_every_ms"
    control, told = _begin(given)
    if told is None:
        settings = options.settings(ctx, {name: f"server.{key}" for name, key in keys.items()})
        told = {
            "core": settings.server.to_core(),
            "every_s": given["every"],
            "model_file": str(given["model"]) if given["model"] else None,
            "job": settings.worker.job,
        }
    reporter = _reporter(ctx, given, "server")  # from here on stdout is for its messages alone
    with contextlib.closing(control):
        running.run_told("server", told, reporter, control)


@click.command()
@click.option("--switch", metavar="HOST:PORT", help="Address of the switch.")
@click.option("--key-file", metavar="FILE", help="The key of the job (olaf keys).")
@click.option("--job", type=int, help="Number of the job.")
@click.option("--cluster", type=int, help="Number of this worker's cluster.")
@click.option("--id", type=int, help="Number of this worker, unique in the job.")
@click.option("--env", metavar="ID", help="Any id that gymnasium.make knows, or module:ID.")
@click.option("--learner", metavar="numpy|torch", help="torch needs the extra `torch`.")
@click.option("--transmission", metavar="off|paper|fair", help="When the worker sends (OLAF §5).")
@click.option("--updates", metavar="N", help="Stop after N updates.")
@click.option("--seed", type=int, help="Random seed of environment, policy and first weights.")
@options.metrics
@options.metrics_token
@options.log_format
@options.log_level
@every_option
@options.as_json
@options.configuration
@attached_option
@click.pass_context
def worker(ctx: click.Context, /, **given: Any) -> None:
    """Run one worker: play, learn, push, and take each new model when it arrives.

    --json prints one line after every push; --every applies to the log, as text or as JSON lines.

    \b
    Examples:
      olaf worker --switch 10.0.0.1:5555 --cluster 0
      olaf worker --env CartPole-v1 --updates 100 --set learner.epochs=8
    """
    control, told = _begin(given)
    if told is None:
        from olaf.jobs.training import worker_job

        own_keys = ("switch", "key_file", "job", "cluster", "id", "updates", "transmission")
        keys = {f: f"worker.{f}" for f in (*own_keys, "metrics", "metrics_token_file")}
        keys |= {"env": "learner.environment", "learner": "learner.learner", "seed": "worker.seed"}
        settings = options.settings(ctx, keys)
        own = settings.worker
        task = worker_job(
            settings, switch=own.switch, worker=own.id, cluster=own.cluster, seed=own.seed
        )
        told = dataclasses.asdict(task)
        told["client"] |= {"metrics": own.metrics, "metrics_token_file": own.metrics_token_file}
    extras.need("train", "gymnasium", what="olaf worker")
    reporter = _reporter(ctx, given, "worker")  # from here on stdout is for its messages alone
    with contextlib.closing(control):
        running.run_told("worker", told, reporter, control)


def _by_engine(name: str, given: Sequence[str], of_engine: str) -> dict[str, tuple[str, Any]]:
    """The keys of an option that is ``HOST:PORT`` or, for an engine, ``ENGINE=HOST:PORT``."""
    chosen: dict[str, tuple[str, Any]] = {}
    for text in given:
        engine, _, address = text.rpartition("=")
        own = engine and not (name == "upstream" and engine == "queue")
        chosen[of_engine.format(engine) if own else f"switch.{name}"] = (f"--{name}", address)
    return chosen


def _begin(given: Mapping[str, Any]) -> tuple[Control, dict[str, Any] | None]:
    """Prepare to be stopped; return the parent's message, if there is a parent."""
    control = Control().catch_signals()
    if not given["attached"]:
        return control, None
    faulthandler.enable()  # a crash of a library says in which line of Python
    orders = orders_apart()
    told: dict[str, Any] = json.loads(orders.readline() or "null")
    control.watch(orders)
    return control, told


def _reporter(ctx: click.Context, given: Mapping[str, Any], role: str) -> Reporter:
    human = _human(role, given["every"])
    if given["json_out"]:
        return Reporter(as_json=True, out=ctx.with_resource(apart()), human=human)
    from olaf._olaf import LogFilter

    as_json = given["log_format"] == "json"
    quiet = LogFilter(given["log_level"])
    return Reporter(as_json=as_json, human=human, filtered=quiet, every_s=given["every"])


def _human(role: str, every_s: float) -> Callable[[Message], str]:
    """Prints messages of a role; a worker's updates at most every ``every_s`` seconds."""
    import time

    last = [float("-inf")]

    def say(message: Message) -> str:
        from olaf.jobs import words

        event = message["event"]
        if event in PROGRESS:
            now = time.monotonic()
            if now < last[0] + every_s:
                return ""
            last[0] = now
            text = words.status_of_worker(message)
        elif event in ("stats", "stopped"):
            stats = message["stats"]
            status = {"switch": words.status_of_switch, "server": words.status_of_server}.get(role)
            text = status(stats) if status else f"{stats['contributions']} contributions"
            if event == "stopped":
                text = f"stopped ({message['why']}): {text}"
        else:
            text = words.sentence(message)
        return f"{time.strftime('%H:%M:%S')} {role}: {text}"

    return say
