"""The allocation controller over HTTP and JSON. It only wraps: the core decides the answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Header, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException

from olaf._olaf import __version__
from olaf.schedule import models, problems
from olaf.schedule.controller import Controller, Done, RefusedError
from olaf.schedule.feed import Feed
from olaf.schedule.guard import Guard
from olaf.schedule.known import Known
from olaf.schedule.places import Places
from olaf.schedule.store import StoreError

T = TypeVar("T")

LONGEST_WAIT_S = 60.0

JobId = Annotated[int, Path(ge=1, le=models.MOST, description="Number of the job.")]
NodeName = Annotated[str, Path(max_length=256, description="Name in the topology.")]


def application(
    controller: Controller, feed: Feed, known: Known, places: Places, *, token: str | None = None
) -> FastAPI:
    """The HTTP application. With ``token`` None, every client that reaches it may use it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        feed.attach(asyncio.get_running_loop())
        yield
        feed.close()

    app = FastAPI(
        title="Olaf: allocation controller",
        version=__version__,
        summary="Hosts and aggregation trees for jobs that share the switches (MINA).",
        lifespan=lifespan,
        responses=problems.PROBLEMS,
        redoc_url=None,
        # The documentation page would load scripts from elsewhere; /openapi.json is enough.
        docs_url=None,
    )
    app.add_middleware(Guard, token=token)
    problems.install(app)
    _submitting(app, controller, known)
    _jobs(app, controller)
    _orders(app, controller)
    _nodes(app, controller)
    _cluster(app, controller, feed, known, places)
    return app


async def _done(controller: Controller, command: dict[str, Any]) -> Done:
    return await asyncio.wrap_future(controller.command(command))


async def _job(controller: Controller, command: dict[str, Any]) -> models.Job:
    return models.Job.model_validate((await _done(controller, command)).job)


def _submitting(app: FastAPI, controller: Controller, known: Known) -> None:
    @app.post("/jobs", status_code=201, responses={200: {"model": models.Job}})
    async def submit(
        body: models.Submission,
        response: Response,
        idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
    ) -> models.Job:
        """Submit a job. With the header Idempotency-Key, a repeated request submits it once."""
        asked = body.model_dump()
        gain = known.gain(body.pattern, body.hosts)
        kept = None if body.pattern is None else (body.pattern, known.text(body.pattern))
        came = await asyncio.wrap_future(controller.submit(asked, gain, idempotency_key, kept))
        if came.repeated:
            response.status_code = 200
        if came.job is None:
            raise HTTPException(404, "the job that this key submitted ended, and was forgotten")
        return models.Job.model_validate(came.job)


def _jobs(app: FastAPI, controller: Controller) -> None:
    @app.get("/jobs")
    async def jobs(
        after: Annotated[int, Query(ge=0, le=models.MOST)] = 0,
        limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
        state: models.JobState | None = None,
    ) -> models.Jobs:
        """Jobs after `after`, in the order of submission. Jobs that ended long ago are left out."""
        ask = controller.read(lambda core: core.jobs(after=after, most=limit + 1, state=state))
        found = json.loads(await asyncio.wrap_future(ask))
        return models.Jobs(jobs=found[:limit], more=len(found) > limit)

    @app.get("/jobs/{job}")
    async def one(job: JobId) -> models.Job:
        """One job. `held` tells its runtime what to do, in case it has missed events."""
        text = await asyncio.wrap_future(controller.read(lambda core: core.job(job)))
        return models.Job.model_validate_json(_there(text, job))

    @app.get("/jobs/{job}/explanation")
    async def explanation(job: JobId) -> models.Explanation:
        """Explain why the job has its hosts and its tree."""
        text = await asyncio.wrap_future(controller.read(lambda core: core.explain(job)))
        return models.Explanation.model_validate_json(_there(text, job))


