"""A host: what a process owns besides its stack, and what it asks of the world."""

from __future__ import annotations

import pytest

from flexgroup.core.codec import Codec
from flexgroup.core.errors import UsageError
from flexgroup.core.host import LATER, Host, World
from flexgroup.core.journal import Journal, Transmission
from flexgroup.core.layer import Context, Notice, Recall, Store, Stored, Suspect, View
from flexgroup.core.message import Message, Packet, name_of
from flexgroup.core.stack import Stack

from .small_layers import Mark, Note, Plain, log_of, message, told


class Wordy(Plain):
    """Does what its messages say: the payload is a list of words, each of which is a wish."""

    __slots__ = ()

    def on_packet(self, sender: int, packet: Packet) -> None:
        assert isinstance(packet, Note)
        assert isinstance(packet.m.payload, bytes)
        for word in packet.m.payload.decode().split():
            if word == "deliver":
                self.deliver(packet.m)
            elif word == "save":
                self.save(Mark(len(self.log)))
            elif word.startswith("write"):
                self.write(int(word[5:]), Mark(int(word[5:])))
            elif word.startswith("truncate"):
                self.truncate(int(word[8:]))
            elif word.startswith("archive"):
                self.archive(int(word[7:]))
            elif word.startswith("recall"):
                self.recall(int(word[6:]), 9, 2, 7)
            elif word == "foreign":
                self.save(packet)
            elif word == "set":
                self.set_timer("bell", 5)
            elif word == "cancel":
                self.cancel_timer("bell")
            elif word == "offer":
                self.offer("coin", 2)
            elif word == "answer":
                self.send((sender,), packet)

    def on_timer(self, name: str) -> None:
        self.send((2,), Note(message(1, 0, 2), 7))

    def on_restart(self, stored: Stored) -> None:
        self.log.append(f"restart with {stored!r}")

    def on_recall(self, asked: Recall, entries: list[tuple[int, Packet]]) -> None:
        self.log.append(f"{asked.about}: {[number for number, _ in entries]}")


class Told(World):
    """Writes down what it is asked for, and answers offers as it is told to."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.chosen = LATER

    def on_send(self, host: Host, to: tuple[int, ...], transmission: Transmission) -> None:
        for target in to:
            host.sent(target, transmission)
            self.asked.append(f"send to {target} at depth {transmission.depth}")

    def on_deliver(self, host: Host, m: Message) -> None:
        self.asked.append(f"deliver {name_of(m.id)}, saved {host.stored[0].saved}")

    def on_set_timer(self, host: Host, level: int, name: str, ticks: int) -> int:
        self.asked.append(f"set {name} to {ticks}")
        return 100 + ticks

    def on_cancel_timer(self, host: Host, level: int, name: str, answer: int) -> None:
        self.asked.append(f"cancel {name}, known as {answer}")

    def on_offer(self, host: Host, level: int, name: str, options: int) -> int:
        self.asked.append(f"offer {name} of {options}")
        return self.chosen

    def on_store(self, host: Host, effects: list[Store]) -> bool:
        self.asked.append(", ".join(map(told, effects)))
        return super().on_store(host, effects)

    def on_notice(self, host: Host, notice: Notice) -> None:
        self.asked.append(type(notice).__name__)


class Steps(Journal):
    """Keeps the steps with what happened, in a few words."""

    def __init__(self) -> None:
        self.rows: list[str] = []

    def multicast(self, process: int, step: int, time: int, m: Message) -> None:
        self.rows.append(f"{step} multicast {name_of(m.id)}")

    def send(
        self, process: int, step: int, time: int, target: int, transmission: Transmission
    ) -> None:
        self.rows.append(f"{step} send to {target} depth {transmission.depth}")

    def receive(
        self,
        process: int,
        step: int,
        time: int,
        sender: int,
        transmission: Transmission,
        sent: int,
        queued: int,
    ) -> None:
        self.rows.append(f"{step} receive from {sender} depth {transmission.depth}")

    def deliver(self, process: int, step: int, time: int, m: Message, depth: int) -> None:
        self.rows.append(f"{step} deliver {name_of(m.id)} depth {depth}")

    def other(
        self, kind: int, process: int, step: int, time: int, peer: int, detail: str | None
    ) -> None:
        self.rows.append(f"{step} {detail}")


class Hosted:
    """Process 0 of three, and what it hears from client 3."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.world = Told()
        self.host = Host(self.stack(), self.world, Codec([Wordy]), journal)
        self.host.start(0)

    def stack(self) -> Stack:
        return Stack([Wordy(Context(0, 3))])

    def hears(self, words: str, depth: int = 1, seq: int = 0) -> list[str]:
        """Let it hear of a message with these words; return what the world is asked for then."""
        self.world.asked = []
        packet = Note(message(3, seq, 0, payload=words.encode()), 1)
        transmission = self.host.transmission(packet)
        transmission.depth = depth
        self.host.receive(9, 3, transmission)
        return self.world.asked


