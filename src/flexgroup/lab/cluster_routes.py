"""What the page of a live cluster asks for, and what it may have done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from flexgroup.core.errors import UsageError
from flexgroup.lab.cluster import INTERVAL, LiveCluster
from flexgroup.lab.cluster_page import PATH, cluster_page, no_cluster_page, parts

MOST_STREAMS = 8
LEAST_PAUSE = 0.1
"""The seconds between two times that a page is told what has changed, at least."""

Form = Callable[[Request], Awaitable[dict[str, str]]]
"""Gives what a page of this lab sends, and refuses what comes from elsewhere."""


class ClusterRoutes:
    """The pages of a cluster, if the lab has one."""

    def __init__(self, live: LiveCluster | None, form: Form, token: str) -> None:
        self.live = live
        self.is_stopping: Callable[[], bool] = lambda: False
        """Whether pages are to be told nothing more."""
        self._form = form
        self._token = token
        self._streams = 0

    @property
    def routes(self) -> list[Route]:
        acts = (self.server, self.join, self.again, self.leave, self.send, self.steady)
        return [
            Route(PATH, self.page),
            Route(f"{PATH}/events", self.events),
            *(Route(f"{PATH}/{act.__name__}", act, methods=["POST"]) for act in acts),
        ]

    @property
    def _cluster(self) -> LiveCluster:
        if self.live is None:
            raise UsageError("this lab has no cluster; start it with --servers or --cluster")
        return self.live

    async def page(self, request: Request) -> Response:
        if self.live is None:
            return Response(no_cluster_page(), 404, media_type="text/html")
        return Response(cluster_page(self.live, self._token), media_type="text/html")

    async def events(self, request: Request) -> Response:
        """Tell a page what has changed, as it changes."""
        live = self._cluster
        if self._streams >= MOST_STREAMS:
            raise UsageError(f"{self._streams} pages are shown live already; close one of them")
        return StreamingResponse(self._told(live), media_type="text/event-stream")

    async def _told(self, live: LiveCluster) -> AsyncIterator[str]:
        self._streams += 1
        try:
            shown: dict[str, str] = {}
            while not self.is_stopping():
                now = parts(live, self._token)
                changed = {name: part for name, part in now.items() if shown.get(name) != part}
                shown = {**now}
                yield f"data: {json.dumps({'all': list(now), 'changed': changed})}\n\n"
                try:
                    await asyncio.wait_for(live.news(), 2 * INTERVAL)
                except TimeoutError:
                    continue
                await asyncio.sleep(LEAST_PAUSE)
        finally:
            self._streams -= 1

    # What acts: only for a page of this lab.

    async def server(self, request: Request) -> Response:
        form = await self._form(request)
        live, name, act = self._cluster, form.get("server", ""), form.get("act", "")
        if act == "kill":
            await live.kill(name)
        elif act == "start":
            await live.start(name)
        elif act in ("cut", "mend"):
            await live.cut(name, act == "cut")
        else:
            raise UsageError("a server can be killed, started, cut off and mended")
        return _back()

    async def join(self, request: Request) -> Response:
        form = await self._form(request)
        group, server = form.get("group", ""), form.get("server", "")
        await self._cluster.join(group, form.get("stack", ""), server)
        return _back()

    async def again(self, request: Request) -> Response:
        form = await self._form(request)
        await self._cluster.join_again(_number(form, "member"))
        return _back()

    async def leave(self, request: Request) -> Response:
        form = await self._form(request)
        await self._cluster.leave(_number(form, "member"))
        return _back()

    async def send(self, request: Request) -> Response:
        form = await self._form(request)
        text = form.get("text", "")
        if not text:
            raise UsageError("write a message first")
        await self._cluster.member(_number(form, "member")).send(text)
        return _back()

    async def steady(self, request: Request) -> Response:
        form = await self._form(request)
        self._cluster.send_steadily(_number(form, "messages"))
        return _back()


def _number(form: dict[str, str], name: str) -> int:
    try:
        return int(form.get(name, ""))
    except ValueError:
        raise UsageError(f"'{name}' has to be a whole number") from None


def _back() -> Response:
    return RedirectResponse(PATH, 303)
