"""The lab over plain HTTP: who may ask for what, limits, and bad addresses."""

from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest

from .conftest import Visited

RUN = "/run?stack=dcc-published&processes=4&message=0,2+0,2+0,3+2,3"
SCRIPT = "stack skeen over fifo channels, processes 2\ncast 2 a to=0,1\ndeliver 2->0\n"


def test_pages_may_load_only_what_is_theirs_and_nobody_may_frame_them(visited: Visited) -> None:
    for path in ("/", RUN, "/nowhere", "/run?stack=nonsense"):
        headers = visited.ask(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "[::1]", ""])
def test_another_host_is_refused(visited: Visited, host: str) -> None:
    """A name that somebody else's DNS lets stand for this machine is another host."""
    answer = visited.ask(RUN, Host=host)
    assert answer.status in (400, 403)
    assert b"dcc-published" not in answer.body


def test_the_other_name_of_this_machine_is_fine(visited: Visited) -> None:
    assert visited.ask(RUN, Host=f"localhost:{visited.port}").status == 200


def elsewhere(**headers: str) -> dict[str, str]:
    return headers


@pytest.mark.parametrize(
    "headers",
    [
        elsewhere(Origin="http://evil.example"),
        elsewhere(Origin="null"),
        elsewhere(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors", Sec_Fetch_Dest="image"),
        elsewhere(Sec_Fetch_Site="same-site", Sec_Fetch_Mode="cors", Sec_Fetch_Dest="empty"),
        elsewhere(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="iframe"),
    ],
)
def test_a_page_of_another_site_gets_nothing(visited: Visited, headers: dict[str, str]) -> None:
    assert visited.ask(RUN, **headers).status == 403


def test_a_link_on_another_site_is_followed(visited: Visited) -> None:
    """A copied link is a report, wherever it stands."""
    site = elsewhere(Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")
    assert visited.ask(RUN, **site, Sec_Fetch_Dest="document").status == 200


@pytest.mark.parametrize("path", ["/open", "/search", "/search/1/stop"])
def test_what_acts_wants_the_origin_and_the_token(visited: Visited, path: str) -> None:
    fields = {"script": SCRIPT, "address": RUN.partition("?")[2], "seconds": "1"}
    with_token = urlencode({"token": visited.lab.token, **fields})
    assert visited.ask(path, "POST", with_token).status == 403
    assert visited.ask(path, "POST", with_token, Origin="http://evil.example").status == 403
    without = urlencode({"token": "x", **fields})
    assert visited.ask(path, "POST", without, Origin=visited.base).status == 403
    assert visited.ask(path, "POST", "{}", Origin=visited.base).status == 403
    assert visited.ask(path).status in (404, 405)


def test_a_script_is_opened(visited: Visited) -> None:
    answer = visited.post("/open", script=SCRIPT)
    assert answer.status == 303
    assert answer.headers["location"] == (
        "/run?stack=skeen&processes=2&message=0,1&ahead=m2.a,d2.0"
    )


BAD = [
    ("", "which protocol?"),
    ("stack=nonsense&processes=2&message=0,1", "nonsense"),
    ("stack=skeen&processes=2&message=0,9", "destination 9 does not exist"),
    ("stack=skeen&processes=99&message=0,1", "99 processes cannot be explored"),
    ("stack=skeen&processes=60&message=0,1", "the lab shows up to 16 processes"),
    ("stack=skeen&processes=2&message=" + "0,1+" * 17, "up to 16 processes and 16 messages"),
    ("stack=skeen&processes=2&message=0,1&crashes=-1", "cannot be negative"),
    ("stack=skeen&processes=2&message=0,1&crashes=many", "write a whole number"),
    ("stack=skeen&processes=2&message=0,1&channels=slow", "write fifo or reordering"),
    ("stack=skeen&processes=2&message=0,1&moves=q1", "&#x27;q1&#x27; is no move"),
    ("stack=skeen&processes=2&message=0,1&moves=m2.z", "multicasts a message that is not planned"),
    ("stack=skeen&processes=2&message=0,1&moves=v0.1", "tells of a view that is not planned"),
    ("stack=skeen&processes=2&message=0,1&moves=m2.a,d0.1", "step 2, &#x27;deliver 0-&gt;1&#x27;"),
    ("stack=skeen&processes=2&message=0,1&moves=x7", "step 1, &#x27;crash 7&#x27;, cannot happen"),
    ("stack=skeen&processes=2&message=0,1&moves=" + ",".join(["m2.a"] * 501), "at most 500 moves"),
    ("stack=skeen&processes=2&message=0,1&moves=" + "," * 17_000, "at most 16,384 characters"),
    ("stack=leader+paxos&processes=2&message=0,1", "replicas"),
    ("stack=skeen&processes=2&message=0,1&color=red", "an address has no &#x27;color&#x27;"),
    ("stack=%ff&processes=2", "not an address of the lab"),
    ("&".join(f"x{n}=1" for n in range(60)), "not an address of the lab"),
]


@pytest.mark.parametrize(("query", "told"), BAD, ids=[told for _, told in BAD])
def test_a_bad_address_is_explained(visited: Visited, query: str, told: str) -> None:
    answer = visited.ask(f"/run?{query}")
    assert answer.status == 400
    assert told in answer.text
    assert "Traceback" not in answer.text


def test_what_an_address_says_is_never_markup(visited: Visited) -> None:
    answer = visited.ask(f"/run?stack={quote('<script>alert(1)</script>')}&processes=2&message=0,1")
    assert "<script>alert" not in answer.text
    assert "&lt;script&gt;" in answer.text


def test_other_methods_and_paths_are_told_of(visited: Visited) -> None:
    assert visited.ask("/nowhere").status == 404
    assert visited.ask("/search/4711").status == 400
    assert visited.ask("/", "DELETE", Origin=visited.base).status == 405


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "line 1 of the script: unknown command"),
        ("cast 2 a to=0,1", "must begin with a stack"),
        ("# nothing", "there is no script"),
        (f"{SCRIPT}deliver 0-&gt;1 7", "is not a channel"),
        (f"{SCRIPT}{SCRIPT}", "a second one"),
    ],
)
def test_a_bad_script_is_explained(visited: Visited, text: str, told: str) -> None:
    answer = visited.post("/open", script=text)
    assert answer.status == 400
    assert told in answer.text


def test_a_script_that_is_too_long_is_refused(visited: Visited) -> None:
    assert visited.post("/open", script="#" * 300_000).status == 400


def test_a_search_has_bounds(visited: Visited) -> None:
    address = RUN.partition("?")[2]
    for seconds in ("0", "1e9", "nan", "soon"):
        assert visited.post("/search", address=address, seconds=seconds).status == 400
    assert visited.post("/search", address="stack=skeen", seconds="1").status == 400