def test_effects_come_in_order_and_what_is_saved_comes_before_what_follows() -> None:
    asked = Hosted().hears("answer save deliver")
    assert asked == [
        "send to 3 at depth 0",
        "save Mark(number=1) of level 0",
        "deliver 3.0, saved Mark(number=1)",
    ]


def test_the_world_knows_a_timer_by_what_it_answered() -> None:
    hosted = Hosted()
    assert hosted.hears("cancel set") == ["set bell to 5"]
    assert hosted.host.timers == {(0, "bell"): 105}
    assert hosted.hears("cancel") == ["cancel bell, known as 105"]
    assert hosted.host.timers == {}


def test_an_offer_is_answered_at_once_or_later() -> None:
    journal = Steps()
    hosted = Hosted(journal)
    assert hosted.hears("offer") == ["offer coin of 2"]
    assert [offer.name for offer in hosted.host.offers] == ["coin"]
    hosted.host.choose(0, 1)
    assert not hosted.host.offers
    hosted.world.chosen = 0
    hosted.hears("offer")
    assert not hosted.host.offers
    choices = [row for row in journal.rows if "coin" in row]
    assert choices == [
        '1 {"level":0,"name":"coin","chosen":1}',
        '3 {"level":0,"name":"coin","chosen":0}',
    ]


def test_a_crash_leaves_only_what_was_saved() -> None:
    hosted = Hosted()
    hosted.hears("save set offer")
    host = hosted.host
    host.crash(20)
    assert (host.up, host.timers, host.offers) == (False, {}, [])
    assert host.stored == [Stored(Mark(1))]
    stack = hosted.stack()
    host.recover(30, stack)
    assert host.up
    assert isinstance(stack.layers[0], Wordy)
    assert stack.layers[0].log == [f"restart with {Stored(Mark(1))!r}"]


def test_nothing_happens_after_a_crash_that_the_world_knows_of_beforehand() -> None:
    hosted = Hosted()
    hosted.host.crash_at = 8
    assert hosted.hears("save write1 deliver") == [
        "save Mark(number=1) of level 0, write Mark(number=1) as 1"
    ]
    assert hosted.host.stored == [Stored()]


def test_depths_continue_from_what_was_heard_and_are_forgotten_in_doing_so() -> None:
    journal = Steps()
    hosted = Hosted(journal)
    hosted.hears("answer", depth=2)
    hosted.hears("", depth=4, seq=1)
    hosted.hears("", depth=3, seq=1)
    assert hosted.host.depths == {message(3, 1, 0).id: 4}
    hosted.hears("deliver", depth=1, seq=1)
    assert hosted.host.depths == {}
    hosted.hears("", depth=5, seq=2)
    hosted.host.crash(10)
    assert hosted.host.depths == {}
    assert journal.rows == [
        "0 receive from 3 depth 2",
        "1 send to 3 depth 3",
        "2 receive from 3 depth 4",
        "3 receive from 3 depth 3",
        "4 receive from 3 depth 1",
        "5 deliver 3.1 depth 1",
        "6 receive from 3 depth 5",
        "7 None",
    ]


def test_views_and_suspicions_are_noted_and_leave_at_the_top() -> None:
    journal = Steps()
    hosted = Hosted(journal)
    hosted.host.notice(0, Suspect(2))
    hosted.host.note(View(3, (0, 1)))
    assert hosted.world.asked == ["Suspect"]
    assert journal.rows == ['0 {"suspected":true}', '1 {"members":[0,1],"number":3}']


