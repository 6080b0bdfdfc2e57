"""The status page in a real browser: it draws what a real role does, and loads nothing else."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest

from browser import Browser
from olaf import _olaf

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

PLOTTED = "document.querySelectorAll('svg path[d*=L]').length"
"""Lines with at least two points."""


class Job:
    """A server, a switch with two engines, and a worker, all with pages."""

    def __init__(self, **more: str) -> None:
        own = {"listen": "127.0.0.1:0", "metrics": "127.0.0.1:0", **more}
        self.server = _olaf.Server(json.dumps(own))
        self.server.start()
        told = {**own, "upstream": self.server.address, "engines": ["queue", "reduce"]}
        self.switch = _olaf.Switch(json.dumps(told))
        self.switch.start()
        self.worker = _olaf.Client(
            self.switch.address, job=1, cluster=7, config=json.dumps({"metrics": "127.0.0.1:0"})
        )
        self.worker.join([np.zeros(10, np.float32)], 10.0)

    def works(self) -> None:
        """One update, and a datagram of a stranger."""
        self.worker.push([np.ones(10, np.float32)], reward=1.0)
        host, port = self.switch.address.rsplit(":", 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"<img src=x onerror=throw>" * 4, (host, int(port)))

    def stop(self) -> None:
        self.worker.leave()
        self.switch.stop()
        self.server.stop()


@pytest.fixture
def job() -> Iterator[Job]:
    job = Job()
    yield job
    job.stop()


def shown(browser: Browser, job: Job, address: str | None, plots: int) -> str:
    """The text of the page once it has drawn that number of lines."""
    browser.open(f"http://{address}/")
    deadline = time.monotonic() + 30
    while browser.value(PLOTTED) < plots:
        job.works()
        assert time.monotonic() < deadline, browser.value("document.body.innerText")
        browser.wait("true")
    text: str = browser.value("document.body.innerText")
    return text


def test_a_switch_shows_its_queue_its_clusters_and_whom_it_refused(
    browser: Browser, job: Job
) -> None:
    text = shown(browser, job, job.switch.metrics_address, 4)
    for part in ("Olaf switch", "ready", "Slots of the queue in use", "Updates by fate"):
        assert part in text
    for part in ("Traffic in bit/s", "Clusters", "Refused, and why", "foreign", "worker joined"):
        assert part in text
    assert browser.thrown == []


def test_a_server_shows_ages(browser: Browser, job: Job) -> None:
    text = shown(browser, job, job.server.metrics_address, 3)
    assert "Age-of-Model in seconds" in text
    assert "job 1, cluster 7" in text
    assert browser.thrown == []


def test_a_worker_shows_its_updates(browser: Browser, job: Job) -> None:
    text = shown(browser, job, job.worker.metrics_address, 3)
    assert "Olaf worker" in text
    assert "acknowledged" in text
    assert browser.thrown == []


def test_the_page_asks_nobody_but_its_role(browser: Browser, job: Job) -> None:
    shown(browser, job, job.switch.metrics_address, 1)
    asked = {urlsplit(url).netloc for url in browser.requested if not url.startswith("data:")}
    assert asked == {job.switch.metrics_address}


def test_it_is_light_and_dark_and_fits_a_phone(browser: Browser, job: Job, tmp_path: Path) -> None:
    pictures = []
    for dark in (False, True):
        browser.open(f"http://{job.switch.metrics_address}/", dark=dark)
        browser.wait("document.querySelectorAll('.tile').length > 0")
        pictures.append(browser.value("getComputedStyle(document.body).backgroundColor"))
        assert browser.picture(tmp_path / "page.png").startswith(b"\x89PNG")
    assert pictures[0] != pictures[1]
    browser.open(f"http://{job.switch.metrics_address}/", width=380)
    browser.wait("document.querySelectorAll('.tile').length > 0")
    assert browser.value("document.documentElement.scrollWidth") <= 380


def test_it_says_that_the_role_is_gone(browser: Browser, job: Job) -> None:
    browser.open(f"http://{job.server.metrics_address}/")
    browser.wait("document.getElementById('state').textContent === 'ready'")
    job.server.stop()
    browser.wait("document.getElementById('state').textContent === 'no answer'")
    assert "the figures below are old" in browser.value("document.body.innerText")


def test_it_shows_what_keys_kept_out(browser: Browser, tmp_path: Path) -> None:
    key = tmp_path / "job.key"
    _olaf.new_key(key)
    own = {"listen": "127.0.0.1:0", "metrics": "127.0.0.1:0", "key_files": [str(key)]}
    server = _olaf.Server(json.dumps(own))
    server.start()
    try:
        host, port = server.address.rsplit(":", 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.sendto(b"OLAF" + bytes(60), (host, int(port)))
        browser.open(f"http://{server.metrics_address}/")
        browser.wait("document.body.innerText.includes('datagrams, kept out by keys')")
        assert "key refused" in browser.value("document.body.innerText"), "the newest events"
    finally:
        server.stop()


def test_it_asks_for_the_token(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text("0123456789abcdef0123456789abcdef")
    job = Job(metrics_token_file=str(file))
    try:
        browser.open(f"http://{job.switch.metrics_address}/")
        browser.wait("document.getElementById('state').textContent === 'token needed'")
        browser.value(f"document.getElementById('token').value = {json.dumps(file.read_text())}")
        browser.value("document.querySelector('form button').click()")
        browser.wait("document.getElementById('state').textContent === 'ready'")
    finally:
        job.stop()
