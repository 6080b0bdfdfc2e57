"""Over HTTP: a queue's model against the service, mistakes, and any nonsense at all."""

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from services import SPEC
from starlette.testclient import TestClient

from olaf.schedule.api import application
from olaf.schedule.controller import MOST_EVENTS, Controller
from olaf.schedule.feed import Feed
from olaf.schedule.guard import MOST_BODY
from olaf.schedule.known import Known
from olaf.schedule.places import Places
from olaf.schedule.reading import BUNDLED
from olaf.schedule.store import Store

HOSTS = 16


class Running:
    """The application and its controller, in this process."""

    def __init__(self, folder: Path, *, token: str | None = None) -> None:
        feed = Feed(MOST_EVENTS, 8)
        self.controller = Controller(Store(folder / "s.db", SPEC), tell=feed.tell)
        app = application(self.controller, feed, Known([BUNDLED]), Places(64), token=token)
        url = "http://127.0.0.1:7070"
        self.client = TestClient(app, raise_server_exceptions=False, base_url=url)
        self.client.__enter__()

    def close(self) -> None:
        self.client.__exit__(None, None, None)
        self.controller.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    service = Running(tmp_path)
    yield service
    service.close()


def submitted(client: TestClient, hosts: int, **more: Any) -> dict[str, Any]:
    answer = client.post("/jobs", json={"name": "j", "hosts": hosts, **more})
    assert answer.status_code == 201
    job: dict[str, Any] = answer.json()
    return job


class Queue(RuleBasedStateMachine):
    """The running and the waiting jobs, counted by hand."""

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory()
        self.service = Running(Path(self.folder.name))
        self.client = self.service.client
        self.sizes: dict[int, int] = {}
        self.waiting: list[int] = []
        self.runs: set[int] = set()
        self.stopping: set[int] = set()
        self.ended: dict[int, str] = {}

    def settle(self) -> None:
        while self.waiting and self.sizes[self.waiting[0]] <= self.free():
            self.runs.add(self.waiting.pop(0))

    def free(self) -> int:
        return HOSTS - sum(self.sizes[job] for job in self.runs | self.stopping)

    @rule(hosts=st.integers(1, HOSTS), pattern=st.sampled_from([None, "mlp", "resnet18"]))
    def submit(self, hosts: int, pattern: str | None) -> None:
        job = submitted(self.client, hosts, pattern=pattern)["job"]
        assert job == len(self.sizes) + 1
        self.sizes[job] = hosts
        self.waiting.append(job)
        self.settle()

    @rule(job=st.integers(1, 12), how=st.sampled_from(["finish", "fail", "cancel"]))
    def end(self, job: int, how: str) -> None:
        status = self.client.post(f"/jobs/{job}/{how}").status_code
        if job not in self.sizes:
            assert status == 404
        elif job in self.ended or (job in self.waiting and how == "finish"):
            assert status == 409
        else:
            assert status == 200
            self._ended(job, how)

    def _ended(self, job: int, how: str) -> None:
        if how == "cancel" and job in self.runs | self.stopping:
            self.runs.discard(job)
            self.stopping.add(job)
            return
        was_told = job in self.stopping
        self.runs.discard(job)
        self.stopping.discard(job)
        self.waiting = [other for other in self.waiting if other != job]
        state = {"finish": "finished", "fail": "failed", "cancel": "cancelled"}[how]
        self.ended[job] = "cancelled" if was_told and how == "finish" else state
        self.settle()

    @precondition(lambda self: self.runs)
    @rule(data=st.data())
    def obey(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.runs)))
        told = self.client.get(f"/jobs/{job}").json()
        if told["held"] is not None and told["held"]["phase"] == "acquiring":
            body = {"generation": told["held"]["generation"]}
            answer = self.client.post(f"/jobs/{job}/acquired", json=body)
            assert answer.json()["held"]["phase"] == "held"

    @invariant()
    def the_service_says_the_same(self) -> None:
        found = self.client.get("/jobs").json()["jobs"]
        assert [job["job"] for job in found] == sorted(self.sizes)
        for job in found:
            number = job["job"]
            if number in self.waiting:
                assert (job["state"], job["position"]) == (
                    "queued",
                    self.waiting.index(number) + 1,
                )
            elif number in self.ended:
                assert job["state"] == self.ended[number]
            else:
                assert job["state"] == ("stopping" if number in self.stopping else "running")
        assert self.client.get("/cluster").json()["free_hosts"] == self.free()

    def teardown(self) -> None:
        self.service.close()
        self.folder.cleanup()


TestQueue = Queue.TestCase
TestQueue.settings = settings(max_examples=6, stateful_step_count=25, deadline=None)