def test_a_fork_goes_its_own_way() -> None:
    hosted = Hosted(Steps())
    hosted.hears("set save", depth=3)
    twin = hosted.host.fork()
    hosted.host.crash(10)
    assert (twin.up, twin.timers, twin.step) == (True, {(0, "bell"): 105}, 1)
    assert twin.stored == [Stored(Mark(1))]
    hosted.host.recover(20, hosted.stack())
    hosted.hears("save write3 deliver")
    assert (twin.stored, twin.stores, twin.deliveries) == ([Stored(Mark(1))], 1, 0)
    assert twin.depths == {message(3, 0, 0).id: 3}


# Stable storage.


def test_what_is_stored_in_a_row_is_made_durable_together() -> None:
    hosted = Hosted()
    assert hosted.hears("write2 save write1 set answer write3") == [
        "write Mark(number=2) as 2, save Mark(number=1) of level 0, write Mark(number=1) as 1",
        "set bell to 5",
        "send to 3 at depth 0",
        "write Mark(number=3) as 3",
    ]
    assert hosted.host.stores == 2


def test_entries_have_numbers_and_the_log_is_cut_in_front() -> None:
    hosted = Hosted()
    hosted.hears("write2 write0 write1 write2 truncate1")
    assert hosted.host.stored == [Stored(None, {1: Mark(1), 2: Mark(2)}, 1)]
    hosted.hears("truncate7 write9 write7")
    assert hosted.host.stored == [Stored(None, {7: Mark(7), 9: Mark(9)}, 7)]


@pytest.mark.parametrize("last", ["write2", "truncate2", "write-1"])
def test_what_was_dropped_is_gone(last: str) -> None:
    dropped = "Wordy at process 0 goes back to entry .* begin at 3"
    with pytest.raises(UsageError, match=dropped):
        Hosted().hears(f"truncate3 {last}")
    hosted = Hosted()
    hosted.hears("truncate3")
    with pytest.raises(UsageError, match=dropped):
        hosted.hears(last)


def test_what_is_set_aside_is_recalled_some_at_a_time() -> None:
    hosted = Hosted()
    hosted.hears("write0 write1 write2 write3 archive2 recall0 recall1 recall2 recall4")
    assert hosted.host.stored == [
        Stored(None, {2: Mark(2), 3: Mark(3)}, 0, 0, 2, {0: Mark(0), 1: Mark(1)})
    ]
    assert log_of(hosted.host.stack, 0)[-4:] == ["7: [0, 1]", "7: [1, 2]", "7: [2, 3]", "7: []"]
    hosted.hears("truncate1 archive3 truncate3")
    assert hosted.host.stored == [Stored(None, {3: Mark(3)}, 3, 0, 3)]


@pytest.mark.parametrize("last", ["write1", "archive1"])
def test_what_is_set_aside_does_not_change(last: str) -> None:
    with pytest.raises(UsageError, match=r"goes back to entry 1 .* begin at 2.* only be recalled"):
        Hosted().hears(f"write0 write1 archive2 {last}")


def test_only_packets_that_are_named_are_stored() -> None:
    with pytest.raises(UsageError, match="stores Note, which its STORED does not name"):
        Hosted().hears("foreign")


class Counted(Plain):
    """Writes down how many messages are known above it when it starts again."""

    __slots__ = ()

    def on_restart(self, stored: Stored) -> None:
        self.log.append(str(stored.delivered))


def test_an_application_remembers_what_it_was_given_and_a_layer_does_not() -> None:
    def stack() -> Stack:
        return Stack([Counted(Context(0, 3)), Counted(Context(0, 3))])

    host = Host(stack(), Told(), Codec([Counted, Counted]))
    for seq in range(3):
        inner = Message(message(3, seq, 0).id, (0,), Note(message(3, seq, 0), 1))
        host.receive(0, 3, Transmission(Note(inner, 1)))
    host.crash(10)
    again = stack()
    host.recover(20, again)
    assert [layer.log for layer in again.layers if isinstance(layer, Plain)] == [["0"], ["3"]]


def test_a_crash_tells_the_journal_how_often_something_was_stored() -> None:
    journal = Steps()
    hosted = Hosted(journal)
    hosted.host.crash(1)
    hosted.host.recover(2, hosted.stack())
    hosted.hears("save set save")
    hosted.host.crash(3)
    assert [row for row in journal.rows if row.startswith(("0", "3"))] == [
        "0 None",
        '3 {"stored":2}',
    ]
