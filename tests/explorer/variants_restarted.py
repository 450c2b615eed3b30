"""Variants of what rests on a log and starts again, with one of their ideas taken out.

They save a state after every entry of the log, and the log is cut off after every slot.
"""

from __future__ import annotations

from typing import Any

from flexgroup.core.host import NUMBERS
from flexgroup.core.message import Message, message_id, origin_of, seq_of
from flexgroup.protocols.catalogue import PROTOCOLS, Protocol, StackPlan

from .variant_parts import loaded_anew


def cutting_paxos() -> Any:
    paxos = loaded_anew("paxos")
    paxos.CUT = 1
    return paxos


def over_a_log(layer: Any, option: str = "", paxos: Any = None, every: int = 1) -> StackPlan:
    """The layer of a module, which is loaded anew, with a state saved after so many entries."""
    layer.CHECKPOINT = every
    always = frozenset({option} if option else ())
    top = layer.Replicated if option else layer.FtAbcast
    log = Protocol("log", (paxos or cutting_paxos()).Paxos, "", "")
    return StackPlan.of(PROTOCOLS["leader"], log, Protocol("variant", top, "", "", always=always))


def nothing_taken_out(name: str, every: int) -> StackPlan:
    """The stack of this name, which saves its state, and has the log cut off, that often."""
    if name == "ft-abcast":
        return over_a_log(loaded_anew("ft_abcast"), every=every)
    return over_a_log(loaded_anew("replicated"), name.removesuffix("-cft"), every=every)


def numbers_used_twice() -> StackPlan:
    """What is sent after a restart has the number of something else, which the log has."""
    paxos = cutting_paxos()
    careful = paxos.Paxos.on_cast

    def on_cast(self: Any, m: Any) -> None:
        identity = message_id(origin_of(m.id), seq_of(m.id) % NUMBERS)
        careful(self, Message(identity, m.destinations, m.payload))

    paxos.Paxos.on_cast = on_cast
    return over_a_log(loaded_anew("replicated"), "df", paxos)


def a_log_that_is_cut_beyond_the_state_that_is_saved() -> StackPlan:
    """As if the cut were durable and the state that it waits for were not."""
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.save

    def save(self: Any, packet: Any, covers: int) -> None:
        careful(self, packet, covers + 1)

    replicated.Replicated.save = save
    return over_a_log(replicated, "dcc")


def a_log_that_forgets_what_no_state_covers() -> StackPlan:
    paxos = cutting_paxos()
    careful = paxos.Paxos.on_covered

    def on_covered(self: Any, count: int) -> None:
        careful(self, 1 << 40)

    paxos.Paxos.on_covered = on_covered
    return over_a_log(loaded_anew("replicated"), "dcc", paxos, every=2)


def restoring(inner: str, *forgotten: str) -> StackPlan:
    """A state in which something is as at the beginning."""
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.restore

    def restore(self: Any, layer: Any, saved: Any) -> None:
        first = type(self)(self.context)
        careful(self, layer, saved)
        for name in forgotten:
            setattr(self, name, getattr(first, name))

    replicated.Replicated.restore = restore
    return over_a_log(replicated, inner)


def a_state_without_the_channels_to_others() -> StackPlan:
    return restoring("df", "outgoing")


def a_state_without_the_channels_from_others() -> StackPlan:
    return restoring("df", "incoming")


def a_state_without_what_was_submitted() -> StackPlan:
    return restoring("skeen", "submitted")


def a_state_without_the_inner_layer() -> StackPlan:
    return restoring("skeen", "inner")


def a_state_without_the_count_of_deliveries() -> StackPlan:
    return restoring("dcc", "delivered")


def deliveries_that_are_repeated() -> StackPlan:
    """Though the application remembers what it was given."""
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.on_restart

    def on_restart(self: Any, stored: Any) -> None:
        careful(self, stored)
        self.had = 0

    replicated.Replicated.on_restart = on_restart
    return over_a_log(replicated, "dcc", every=1000)


