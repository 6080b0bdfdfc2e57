"""Requests and answers over HTTP, typed. FastAPI derives the OpenAPI description from them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST = 2**53
"""Largest whole number that every JSON reader keeps exact."""

JobState = Literal["queued", "running", "stopping", "finished", "failed", "cancelled"]
Text = Annotated[str, Field(min_length=1, max_length=256)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")]


class Request(BaseModel):
    """A request's body. Unknown keys and numbers in quotes are errors."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")


class Submission(Request):
    """A job to run."""

    name: Text = Field(description="For people; need not be unique.", examples=["vgg-nightly"])
    hosts: int = Field(ge=1, le=2**32 - 1, description="Number of hosts.", examples=[16])
    pattern: Name | None = Field(
        None,
        description="Communication pattern that the service knows. It determines the time that a "
        "tree saves. Without a pattern, a policy that weighs gains gives the job no tree at the "
        "cost of others.",
        examples=["opt-125m"],
    )
    units: int = Field(
        1, ge=1, le=2**32 - 1, description="Units that it needs of each switch or port."
    )
    steps: int | None = Field(None, ge=1, le=MOST, description="Number of steps, if known.")


class Failure(Request):
    """A job that is dead."""

    UNKNOWN: ClassVar[str] = "said to have failed"

    reason: Text = Field(UNKNOWN, description="Text for people.")


class Acknowledgement(Request):
    """An answer to an order."""

    generation: int = Field(ge=1, le=MOST, description="The order's generation.")


class Held(Answer):
    """The resources of a job at the switches."""

    generation: int
    root: str
    phase: Literal["acquiring", "held", "releasing", "fencing"] = Field(
        description="acquiring, releasing: it was told to, and has not answered. fencing: it is "
        "dead, and the switches have not confirmed that they refuse it.",
    )


class Job(Answer):
    """A job in a list."""

    job: int
    name: str
    pattern: str | None
    hosts: int
    units: int
    steps: int | None
    gain: int = Field(description="Time that a tree saves, in host-nanoseconds per second.")
    state: JobState
    position: int | None = Field(description="Place in the queue; 1 is the head.")
    submitted_ms: int
    started_ms: int | None
    ended_ms: int | None
    note: str | None = Field(description="Reason of its end.")
    generation: int = Field(description="Number of its newest tree; 0 before the first.")
    root: str | None = Field(description="Root of its assigned tree; null: it has no tree.")
    held: Held | None
    migrations: int = Field(description="Number of trees that it was told to give up.")


class Jobs(Answer):
    """Some jobs, in the order of submission."""

    jobs: list[Job]
    more: bool = Field(description="True if there are later jobs; ask with `after`.")


class Tree(Answer):
    """An aggregation tree."""

    root: str
    switches: list[str]
    links: list[tuple[str, str]] = Field(description="(lower end, upper end) of each link.")


class Wait(Answer):
    """A resource that is still in use."""

    resource: str
    holders: list[int]
    own: bool = Field(description="True if the job's own earlier tree uses it.")


class Blocked(Answer):
    """A tree that the job could have had."""

    root: str
    resource: str
    by: list[int]


class Explanation(Answer):
    """Why a job has its hosts and its tree."""

    job: Job
    waiting: dict[str, Any] | None
    hosts_by_switch: dict[str, list[str]]
    placed: dict[str, Any] | None
    tree: Tree | None
    why_tree: dict[str, Any] | None
    shares_with: list[int]
    waits_for: Wait | None
    blocked: list[Blocked]
    again: Literal["free", "arrival", "never"] | None = Field(
        description="For a job without a tree: when the policy looks again."
    )


class Cluster(Answer):
    """The cluster in a few numbers."""

    hosts: int
    free_hosts: int
    switches: int
    capacity: str
    queued: int
    running: int
    with_tree: int
    migrating: int
    fencing: int
    drained_switches: list[str]
    drained_hosts: list[str]
    placement: dict[str, Any]
    trees: dict[str, Any]
    network: dict[str, int] = Field(description="Network from which gains are computed.")
    patterns: list[str]


class Drained(Answer):
    """A switch or host after a drain or undrain."""

    name: str
    drained: bool
    changed: bool = Field(description="False if it was in this state before.")
    told: list[int] = Field(description="Jobs that were told to release their tree.")


class Events(Answer):
    """The events after `after`."""

    events: list[dict[str, Any]] = Field(description="Each event has a number, `seq`.")
    last: int = Field(description="Value of `after` for the next request.")


class Health(Answer):
    """Whether the service works."""

    status: Literal["ok"]
    events: int
    waiting: int


class Readiness(Answer):
    """Whether the service can take commands, and if not, why."""

    ready: bool
    reasons: list[str]


class Problem(Answer):
    """RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="The error and its place.")
    advice: str | None = Field(None, description="What to do.")
    why: dict[str, Any] | None = Field(None, description="The core's refusal.")
