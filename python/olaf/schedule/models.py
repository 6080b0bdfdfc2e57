"""What goes over HTTP: requests and answers, typed. FastAPI makes the OpenAPI description of it."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

MOST = 2**53
"""Whole numbers that every reader of JSON has exactly."""

JobState = Literal["queued", "running", "stopping", "finished", "failed", "cancelled"]
Text = Annotated[str, Field(min_length=1, max_length=256)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$")]


class Request(BaseModel):
    """A body. Unknown keys and numbers in quotes are mistakes."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Answer(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="forbid")


class Submission(Request):
    """A job that wants to run."""

    name: Text = Field(description="For people; need not be unique.", examples=["vgg-nightly"])
    hosts: int = Field(ge=1, le=2**32 - 1, description="How many hosts.", examples=[16])
    pattern: Name | None = Field(
        None,
        description="What it communicates: a pattern that the service knows. What a tree wins it "
        "follows from that; without, a policy that weighs gains gives it none at others' cost.",
        examples=["opt-125m"],
    )
    units: int = Field(
        1, ge=1, le=2**32 - 1, description="Units that it asks of each switch or port."
    )
    steps: int | None = Field(None, ge=1, le=MOST, description="How many steps, if known.")


class Failure(Request):
    """A job that is dead."""

    UNKNOWN: ClassVar[str] = "said to have failed"

    reason: Text = Field(UNKNOWN, description="For people.")


class Acknowledgement(Request):
    """An answer to an order."""

    generation: int = Field(ge=1, le=MOST, description="As in the order.")


class Held(Answer):
    """What a job holds at the switches."""

    generation: int
    root: str
    phase: Literal["acquiring", "held", "releasing", "fencing"] = Field(
        description="acquiring, releasing: told to, and has not answered. fencing: it is dead, and "
        "the switches have not been heard of."
    )


class Job(Answer):
    """A job in a line."""

    job: int
    name: str
    pattern: str | None
    hosts: int
    units: int
    steps: int | None
    gain: int = Field(description="What it wins by a tree, in host-nanoseconds a second.")
    state: JobState
    position: int | None = Field(description="In the queue; 1 is the head.")
    submitted_ms: int
    started_ms: int | None
    ended_ms: int | None
    note: str | None = Field(description="What was said of its end.")
    generation: int = Field(description="Of its newest tree; 0 before the first.")
    root: str | None = Field(description="Of the tree that it shall have; none: it does without.")
    held: Held | None
    migrations: int = Field(description="How often it was told to give up a tree.")


class Jobs(Answer):
    """Some jobs, in the order of submission."""

    jobs: list[Job]
    more: bool = Field(description="There are others behind the last; ask with `after`.")


class Tree(Answer):
    """An aggregation tree."""

    root: str
    switches: list[str]
    links: list[tuple[str, str]] = Field(description="Lower end, upper end.")


class Wait(Answer):
    """A resource that is not free yet."""

    resource: str
    holders: list[int]
    own: bool = Field(description="It is the job's own earlier tree.")


class Blocked(Answer):
    """A tree that the job could have had."""

    root: str
    resource: str
    by: list[int]


class Explanation(Answer):
    """Why a job sits where it sits."""

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
        description="Without a tree: when the policy looks again."
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
    network: dict[str, int] = Field(description="What a tree wins is computed on this network.")
    patterns: list[str]


class Drained(Answer):
    """A switch or host after a drain, or its end."""

    name: str
    drained: bool
    changed: bool = Field(description="It was not so before.")
    told: list[int] = Field(description="Jobs that were told to give up their tree.")


class Events(Answer):
    """What happened behind `after`."""

    events: list[dict[str, Any]] = Field(description="Each with its number, `seq`.")
    last: int = Field(description="Ask for what is behind this next.")


class Health(Answer):
    """Whether the service can do its work."""

    status: Literal["ok"]
    events: int
    waiting: int


class Problem(Answer):
    """RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="What, and where.")
    advice: str | None = Field(None, description="What to do.")
    why: dict[str, Any] | None = Field(None, description="The core's refusal.")
