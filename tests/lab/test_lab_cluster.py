"""The page of a live cluster in a real Chromium: real servers, killed and cut off by clicks."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from selenium.webdriver.common.by import By

from flexgroup.cli.main import main
from flexgroup.lab.app import Lab
from flexgroup.lab.cluster import MOST_A_SECOND, LiveCluster
from flexgroup.lab.rates import Series, nice_bound, rates
from flexgroup.load.local_cluster import LocalCluster

from ..report.browser import Browser
from .conftest import Visited, listening
from .test_lab_browser import SCREENS, click, is_another_page, said, wait_for

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]

NAMES = ["server-0", "server-1", "server-2"]
STACK = "RELIABLE ATOMIC"


@dataclass
class Running:
    """Three servers that a lab has started, and its page."""

    own: LocalCluster
    live: LiveCluster
    visited: Visited

    @property
    def page(self) -> str:
        return f"{self.visited.base}/cluster"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("servers")
    options = ["--patience", "1", "--cut-by-input"]
    with LocalCluster(3, folder, options) as own:
        live = LiveCluster(own.addresses, own=own, stack=STACK)
        with listening(Lab(live=live)) as visited:
            yield Running(own, live, visited)


@pytest.fixture
def whole(running: Running, browser: Browser) -> Iterator[Running]:
    """All three servers run and know each other, and each has its member; and so it is again
    afterwards."""
    yield running
    browser.visit(running.page)
    for name in NAMES:
        act(browser, name, "Start again", "Mend")
    wait_for(lambda: all(f" of {', '.join(NAMES)}" in each for each in cards(browser)[:3]))
    for name in ("lab-1", "lab-2", "lab-3"):
        act(browser, name, "Join again")
    wait_for(lambda: "Join again" not in " ".join(cards(browser)))


def cards(browser: Browser) -> list[str]:
    """What is said of each server, and then of each member."""
    return said(browser, ".card")


def act(browser: Browser, name: str, *words: str, leaves: bool = False) -> bool:
    """Click the button on the card of this name that says one of these, if there is one; it may
    lead to another page."""
    browser.run("document.documentElement.dataset.left = 'yes'")
    found = browser.run(
        """
        const [name, words] = arguments;
        const cards = [...document.querySelectorAll(".card")];
        const card = cards.find((each) => each.querySelector("h3").textContent.startsWith(name));
        const says = (button) => words.some((word) => button.textContent.startsWith(word));
        const button = [...card.querySelectorAll("button")].find(says);
        if (button) button.click();
        return Boolean(button);
        """,
        name,
        words,
    )
    if leaves:
        wait_for(lambda: is_another_page(browser))
    return bool(found)


def happened(browser: Browser, words: str) -> bool:
    return any(words in line for line in said(browser, "ul.happenings li"))


def test_a_server_is_killed_on_the_page_and_the_view_changes(
    browser: Browser, whole: Running
) -> None:
    browser.visit(whole.page)
    wait_for(lambda: happened(browser, "lab-1, lab-2, lab-3"))
    assert act(browser, "server-2", "Kill")
    wait_for(lambda: happened(browser, "you killed server-2"))
    wait_for(lambda: happened(browser, "of lab-1, lab-2, without lab-3"))
    wait_for(lambda: "lab-3 at" not in " ".join(said(browser, "#groups + div td, td")))
    assert "has ended" in cards(browser)[2]
    assert not whole.own.servers[2].is_running
    assert act(browser, "server-2", "Start again")
    wait_for(lambda: happened(browser, "server-2 joined"))
    wait_for(lambda: "running" in cards(browser)[2])
    assert browser.complaints() == []


def test_a_message_is_sent_by_hand_and_arrives_everywhere(browser: Browser, whole: Running) -> None:
    browser.visit(whole.page)
    (text, *_) = browser.driver.find_elements(By.NAME, "text")
    text.send_keys("is <b>anybody</b> there?")
    (send, *_) = browser.driver.find_elements(By.XPATH, "//button[starts-with(., 'Send')]")
    send.click()
    expected = "lab-1: is <b>anybody</b> there?"
    wait_for(lambda: sum(line == expected for line in said(browser, "ol.heard li")) == 3)
    wait_for(lambda: "came back to their sender within" in said(browser, "#rates")[-1])
    assert text.get_attribute("value") == ""  # and the page was not left
    assert browser.complaints() == []


def test_a_server_is_cut_off_stands_still_and_comes_back(browser: Browser, whole: Running) -> None:
    browser.visit(whole.page)
    assert act(browser, "server-1", "Cut off")
    wait_for(lambda: happened(browser, "server-1 left"))
    wait_for(lambda: "cut off, stands still" in cards(browser)[1])
    assert "does not know" in cards(browser)[1]
    assert act(browser, "server-1", "Mend")
    wait_for(lambda: happened(browser, "server-1 joined"))
    wait_for(lambda: "cut off" not in cards(browser)[1])


def test_with_scripts_off_all_but_what_moves_works(browser: Browser, whole: Running) -> None:
    browser.visit(whole.page, scripts=False)
    assert [card.split()[0] for card in cards(browser)[:3]] == NAMES
    (text, *_) = browser.driver.find_elements(By.NAME, "text")
    text.send_keys("without a script")
    click(browser, "Send")
    wait_for(lambda: seen_again(browser, "lab-1: without a script"))
    assert act(browser, "server-2", "Kill", leaves=True)
    wait_for(lambda: seen_again(browser, "without lab-3"))
    assert act(browser, "server-2", "Start again", leaves=True)
    wait_for(lambda: seen_again(browser, "server-2 joined"))


def seen_again(browser: Browser, words: str) -> bool:
    click(browser, "Look again")
    return words in said(browser, "main")[0]


def test_a_member_joins_another_group_and_leaves(browser: Browser, whole: Running) -> None:
    browser.visit(whole.page)
    group = browser.driver.find_element(By.NAME, "group")
    group.clear()
    group.send_keys("letters")
    before = len(cards(browser))
    browser.driver.find_element(By.XPATH, "//button[.='Join']").click()
    wait_for(lambda: len(cards(browser)) == before + 1)  # the page was loaded anew
    wait_for(lambda: "in letters" in cards(browser)[-1])
    wait_for(lambda: happened(browser, "letters: view 1 of lab-"))
    buttons = browser.driver.find_elements(By.XPATH, "//button[starts-with(., 'Leave')]")
    buttons[-1].click()
    wait_for(lambda: len(cards(browser)) == before)


def test_what_cannot_be_done_is_told_on_the_page(browser: Browser, whole: Running) -> None:
    browser.visit(whole.page)
    stack = browser.driver.find_element(By.NAME, "stack")
    group = browser.driver.find_element(By.NAME, "group")
    for field, words in ((group, "parcels"), (stack, "nonsense")):
        field.clear()
        field.send_keys(words)
    browser.driver.find_element(By.XPATH, "//button[.='Join']").click()
    wait_for(lambda: "nonsense" in said(browser, "[role=alert]")[0])


def test_the_steady_load_shows_rates(browser: Browser, whole: Running) -> None:
    browser.visit(whole.page)
    number = browser.driver.find_element(By.NAME, "messages")
    number.clear()
    number.send_keys("50")
    browser.driver.find_element(By.XPATH, "//button[.='Set']").click()
    try:
        wait_for(lambda: max(map(rate, said(browser, "#rates figure:first-of-type li"))) > 60)
        assert not any("steady" in line for line in said(browser, "ol.heard li"))
    finally:
        whole.live.send_steadily(0)


def rate(line: str) -> float:
    return float(line.split()[-1].replace(",", ""))


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_the_page_fits_the_screen(
    browser: Browser, whole: Running, width: int, scheme: str
) -> None:
    browser.visit(whole.page, width, scheme)
    assert browser.run("return document.documentElement.scrollWidth") <= width
    nameless = browser.run(
        "return [...document.querySelectorAll('input:not([type=hidden]), select')]"
        ".filter(each => !each.labels.length).map(each => each.outerHTML)"
    )
    assert nameless == []
    names = browser.run(
        "return [...document.querySelectorAll('.card button')].map(each => each.textContent)"
    )
    assert len(names) == len(set(names)) >= 12
    assert browser.complaints() == []


# Over plain HTTP.

ACTS = {
    "server": {"server": "server-0", "act": "kill"},
    "join": {"group": "g", "stack": STACK, "server": "127.0.0.1:1"},
    "again": {"member": "1"},
    "leave": {"member": "1"},
    "send": {"member": "1", "text": "x"},
    "steady": {"messages": "1"},
}


@pytest.mark.parametrize("path", ACTS)
def test_another_sites_page_can_do_nothing(running: Running, path: str) -> None:
    visited, fields = running.visited, ACTS[path]
    signed = urlencode({"token": visited.lab.token, **fields})
    assert visited.ask(f"/cluster/{path}", "POST", signed).status == 403
    for body, origin in (
        (signed, "http://evil.example"),
        (signed, "null"),
        (urlencode({"token": "x", **fields}), visited.base),
    ):
        assert visited.ask(f"/cluster/{path}", "POST", body, Origin=origin).status == 403
    assert visited.ask(f"/cluster/{path}").status == 405
    assert all(server.is_running for server in running.own.servers)
    other = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"}
    assert visited.ask("/cluster/events", **other).status == 403


BAD = [
    ("server", {"server": "server-7", "act": "kill"}, "has started no server"),
    ("server", {"server": "server-0", "act": "start"}, "server-0 is running"),
    ("server", {"server": "server-0", "act": "eat"}, "can be killed, started, cut off and mended"),
    ("join", {"group": "g", "server": "127.0.0.1:1"}, "no server of this cluster is known"),
    ("send", {"member": "99", "text": "x"}, "no such member any more"),
    ("send", {"member": "1"}, "write a message first"),
    ("send", {"member": "one", "text": "x"}, "has to be a whole number"),
    ("steady", {"messages": str(MOST_A_SECOND + 1)}, "messages a second here"),
]


@pytest.mark.parametrize(("path", "fields", "told"), BAD, ids=[told for _, _, told in BAD])
def test_what_cannot_be_done_is_explained(
    running: Running, path: str, fields: dict[str, str], told: str
) -> None:
    answer = running.visited.post(f"/cluster/{path}", **fields)
    assert answer.status == 400
    assert told in answer.text


def test_servers_of_others_are_seen_and_not_stopped(running: Running) -> None:
    """One address is enough: the server there knows the others."""
    with listening(Lab(live=LiveCluster(running.own.addresses[1:2]))) as visited:
        wait_for(lambda: all(name in visited.ask("/cluster").text for name in NAMES))
        page = visited.ask("/cluster").text
        assert "Kill" not in page
        answer = visited.post("/cluster/server", server="server-0", act="kill")
        assert answer.status == 400
        assert "only servers that this lab has started" in answer.text


def test_a_cluster_with_certificates_is_seen_and_joined(tmp_path: Path) -> None:
    tls = tmp_path / "certificates"
    assert main(["certificates", str(tls), "--client", "lab"]) == 0
    with LocalCluster(1, tmp_path / "servers", ["--tls", str(tls)]) as own:
        live = LiveCluster(own.addresses, tls, name="lab")
        with listening(Lab(live=live)) as visited:
            wait_for(lambda: "server-0" in visited.ask("/cluster").text)
            fields = {"group": "g", "stack": STACK, "server": own.addresses[0]}
            assert visited.post("/cluster/join", **fields).status == 303
            assert visited.post("/cluster/send", member="1", text="sealed").status == 303
            wait_for(lambda: "</span>sealed</li>" in visited.ask("/cluster").text)


def test_a_group_of_replicas_has_one_at_each_server(tmp_path: Path) -> None:
    with LocalCluster(3, tmp_path) as own, listening(Lab(live=of_replicas(own))) as visited:
        wait_for(lambda: "lab-3 at server-2" in visited.ask("/cluster").text)
        assert "replicas at server-0, server-1, server-2" in visited.ask("/cluster").text


def of_replicas(own: LocalCluster) -> LiveCluster:
    return LiveCluster(own.addresses, own=own, stack="LEADER PAXOS")


def test_looking_costs_one_inspection_a_second(running: Running) -> None:
    """However many pages look: a look is shared by all."""
    looks = running.live.servers[running.own.addresses[0]].deliveries
    before = len(looks)
    for _ in range(20):
        running.visited.ask("/cluster")
    assert len(looks) - before <= 3


def test_without_a_cluster_the_page_says_how_to_have_one(visited: Visited) -> None:
    answer = visited.ask("/cluster")
    assert answer.status == 404
    assert "flexgroup lab --servers 3" in answer.text
    assert visited.ask("/cluster/events").status == 400
    assert visited.post("/cluster/send", member="1", text="x").status == 400


def test_violations_appear_as_they_happen(tmp_path: Path, browser: Browser) -> None:
    """What some servers record, here a simulation of channels that order nothing, is watched."""
    recorded, growing = tmp_path / "recorded", tmp_path / "growing"
    arguments = ["--protocol", "fifo", "--processes", "5", "--clients", "4", "--duration", "0.02"]
    assert main(["simulate", *arguments, "--part-rows", "50", "--out", str(recorded)]) == 0
    promise_more(recorded)
    growing.mkdir()
    with listening(Lab(live=LiveCluster([], traces=growing))) as visited:
        browser.visit(f"{visited.base}/cluster")
        assert "None was found so far." in said(browser, "#found")[0]
        shutil.copytree(recorded, growing, dirs_exist_ok=True)
        wait_for(lambda: "acyclic order: violated" in said(browser, "#found")[0])
        assert "because process" in said(browser, "#found pre.explanation")[0]
        wait_for(lambda: "1 run came to an end" in said(browser, "#found")[0])


def promise_more(traces: Path) -> None:
    """Have the run's row say that its stack promised acyclic order."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in traces.glob("*/*.parquet"):
        table = pq.read_table(path)
        place = table.column_names.index("promises")
        promises = pa.array([["integrity", "acyclic order"]], table.schema.field(place).type)
        pq.write_table(table.set_column(place, table.schema.field(place), promises), path)


