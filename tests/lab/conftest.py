"""A lab that listens, and browsers to look at it."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode

import pytest
import uvicorn

from flexgroup.lab.app import HOST, Lab
from flexgroup.trace.reader import read_run
from flexgroup.trace.writer import write_run
from flexgroup.worlds.simulator.fault_plans import Faults
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

from ..report.browser import Browser, started, why_not


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Visited:
    """A lab at a port of this machine, and plain requests to it."""

    lab: Lab
    port: int

    @property
    def base(self) -> str:
        return f"http://{HOST}:{self.port}"

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> Answer:
        """Send one request; a header that is given as an empty text is left out."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        given = {"Host": f"{HOST}:{self.port}", **headers}
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value:
                connection.putheader(name, value)
        data = None if body is None else body.encode()
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        found = {name.lower(): value for name, value in answer.getheaders()}
        content = answer.read()
        connection.close()
        return Answer(answer.status, found, content)

    def post(self, path: str, **fields: str) -> Answer:
        """Send a form as a page of this lab does."""
        body = urlencode({"token": self.lab.token, **fields})
        return self.ask(path, "POST", body, Origin=self.base)


@contextmanager
def listening(lab: Lab) -> Iterator[Visited]:
    """A lab that serves as long as this is entered."""
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        hosts = frozenset({f"{HOST}:{port}", f"localhost:{port}"})
        config = uvicorn.Config(lab.application(lambda: hosts), log_level="error")
        server = uvicorn.Server(config)
        lab.cluster.is_stopping = lambda: server.should_exit
        thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
        thread.start()
        try:
            yield Visited(lab, port)
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="session")
def visited() -> Iterator[Visited]:
    with listening(Lab()) as ready:
        yield ready


@dataclass(frozen=True)
class RecordedRuns:
    """A trace set, and the names of runs in it."""

    directory: Path
    long: str
    calm: str
    crashed: str
    """As `calm`, until process 2 crashes."""
    broken: str
    """A run that breaks an order which it claims to keep."""

    @property
    def traces(self) -> str:
        return self.directory.name

    def window(self, run: str, **more: str) -> str:
        """Return the address of a window on one of the runs, without the lab's own."""
        return f"/window?{urlencode({'traces': self.traces, 'run': run, **more})}"


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> RecordedRuns:
    directory = tmp_path_factory.mktemp("recorded") / "runs"
    calm = Scenario("vcube-atomic", 6, 4, duration=0.02)
    crashed = replace(calm, faults=Faults(crashes=("2@8ms",), detection="2ms"))
    reliable = Scenario("reliable", 6, 4, network="lan:fifo=no", duration=0.005)
    names = [
        record_scenario(scenario, directory).run
        for scenario in (Scenario("skeen", 16, 32, duration=0.1), calm, crashed, reliable)
    ]
    claimed = replace(read_run(directory, names[-1]), promises=("acyclic order", "integrity"))
    write_run(directory, claimed)
    return RecordedRuns(directory, *names)


@pytest.fixture(scope="session")
def recorded(runs: RecordedRuns) -> Iterator[Visited]:
    """A lab that was given these runs."""
    with listening(Lab((), [runs.directory])) as ready:
        yield ready


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with started(tmp_path_factory.mktemp("profile")) as ready:
        yield ready


@pytest.fixture
def second_browser(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started(tmp_path_factory.mktemp("profile")) as ready:
        yield ready