def a_silent_restart() -> StackPlan:
    """Other groups do not send again what this one has lost."""
    replicated = loaded_anew("replicated")
    replicated.Replicated.on_resume = lambda self, source: None
    return over_a_log(replicated, "dcc")


def transfers_that_are_not_sent_again() -> StackPlan:
    """The state was saved, and the process crashed before it sent what it had in there."""
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.restore

    def restore(self: Any, layer: Any, saved: Any) -> None:
        leads, self.leads = self.leads, False
        careful(self, layer, saved)
        self.leads = leads

    replicated.Replicated.restore = restore
    return over_a_log(replicated, "dcc")


def submissions_that_are_not_sent_again() -> StackPlan:
    replicated = loaded_anew("replicated")
    careful = replicated.Replicated.on_resume

    def on_resume(self: Any, source: int) -> None:
        self.own.clear()
        careful(self, source)

    replicated.Replicated.on_resume = on_resume
    return over_a_log(replicated, "df")


def ft_abcast_that_does_not_ask_for_an_end() -> StackPlan:
    ft_abcast = loaded_anew("ft_abcast")
    ft_abcast.FtAbcast.on_again = lambda self, sender, m: None
    return over_a_log(ft_abcast)


def ft_abcast_that_asks_only_for_what_it_waited_for() -> StackPlan:
    """And not for what its group decided while it was down."""
    ft_abcast = loaded_anew("ft_abcast")
    careful = ft_abcast.FtAbcast.decide

    def decide(self: Any, m: Any) -> None:
        self.behind = False
        careful(self, m)

    ft_abcast.FtAbcast.decide = decide
    return over_a_log(ft_abcast)


def ft_abcast_that_asks_up_to_the_entry_of_an_earlier_start() -> StackPlan:
    ft_abcast = loaded_anew("ft_abcast")

    def on_back(self: Any, sender: int, starts: int) -> None:
        if sender == self.process:
            self.behind = False

    ft_abcast.FtAbcast.on_back = on_back
    return over_a_log(ft_abcast, every=1000)


def ft_abcast_that_restarts_silently() -> StackPlan:
    ft_abcast = loaded_anew("ft_abcast")
    ft_abcast.FtAbcast.on_resume = lambda self, sender: None
    return over_a_log(ft_abcast)


def ft_abcast_that_does_not_send_on_again() -> StackPlan:
    ft_abcast = loaded_anew("ft_abcast")
    careful = ft_abcast.FtAbcast.restore

    def restore(self: Any, saved: Any) -> None:
        sending = self.effects
        careful(self, saved)
        self.effects = [
            effect
            for effect in sending
            if not isinstance(getattr(effect, "packet", None), ft_abcast.Forward)
        ]

    ft_abcast.FtAbcast.restore = restore
    return over_a_log(ft_abcast)


def ft_abcast_that_delivers_again() -> StackPlan:
    ft_abcast = loaded_anew("ft_abcast")
    careful = ft_abcast.FtAbcast.on_restart

    def on_restart(self: Any, stored: Any) -> None:
        careful(self, stored)
        self.had = 0

    ft_abcast.FtAbcast.on_restart = on_restart
    return over_a_log(ft_abcast, every=1000)


VARIANTS = [
    numbers_used_twice,
    a_log_that_is_cut_beyond_the_state_that_is_saved,
    a_log_that_forgets_what_no_state_covers,
    a_state_without_the_channels_to_others,
    a_state_without_the_channels_from_others,
    a_state_without_what_was_submitted,
    a_state_without_the_inner_layer,
    a_state_without_the_count_of_deliveries,
    deliveries_that_are_repeated,
    a_silent_restart,
    transfers_that_are_not_sent_again,
    submissions_that_are_not_sent_again,
    ft_abcast_that_does_not_ask_for_an_end,
    ft_abcast_that_asks_only_for_what_it_waited_for,
    ft_abcast_that_asks_up_to_the_entry_of_an_earlier_start,
    ft_abcast_that_restarts_silently,
    ft_abcast_that_does_not_send_on_again,
    ft_abcast_that_delivers_again,
]