def test_members_are_few(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexgroup.lab.cluster.MOST_MEMBERS", 3)
    address = running.own.addresses[0]
    answer = running.visited.post("/cluster/join", group="g", stack=STACK, server=address)
    assert answer.status == 400
    assert "have one leave first" in answer.text


def test_a_picture_of_rates_says_the_same_in_words() -> None:
    found = rates("Deliveries", [Series("<a>", [0, 5, 1234.4])], 120, "a second")
    assert "&lt;a&gt; <strong>1,234</strong>" in found
    assert "2,000 a second" in found
    assert "118,100.0 119,99.8 120,38.3" in found
    for highest in (0.0, 0.4, 3, 19, 21, 1999, 123456):
        assert nice_bound(highest) >= max(highest, 1)
        assert str(nice_bound(highest)).strip("0.") in ("1", "2", "5")


def test_the_command_starts_servers_which_end_with_it(tmp_path: Path) -> None:
    """It watches what they record, in a folder that is gone afterwards."""
    command = [sys.executable, "-m", "flexgroup.cli.main", "lab", "--servers", "1", "--json"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as lab:
        try:
            assert lab.stdout is not None
            page = json.loads(lab.stdout.readline())["address"]
            assert page.endswith("/cluster")
            wait_for(lambda: "lab-1 at server-0" in urlopen(page).read().decode())
            shown = urlopen(page).read().decode()
            assert "None was found so far." in shown
            host, port = re.findall(r"127\.0\.0\.1:\d+", shown)[0].split(":")
            socket.create_connection((host, int(port)), timeout=60).close()
        finally:
            lab.send_signal(signal.SIGINT)
    assert lab.returncode == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, told in (
        (["--cluster", "x:1", "--servers", "2"], "leave out --servers and --stack"),
        (["--cluster", "x:1,y:port"], "y:port"),
        (["--cluster", "x:1", "--trace", str(tmp_path / "nowhere")], "is not a directory"),
        (["--servers", "0"], "0 servers cannot be started here"),
        (["--servers", "2", "--stack", "nonsense"], "nonsense"),
        (["--servers", "2", "--tls", str(tmp_path)], "leave out --tls"),
        (["--trace", str(tmp_path)], "--trace is about a cluster"),
    ):
        assert main(["lab", *arguments]) == 2
        assert told in capsys.readouterr().err