def _orders(app: FastAPI, controller: Controller) -> None:
    @app.post("/jobs/{job}/finish")
    async def finish(job: JobId) -> models.Job:
        """Report that it ended well: it uses no tree and has no processes."""
        return await _job(controller, {"do": "finish", "job": job})

    @app.post("/jobs/{job}/fail")
    async def fail(job: JobId, body: models.Failure | None = None) -> models.Job:
        """Report that it is dead. Its tree is fenced before others get the tree's resources."""
        reason = models.Failure.UNKNOWN if body is None else body.reason
        return await _job(controller, {"do": "fail", "job": job, "reason": reason})

    @app.post("/jobs/{job}/cancel")
    async def cancel(job: JobId) -> models.Job:
        """Stop it: a waiting job ends; a running one is told to stop, and then sends `finish`."""
        return await _job(controller, {"do": "cancel", "job": job})

    @app.post("/jobs/{job}/released")
    async def released(job: JobId, body: models.Acknowledgement) -> models.Job:
        """Report that it no longer uses this tree, or, if it is dead, that the switches refuse it.

        May be repeated.
        """
        command = {"do": "released", "job": job, "generation": body.generation}
        return await _job(controller, command)

    @app.post("/jobs/{job}/acquired")
    async def acquired(job: JobId, body: models.Acknowledgement) -> models.Job:
        """Report that it uses this tree. May be repeated."""
        command = {"do": "acquired", "job": job, "generation": body.generation}
        return await _job(controller, command)


def _nodes(app: FastAPI, controller: Controller) -> None:
    async def drained(command: dict[str, Any], name: str, *, drained: bool) -> models.Drained:
        outcome = (await _done(controller, command)).outcome
        told = {event["job"] for event in outcome["events"] if event["event"] == "release"}
        return models.Drained(
            name=name, drained=drained, changed=outcome["changed"], told=sorted(told)
        )

    @app.post("/switches/{name}/drain")
    async def drain_switch(name: NodeName) -> models.Drained:
        """Keep trees off this switch; its jobs move to other trees, or go without a tree."""
        return await drained({"do": "drain_switch", "switch": name}, name, drained=True)

    @app.post("/switches/{name}/undrain")
    async def undrain_switch(name: NodeName) -> models.Drained:
        """Allow trees through it again."""
        return await drained({"do": "undrain_switch", "switch": name}, name, drained=False)

    @app.post("/hosts/{name}/drain")
    async def drain_host(name: NodeName) -> models.Drained:
        """Keep jobs off this host from now on."""
        return await drained({"do": "drain_host", "host": name}, name, drained=True)

    @app.post("/hosts/{name}/undrain")
    async def undrain_host(name: NodeName) -> models.Drained:
        """Allow jobs on it again."""
        return await drained({"do": "undrain_host", "host": name}, name, drained=False)

    @app.post("/hosts/{name}/lost")
    async def lost(name: NodeName) -> models.Drained:
        """Report that it is dead: its job fails, and no job gets it until it is undrained."""
        return await drained({"do": "host_lost", "host": name}, name, drained=True)