MISTAKES = [
    ("post", "/jobs", {"name": "j", "hosts": 17}, 422, "16"),
    ("post", "/jobs", {"name": "j", "hosts": 0}, 422, "hosts"),
    ("post", "/jobs", {"name": "j", "hosts": -3}, 422, "hosts"),
    ("post", "/jobs", {"name": "j", "hosts": "4"}, 422, "hosts"),
    ("post", "/jobs", {"name": "j", "hosts": 2.5}, 422, "hosts"),
    ("post", "/jobs", {"name": "j"}, 422, "hosts"),
    ("post", "/jobs", {"name": "", "hosts": 1}, 422, "name"),
    ("post", "/jobs", {"name": "a\nb", "hosts": 1}, 422, "name"),
    ("post", "/jobs", {"name": "j", "hosts": 1, "units": 2}, 422, "units"),
    ("post", "/jobs", {"name": "j", "hosts": 1, "steps": 0}, 422, "steps"),
    ("post", "/jobs", {"name": "j", "hosts": 1, "colour": 1}, 422, "colour"),
    ("post", "/jobs", {"name": "j", "hosts": 1, "pattern": "gpt-9"}, 422, "there is cnn"),
    ("post", "/jobs", {"name": "j", "hosts": 1, "pattern": "../secret"}, 422, "pattern"),
    ("get", "/jobs/9", None, 404, "no job 9"),
    ("get", "/jobs/x", None, 422, "job"),
    ("get", "/jobs/99999999999999999999", None, 422, "job"),
    ("get", "/jobs/9/explanation", None, 404, "no job 9"),
    ("post", "/jobs/9/finish", None, 404, "no job 9"),
    ("post", "/jobs/1/acquired", {"generation": 7}, 409, "never given"),
    ("post", "/jobs/1/acquired", {}, 422, "generation"),
    ("post", "/switches/moon/drain", None, 404, "moon"),
    ("post", "/hosts/moon/drain", None, 404, "moon"),
    ("get", "/events?after=999", None, 410, "oldest"),
    ("get", "/events?wait=nan", None, 422, "wait"),
    ("get", "/events?wait=999", None, 422, "wait"),
    ("get", "/jobs?state=lazy", None, 422, "state"),
    ("get", "/nowhere", None, 404, "Not Found"),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake[1]} {mistake[2]}")
def test_a_mistake_is_a_problem_and_disturbs_nothing(
    running: Running, mistake: tuple[str, str, Any, int, str]
) -> None:
    method, path, body, status, says = mistake
    client = running.client
    submitted(client, 4)
    before = client.get("/jobs").text
    answer = client.request(method, path, json=body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["status"] == status
    assert says in problem["detail"]
    assert client.get("/jobs").text == before


def test_numbers_that_json_has_not(running: Running) -> None:
    for value in ("NaN", "Infinity", "1e999", "-0.5"):
        answer = running.client.post("/jobs", content=f'{{"name": "j", "hosts": {value}}}')
        assert answer.status_code == 422


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=6,
)
PATHS = [
    *("/jobs", "/jobs/1", "/jobs/1/finish", "/jobs/1/fail", "/jobs/1/cancel", "/jobs/1/released"),
    *("/jobs/1/acquired", "/switches/agg0.0/drain", "/hosts/h0/lost", "/events", "/cluster"),
]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    method=st.sampled_from(["get", "post", "put", "delete"]),
    path=st.sampled_from(PATHS) | st.text("abc/.%012?=&-", max_size=20).map(lambda t: f"/{t}"),
    body=st.binary(max_size=60)
    | ANYTHING.map(lambda value: repr(value).encode())
    | st.fixed_dictionaries(
        {}, optional={"name": ANYTHING, "hosts": ANYTHING, "generation": ANYTHING}
    ).map(lambda value: str(value).replace("'", '"').encode()),
)
def test_nonsense_is_never_our_fault(running: Running, method: str, path: str, body: bytes) -> None:
    try:
        answer = running.client.request(method, path, content=body)
    except (ValueError, UnicodeError):
        return  # no client can send it
    assert answer.status_code < 500
    if answer.status_code >= 400:
        assert set(answer.json()) == {"type", "title", "status", "detail", "advice", "why"}
    assert running.client.get("/healthz").json()["status"] == "ok"


def test_a_token_is_asked_for(tmp_path: Path) -> None:
    service = Running(tmp_path, token="0123456789abcdef")
    client = service.client
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 200
    assert client.get("/status.json").status_code == 401
    for said in ("", "Bearer ", "Bearer 0123456789abcdeF", "0123456789abcdef", "Bearer \u00fc"):
        answer = client.get("/jobs", headers={"authorization": said.encode()})
        assert answer.status_code == 401
        assert "--token-file" in answer.json()["advice"]
    right = {"authorization": "Bearer 0123456789abcdef"}
    assert client.get("/jobs", headers=right).status_code == 200
    service.close()


