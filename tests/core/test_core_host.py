"""A host: what a process owns besides its stack, and what it asks of the world."""

from __future__ import annotations

from flexgroup.core.codec import Codec
from flexgroup.core.host import LATER, Host, World
from flexgroup.core.journal import Journal, Transmission
from flexgroup.core.layer import Context, Notice, Stored, Suspect, View
from flexgroup.core.message import Message, Packet, name_of
from flexgroup.core.stack import Stack

from .small_layers import Note, Plain, message


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
                self.save(len(self.log))
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

    def on_restart(self, saved: Stored) -> None:
        self.log.append(f"restart with {saved!r}")


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
        self.asked.append(f"deliver {name_of(m.id)}, saved {host.saved}")

    def on_set_timer(self, host: Host, level: int, name: str, ticks: int) -> int:
        self.asked.append(f"set {name} to {ticks}")
        return 100 + ticks

    def on_cancel_timer(self, host: Host, level: int, name: str, answer: int) -> None:
        self.asked.append(f"cancel {name}, known as {answer}")

    def on_offer(self, host: Host, level: int, name: str, options: int) -> int:
        self.asked.append(f"offer {name} of {options}")
        return self.chosen

    def on_save(self, host: Host, level: int, value: Stored) -> None:
        self.asked.append(f"save {value!r}")

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
    assert asked == ["send to 3 at depth 0", "save 1", "deliver 3.0, saved [1]"]


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
    assert (host.up, host.timers, host.offers, host.saved) == (False, {}, [], [1])
    stack = hosted.stack()
    host.recover(30, stack)
    assert host.up
    assert isinstance(stack.layers[0], Wordy)
    assert stack.layers[0].log == ["restart with 1"]


def test_nothing_happens_after_a_crash_that_the_world_knows_of_beforehand() -> None:
    hosted = Hosted()
    hosted.host.crash_at = 8
    assert hosted.hears("save deliver") == []
    assert hosted.host.saved == [None]


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
    assert (twin.up, twin.timers, twin.saved, twin.step) == (True, {(0, "bell"): 105}, [1], 1)
    assert twin.depths == {message(3, 0, 0).id: 3}