def _cluster(
    app: FastAPI, controller: Controller, feed: Feed, known: Known, places: Places
) -> None:
    @app.get("/cluster")
    async def cluster() -> models.Cluster:
        """The cluster in a few numbers, and the drained switches and hosts."""
        text = await asyncio.wrap_future(controller.read(lambda core: core.cluster()))
        spec = {key: controller.spec[key] for key in ("placement", "trees")}
        return models.Cluster.model_validate(
            {**json.loads(text), **spec, "network": known.network, "patterns": known.names()}
        )

    @app.get("/events")
    async def events(
        request: Request,
        after: Annotated[int, Query(ge=0, le=models.MOST)] = 0,
        job: Annotated[int | None, Query(ge=1, le=models.MOST)] = None,
        wait: Annotated[float, Query(ge=0, le=LONGEST_WAIT_S, allow_inf_nan=False)] = 0.0,
    ) -> models.Events:
        """Events after number `after`; waits up to `wait` seconds for the first.

        410: those events are no longer kept. Read GET /jobs, then go on from /healthz's `events`.
        """
        found, last = await _while_there(request, feed.after(after, job, wait), ([], after))
        return models.Events(events=found, last=last)

    @app.get("/healthz")
    async def healthz() -> models.Health:
        """Whether the service works."""
        if controller.broken is not None:
            raise StoreError(controller.broken)
        return models.Health(status="ok", events=feed.last, waiting=controller.waiting())

    @app.get("/readyz", responses={503: {"model": models.Readiness}})
    async def readyz(response: Response) -> models.Readiness:
        """Whether the service can take commands: its store works."""
        if controller.broken is not None:
            response.status_code = 503
            return models.Readiness(ready=False, reasons=["the store failed"])
        return models.Readiness(ready=True, reasons=[])

    @app.get("/status.json")
    async def status() -> dict[str, Any]:
        """What `/metrics` counts, and the cluster, as one document."""
        text = await asyncio.wrap_future(controller.read(lambda core: core.cluster()))
        counts = {"events": feed.last, "waiting": controller.waiting(), "listeners": feed.listeners}
        connections = {"connections": len(places), "connections_closed": places.closed}
        own = {"role": "scheduler", "olaf": {"version": __version__}}
        return {**own, **counts, **connections, "cluster": json.loads(text)}

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics() -> str:
        """Metrics for Prometheus."""
        text = await asyncio.wrap_future(controller.read(lambda core: core.cluster()))
        return _metrics(json.loads(text), feed, controller, places)


async def _while_there(request: Request, answer: Coroutine[Any, Any, T], nothing: T) -> T:
    """The answer; ``nothing``, as soon as the client has left: who left must not count as one."""
    answering = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_leaving(request))
    try:
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return answering.result() if answering.done() else nothing
    finally:
        answering.cancel()
        leaving.cancel()


async def _leaving(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _there(text: str | None, job: int) -> str:
    if text is None:
        raise RefusedError(
            {"kind": "no_job", "job": job},
            f"no job {job}; list the jobs to see their numbers",
        )
    return text


GAUGES = {
    "hosts": "Hosts of the cluster.",
    "hosts_free": "Hosts without a job.",
    "hosts_drained": "Hosts that take no new jobs.",
    "switches_drained": "Switches that take no trees.",
    "jobs_queued": "Jobs that wait for hosts.",
    "jobs_running": "Jobs that have hosts.",
    "jobs_with_tree": "Running jobs that have a tree.",
    "jobs_migrating": "Jobs that change from one tree to another.",
    "jobs_fencing": "Dead jobs whose trees are not torn down yet.",
    "requests_waiting": "Requests that wait for the controller.",
    "listeners": "Clients that listen to events.",
    "connections": "Connections that are open.",
}
"""Help of each gauge, by its name without ``olaf_schedule_``."""
EVENTS_HELP = "Events so far; the store keeps the count over restarts."
CLOSED_HELP = "Connections that the service closed, by reason."


def _metrics(cluster: dict[str, Any], feed: Feed, controller: Controller, places: Places) -> str:
    values = {
        "hosts": cluster["hosts"],
        "hosts_free": cluster["free_hosts"],
        "hosts_drained": len(cluster["drained_hosts"]),
        "switches_drained": len(cluster["drained_switches"]),
        "jobs_queued": cluster["queued"],
        "jobs_running": cluster["running"],
        "jobs_with_tree": cluster["with_tree"],
        "jobs_migrating": cluster["migrating"],
        "jobs_fencing": cluster["fencing"],
        "requests_waiting": controller.waiting(),
        "listeners": feed.listeners,
        "connections": len(places),
    }
    closed = {f'{{reason="{reason}"}}': count for reason, count in places.closed.items()}
    told = [(name, "gauge", text, {"": values[name]}) for name, text in GAUGES.items()]
    told.append(("connections_closed_total", "counter", CLOSED_HELP, closed))
    told.append(("events_total", "counter", EVENTS_HELP, {"": feed.last}))
    return "".join(
        f"# HELP olaf_schedule_{name} {text}\n# TYPE olaf_schedule_{name} {kind}\n"
        + "".join(f"olaf_schedule_{name}{labels} {value}\n" for labels, value in series.items())
        for name, kind, text, series in told
    )