def test_it_is_ready_until_its_store_fails(running: Running) -> None:
    answer = running.client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "reasons": []})
    assert running.client.get("/status.json").json()["cluster"]["hosts"] > 0
    running.controller.broken = "the disk is full"
    answer = running.client.get("/readyz")
    assert (answer.status_code, answer.json()["ready"]) == (503, False)


def test_a_web_page_may_not_ask_where_there_is_no_token(running: Running) -> None:
    answer = running.client.post("/jobs/1/cancel", headers={"origin": "http://example.com"})
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:7070", 200),
        ("127.0.0.1", 200),
        ("[::1]:7070", 200),
        ("localhost:7070", 200),
        ("localhost", 200),
        ("evil.example:7070", 403),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:7070", 403),
        ("[::1].evil.example", 403),
        ("[evil.example]", 403),
        ("", 403),
    ],
)
def test_a_page_that_renames_this_machine_reads_nothing(
    running: Running, host: str, status: int
) -> None:
    for path in ("/jobs", "/cluster", "/events", "/healthz"):
        assert running.client.get(path, headers={"host": host}).status_code == status


def test_with_a_token_the_service_may_have_a_name(tmp_path: Path) -> None:
    service = Running(tmp_path, token="0123456789abcdef")
    named = {"host": "scheduler.cluster:7070", "authorization": "Bearer 0123456789abcdef"}
    assert service.client.get("/jobs", headers=named).status_code == 200
    service.close()


def test_a_body_has_an_end(running: Running) -> None:
    large = b"[" + b"1," * MOST_BODY
    assert running.client.post("/jobs", content=large).status_code == 413
    pieces = (b"x" * 1000 for _ in range(1000))
    assert running.client.post("/jobs", content=pieces).status_code == 413


def test_a_key_submits_once(running: Running) -> None:
    key = {"idempotency-key": "nightly-7"}
    body = {"name": "j", "hosts": 4}
    answers = [running.client.post("/jobs", json=body, headers=key) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 200, 200]
    assert {answer.json()["job"] for answer in answers} == {1}
    other = running.client.post("/jobs", json=body | {"hosts": 5}, headers=key)
    assert other.status_code == 409


def test_pages_of_jobs(running: Running) -> None:
    for _ in range(5):
        submitted(running.client, 16)
    first = running.client.get("/jobs", params={"limit": 3}).json()
    assert ([job["job"] for job in first["jobs"]], first["more"]) == ([1, 2, 3], True)
    rest = running.client.get("/jobs", params={"after": 3, "limit": 3}).json()
    assert ([job["job"] for job in rest["jobs"]], rest["more"]) == ([4, 5], False)
    waiting = running.client.get("/jobs", params={"state": "queued"}).json()["jobs"]
    assert [job["position"] for job in waiting] == [1, 2, 3, 4]


def test_what_a_tree_wins_follows_from_the_pattern(running: Running, tmp_path: Path) -> None:
    # A step of 1 s and 12.5e9 bytes: at 12.5e9 bytes a second 1 s without, 0.5 s with.
    pattern = '{"duration": 0.5, "allreduces": [{"start": 0.5, "size": 12500000000}]}'
    (tmp_path / "large.json").write_text(pattern)
    known = Known([tmp_path, BUNDLED])
    assert known.gain("large", 4) == pytest.approx(4e9 * 0.5 / 1.5, rel=1e-3)
    assert submitted(running.client, 4, pattern="mlp")["gain"] == known.gain("mlp", 4)
    assert submitted(running.client, 4)["gain"] == 0


def test_it_describes_itself(running: Running) -> None:
    description = running.client.get("/openapi.json").json()
    assert "/jobs/{job}/explanation" in description["paths"]
    assert "olaf_schedule_hosts_free 16" in running.client.get("/metrics").text


def test_each_metric_has_its_help_and_its_line_in_the_page(running: Running) -> None:
    text = running.client.get("/metrics").text
    page = (Path(__file__).parents[2] / "docs/schedule.md").read_text(encoding="utf-8")
    series = r"(?:\1(?:\{reason=\"\w+\"\})? \d+\n)+"
    told = re.findall(rf"^# HELP (\w+) (.*)\n# TYPE \1 (\w+)\n{series}", text, re.MULTILINE)
    whole = rf"(?:# HELP (\w+) .*\n# TYPE \1 \w+\n{series})+"
    assert re.fullmatch(whole, text)
    listed = re.findall(r"^\| `(olaf_schedule_\w+)` \| (\w+) \| (.*) \|$", page, re.MULTILINE)
    assert [(name, kind, meaning) for name, meaning, kind in told] == listed
    for name, _, kind in told:
        assert name.endswith("_total") == (kind == "counter"), name
