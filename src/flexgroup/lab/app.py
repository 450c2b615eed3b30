"""The lab as a web application: routes, limits, and who may ask for what.

The server keeps no run: an address has all of it. What it keeps are searches under way. Pages are
for this machine alone, and other sites can neither read them nor have anything done.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from flexgroup.core.errors import FlexGroupError, UsageError
from flexgroup.diagram.markup import Markup, element
from flexgroup.diagram.picture import resources
from flexgroup.lab.address import LONGEST, read_address, scope_asked_for
from flexgroup.lab.cluster import LiveCluster
from flexgroup.lab.cluster_routes import ClusterRoutes
from flexgroup.lab.compare_page import compare_page
from flexgroup.lab.front import LONGEST_SCRIPT, beside, error_page, front_page
from flexgroup.lab.gallery import BY_NAME
from flexgroup.lab.opened import open_script
from flexgroup.lab.page import document, run_page
from flexgroup.lab.recorded import steps_of
from flexgroup.lab.runs_page import runs_page
from flexgroup.lab.saved import file_name, picture_of, script_of, trace_of
from flexgroup.lab.search import RunningSearch, Searches
from flexgroup.lab.stepping import stand_at
from flexgroup.lab.traces import PATIENCE, Reading, TraceSets
from flexgroup.lab.window import RunName, read_window
from flexgroup.lab.window_page import MOST_JUDGED, by_name, reading_page, window_page

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

HOST = "127.0.0.1"
"""The one address that the lab listens at."""

MOST_BODY = 4 * LONGEST_SCRIPT

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

STYLES = ("diagram/theme.css", "diagram/diagram.css", "diagram/density.css", "lab/lab.css")


class Lab:
    """The pages, and the searches under way."""

    def __init__(
        self,
        protocols: Sequence[str] = (),
        traces: Sequence[Path] = (),
        live: LiveCluster | None = None,
    ) -> None:
        self.token = secrets.token_urlsafe(24)
        self.searches = Searches(protocols)
        self.traces = TraceSets(traces)
        self.cluster = ClusterRoutes(live, self._form, self.token)

    def application(self, hosts: Callable[[], frozenset[str]]) -> ASGIApp:
        """Return the application for requests to one of these hosts."""
        pages = Starlette(
            routes=[
                Route("/", self.front),
                Route("/begin", self.begin),
                Route("/run", self.run),
                Route("/script", self.script),
                Route("/picture", self.picture),
                Route("/trace", self.trace),
                Route("/open", self.open, methods=["POST"]),
                Route("/search", self.search, methods=["POST"]),
                Route("/search/{number:int}", self.searched),
                Route("/search/{number:int}/told", self.told),
                Route("/search/{number:int}/stop", self.stop, methods=["POST"]),
                Route("/traces", self.recorded),
                Route("/window", self.window),
                Route("/compare", self.compare),
                Route("/told", self.read_so_far),
                Route("/step", self.step),
                Route("/judge", self.judge, methods=["POST"]),
                *self.cluster.routes,
                Route("/lab.css", lambda _: Response(resources(*STYLES), media_type="text/css")),
                Route(
                    "/lab.js",
                    lambda _: Response(resources("lab/lab.js"), media_type="text/javascript"),
                ),
            ],
            exception_handlers={FlexGroupError: _refused, 404: _unknown, 405: _unknown},
            lifespan=self._lifespan,
        )
        return Guard(pages, hosts)

    @asynccontextmanager
    async def _lifespan(self, application: Starlette) -> AsyncIterator[None]:
        live = self.cluster.live
        if live is not None:
            await live.begin()
        yield
        if live is not None:
            await live.end()
        self.searches.stop_all()

    # Pages. What takes longer than a moment runs beside the loop: these are no coroutines.

    def front(self, request: Request) -> Response:
        return _page(front_page(self.token, bool(self.traces.directories)))

    def begin(self, request: Request) -> Response:
        """Take the fields of the form, and go to the run that they ask for."""
        words = parse_qs(_query(request), max_num_fields=40)
        return _see(scope_asked_for(words).query)

    def run(self, request: Request) -> Response:
        standing = stand_at(read_address(_query(request)))
        guided = BY_NAME.get(standing.address.guided)
        return _page(run_page(standing, self.token, beside(guided) if guided else ""))

    def script(self, request: Request) -> Response:
        standing = stand_at(read_address(_query(request)))
        return _file(script_of(standing), "text/plain", f"{file_name(standing)}.txt")

    def picture(self, request: Request) -> Response:
        standing = stand_at(read_address(_query(request)))
        return _file(picture_of(standing), "image/svg+xml", f"{file_name(standing)}.svg")

    def trace(self, request: Request) -> Response:
        standing = stand_at(read_address(_query(request)))
        return _file(trace_of(standing), "application/zip", f"{file_name(standing)}-trace.zip")

    # Recorded runs.

    def recorded(self, request: Request) -> Response:
        return _page(runs_page(self.traces))

    def window(self, request: Request) -> Response:
        window = read_window(_query(request))
        reading = self.traces.timeline(window.of)
        if not reading.wait(PATIENCE):
            return _page(reading_page([reading], window))
        timeline = reading.get()
        if window.called:
            return RedirectResponse(by_name(window, timeline).path, 303)
        judged = self.traces.judged(window.of, begin=len(timeline) <= MOST_JUDGED)
        others = [
            RunName(traces, run)
            for traces in self.traces.directories
            for run in self.traces.runs(traces)
            if (traces, run) != (window.of.traces, window.of.run)
        ]
        return _page(window_page(window, timeline, judged, others, self.token))

    def compare(self, request: Request) -> Response:
        window = read_window(_query(request))
        if window.beside is None:
            raise UsageError("which other run? Choose one on the page of a run")
        ours, theirs = map(self.traces.timeline, (window.of, window.beside))
        found = self.traces.compared(window.of, window.beside)
        readings: list[Reading[Any]] = [ours, theirs, found]
        if not all(reading.wait(PATIENCE) for reading in readings):
            return _page(reading_page(readings, window))
        return _page(compare_page(window, ours.get(), theirs.get(), found.get()))

    def read_so_far(self, request: Request) -> Response:
        """Say how far that is which a page waits for."""
        window = read_window(_query(request))
        readings: list[Reading[Any]] = [self.traces.timeline(window.of)]
        if window.beside is not None:
            readings += [self.traces.timeline(window.beside)]
            readings += [self.traces.compared(window.of, window.beside)]
        elif (judged := self.traces.judged(window.of, begin=False)) is not None:
            readings += [judged]
        waiting = [reading.told() for reading in readings if not reading.over]
        return JSONResponse({"words": " ".join(waiting[:1]), "over": not waiting})

    def step(self, request: Request) -> Response:
        """Go to a recorded run as one that is stepped through."""
        name = read_window(_query(request)).of
        directory, run = self.traces.directory(name.traces), self.traces.run(name)
        return _see(steps_of(directory, run, self.traces.runs(name.traces)).query)

    # What acts: only for a page of this lab.

    async def judge(self, request: Request) -> Response:
        form = await self._form(request)
        window = read_window(form.get("window", ""))
        await run_in_threadpool(lambda: self.traces.judged(window.of, begin=True))
        return RedirectResponse(f"{window.path}#verdicts", 303)

    async def open(self, request: Request) -> Response:
        form = await self._form(request)
        text = form.get("script", "")
        # What cannot happen is told at once, not on the way.
        standing = await run_in_threadpool(lambda: stand_at(open_script(text).whole))
        return _see(standing.address.at(0).query)

    async def search(self, request: Request) -> Response:
        form = await self._form(request)
        address = read_address(form.get("address", ""))
        try:
            seconds = float(form.get("seconds", "20"))
        except ValueError:
            raise UsageError("how many seconds? Give a number") from None
        begun = await run_in_threadpool(lambda: self._search_from(address.query, seconds))
        return RedirectResponse(f"/search/{begun}", 303)

    def _search_from(self, query: str, seconds: float) -> int:
        address = read_address(query).at(len(read_address(query).moves))
        standing = stand_at(address)  # refuses what cannot have happened
        return self.searches.begin(standing.address, seconds)

    def searched(self, request: Request) -> Response:
        number = int(request.path_params["number"])
        return _page(search_page(self.searches.get(number), number, self.token))

    def told(self, request: Request) -> Response:
        search = self.searches.get(int(request.path_params["number"]))
        return JSONResponse({"words": search.words, "over": search.over})

    async def stop(self, request: Request) -> Response:
        await self._form(request)
        number = int(request.path_params["number"])
        self.searches.get(number).stop()
        return RedirectResponse(f"/search/{number}", 303)

    async def _form(self, request: Request) -> dict[str, str]:
        """Return what a page of this lab sends, and refuse what comes from elsewhere."""
        body = await _body(request)
        try:
            fields = parse_qs(body.decode(), max_num_fields=10, strict_parsing=True)
        except ValueError:
            raise _NotOursError("this is not a form of the lab") from None
        form = {name: values[-1] for name, values in fields.items()}
        if not secrets.compare_digest(form.get("token", "").encode(), self.token.encode()):
            raise _NotOursError("this form is of another lab, or of an earlier one: load it anew")
        return form


class _NotOursError(FlexGroupError):
    """What was sent does not come from a page of this lab."""


class Guard:
    """Lets through what is meant for this lab and comes from it, and says how pages are used."""

    def __init__(self, inner: ASGIApp, hosts: Callable[[], frozenset[str]]) -> None:
        self._inner = inner
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                added = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        reason = self._refusal(Request(scope))
        if reason:
            await Response(f"{reason}\n", 403, media_type="text/plain")(scope, receive, guarded)
            return
        await self._inner(scope, receive, guarded)

    def _refusal(self, request: Request) -> str:
        hosts = self._hosts()
        named = request.headers.getlist("host")
        if len(named) != 1 or named[0] not in hosts:
            return f"this lab is at {' and '.join(sorted(hosts))} only"
        own = {f"http://{host}" for host in hosts}
        origin = request.headers.get("origin")
        if request.method not in ("GET", "HEAD"):
            return "" if origin in own else "only a page of this lab may ask for that"
        if origin is not None and origin not in own:
            return "other sites have no business here"
        site = request.headers.get("sec-fetch-site", "none")
        visit = request.headers.get("sec-fetch-mode", "navigate") == "navigate"
        embedded = request.headers.get("sec-fetch-dest", "document") != "document"
        if site not in ("none", "same-origin") and (not visit or embedded):
            return "other sites have no business here"
        return ""


def search_page(search: RunningSearch, number: int, token: str) -> Markup:
    """Return the page of a search: how far it is, or what it has found."""
    back = element("a", "Back to the run", href=f"/run?{search.address.query}")
    told = element(
        "p",
        search.words,
        role="status",
        data_search=None if search.over else f"/search/{number}/told",
    )
    parts: list[object] = [element("h1", f"Search from step {len(search.address.moves)}"), told]
    for name, address in search.found:
        steps = len(address.ahead)
        link = element("a", f"Step to it: {steps} more", href=f"/run?{address.query}")
        end = element("a", "its end", href=f"/run?{address.whole.query}")
        parts.append(element("p", element("strong", name), " can be broken. ", link, ", or see ",
                             end, "."))  # fmt: skip
    if not search.over:
        parts.append(
            element(
                "form",
                element("input", type="hidden", name="token", value=token),
                element("button", "Stop", type="submit"),
                method="post",
                action=f"/search/{number}/stop",
            )
        )
    return document("Search", *parts, element("p", back), refresh=0 if search.over else 1)


def _query(request: Request) -> str:
    query = request.scope["query_string"]
    if len(query) > 2 * LONGEST:
        raise UsageError(f"an address has at most {LONGEST:,} characters")
    return str(query.decode("ascii", "replace"))


async def _body(request: Request) -> bytes:
    found = bytearray()
    async for part in request.stream():
        found += part
        if len(found) > MOST_BODY:
            raise UsageError(f"a script has at most {LONGEST_SCRIPT:,} characters here")
    return bytes(found)


def _page(page: Markup, status: int = 200) -> Response:
    return Response(page, status, media_type="text/html")


def _see(query: str) -> Response:
    return RedirectResponse(f"/run?{query}", 303)


def _file(content: str | bytes, kind: str, name: str) -> Response:
    disposition = f'attachment; filename="{name}"'
    return Response(content, media_type=kind, headers={"Content-Disposition": disposition})


def _refused(request: Request, error: Exception) -> Response:
    return _page(error_page(str(error)), 403 if isinstance(error, _NotOursError) else 400)


def _unknown(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return _page(error_page("The lab has no such page."), status)
