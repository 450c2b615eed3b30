"""What a server refuses after it was sent, told to a listener."""

from __future__ import annotations

from flexgroup import FlexGroupError
from flexgroup.client.errors import NoSuchGroup, NotAllowed
from flexgroup.wire import requests as r

from .chat import Deaf, Diary, deliveries, in_chat, reports, sent_to
from .loops import on_a_loop
from .stand_in import settled


@on_a_loop
async def test_all_that_the_server_refuses_is_told_once() -> None:
    async with in_chat() as (server, _, group):
        refused: list[FlexGroupError] = []

        class Careful(Deaf):
            def refused(self, error: FlexGroupError) -> None:
                refused.append(error)

        group.listen(Careful())
        server.client.say(
            r.Refused(None, "not-allowed", "not this", 1), r.Refused(None, "missing", "nor that", 1)
        )
        await settled(group)
        assert [type(error) for error in refused] == [NotAllowed, NoSuchGroup]
        assert group.send_now([b"this"])
        await settled(group)
        assert sent_to(server) == [b"this"]


@on_a_loop
async def test_what_the_server_refuses_is_reported_if_a_listener_has_no_ear_for_it() -> None:
    async with in_chat() as (server, _, group):
        found = reports()
        group.listen(diary := Diary())
        server.client.say(
            r.Refused(None, "not-allowed", "not this", 1), deliveries(b"and then this")
        )
        await settled(group)
        assert [type(error) for _, error in found] == [NotAllowed]
        assert diary.told == [[b"and then this"]]


@on_a_loop
async def test_what_was_refused_before_it_listened_is_told_as_well() -> None:
    async with in_chat() as (server, _, group):
        found = reports()
        server.client.say(r.Refused(None, "not-allowed", "not this", 1))
        await settled(group)
        group.listen(Deaf())
        assert [type(error) for _, error in found] == [NotAllowed]
