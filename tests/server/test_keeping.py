"""How servers come to the same log when a domain begins, and when members are given messages."""

from __future__ import annotations

import sqlite3

import pytest

from flexgroup.membership.configuration import DomainEntry, GroupEntry
from flexgroup.server.hosting import keeping
from flexgroup.server.hosting.keeping import Keeping
from flexgroup.server.peers.kept_messages import Entry, KeptMessages
from flexgroup.worlds.network.envelope import Envelope

GROUP = 5
EPOCH = 9

Log = list[tuple[int, bytes]]
"""The epochs and contents of messages, from the first on."""


def messages_with(log: Log, complete_for: int, first: int = 1) -> KeptMessages:
    messages = KeptMessages("memory", lambda: sqlite3.connect(":memory:"))
    messages.begin_after(GROUP, first - 1)
    entries = [Entry(number, epoch, 1, body) for number, (epoch, body) in enumerate(log, first)]
    messages.append(GROUP, entries)
    messages.mark(GROUP, complete_for)
    messages.commit()
    return messages


class Keepers:
    """Servers 1, 2, ... of one domain, with links that keep their order."""

    def __init__(self, *logs: KeptMessages, least_epoch: int = 0) -> None:
        servers = tuple(range(1, len(logs) + 1))
        group = GroupEntry(
            "g", GROUP, "abcast safe", None, True, None, 0, (),
            keep=100, keepers=servers, epoch=least_epoch,
        )  # fmt: skip
        domain = DomainEntry(EPOCH, "abcast safe", f"kept:{GROUP}", servers)
        self.logs = logs
        self.keepings = {
            server: Keeping(group, domain, server, messages)
            for server, messages in zip(servers, logs, strict=True)
        }
        for one in self.keepings.values():
            one.start()

    def exchange(self) -> None:
        while any(one.outgoing for one in self.keepings.values()):
            for server, one in self.keepings.items():
                outgoing, one.outgoing = one.outgoing, []
                for other, data in outgoing:
                    self.keepings[other].received(server, data, 0)

    def contents(self) -> list[list[tuple[int, bytes]]]:
        """What the logs hold, with the numbers of messages."""
        return [
            [(e.number, e.contents) for e in log.read(GROUP, log.first(GROUP), 1000, 1 << 30)]
            for log in self.logs
        ]


OLD: Log = [(3, b"a"), (3, b"b"), (4, b"c")]


def test_logs_that_are_the_same_stay_so() -> None:
    keepers = Keepers(messages_with(OLD, 4), messages_with(OLD, 4))
    keepers.exchange()
    assert all(one.is_open and one.given == 3 for one in keepers.keepings.values())


def test_who_has_less_fetches_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """One part after another."""
    monkeypatch.setattr(keeping, "CHUNK_BYTES", 1)
    keepers = Keepers(messages_with(OLD, 4), messages_with([], 0), messages_with(OLD[:2], 3))
    keepers.exchange()
    assert keepers.contents() == [[(1, b"a"), (2, b"b"), (3, b"c")]] * 3
    assert all(one.is_open for one in keepers.keepings.values())


def test_who_has_something_else_drops_it_though_it_is_longer() -> None:
    other: Log = [*OLD[:2], (3, b"x"), (3, b"y"), (3, b"z")]
    keepers = Keepers(messages_with(other, 3), messages_with(OLD, 4))
    keepers.exchange()
    assert keepers.contents() == [[(1, b"a"), (2, b"b"), (3, b"c")]] * 2


def test_who_was_fetching_is_behind_one_that_was_complete() -> None:
    """It has newer messages than the other knows of, but may lack some after them."""
    fetching = messages_with(OLD, 3)
    complete = messages_with(OLD[:2], 4)
    keepers = Keepers(fetching, complete)
    keepers.exchange()
    assert keepers.contents() == [[(1, b"a"), (2, b"b")]] * 2


def test_who_is_so_far_behind_that_it_is_not_kept_begins_anew() -> None:
    keepers = Keepers(messages_with(OLD, 4, first=50), messages_with([(1, b"old")] * 7, 2))
    keepers.exchange()
    assert keepers.contents() == [[(50, b"a"), (51, b"b"), (52, b"c")]] * 2


def test_nobody_goes_on_with_less_than_the_configuration_knows_of() -> None:
    keepers = Keepers(messages_with(OLD, 4), messages_with(OLD[:2], 3), least_epoch=6)
    keepers.exchange()
    assert all(one.is_stranded and not one.is_open for one in keepers.keepings.values())


def test_members_are_given_what_is_on_the_disks_of_all() -> None:
    keepers = Keepers(messages_with(OLD, 4), messages_with(OLD, 4))
    keepers.exchange()
    first, second = keepers.keepings.values()
    first.append([Envelope(((GROUP, 0),), 2, b"de")])
    first.committed()
    assert first.take_given() == []
    second.append([Envelope(((GROUP, 0),), 2, b"de")])
    second.committed()
    keepers.exchange()
    (given,) = first.take_given()
    assert (given.number, first.given, first.last) == (4, 5, 5)
