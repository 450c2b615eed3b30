"""Virtual synchrony with one of its ideas taken out."""

from __future__ import annotations

from typing import Any

from flexgroup.protocols.catalogue import StackPlan
from flexgroup.worlds.explorer.scope import PlannedCast, Scope

from .variant_parts import Case, loaded_anew, plan_of

LAYERS = {"virtual_synchrony": "VirtualSynchrony"}


def synchrony_that_does_not_wait_for_what_others_have() -> StackPlan:
    module = loaded_anew("virtual_synchrony")
    module.VirtualSynchrony.has_all = lambda self, said: True
    return plan_of(module.VirtualSynchrony)


def synchrony_that_delivers_during_the_flush() -> StackPlan:
    """The others have been told what was delivered here, and this was not part of it."""
    module = loaded_anew("virtual_synchrony")
    correct = module.VirtualSynchrony.go_on

    def go_on(self: Any) -> None:
        self.deliver_held([], [])
        correct(self)

    module.VirtualSynchrony.go_on = go_on
    return plan_of(module.VirtualSynchrony)


def synchrony_that_multicasts_during_the_flush() -> StackPlan:
    """Who has gone on drops what belongs to the view before."""
    module = loaded_anew("virtual_synchrony")
    module.VirtualSynchrony.on_cast = module.VirtualSynchrony.multicast
    return plan_of(module.VirtualSynchrony)


def synchrony_that_takes_the_next_view_for_this_one() -> StackPlan:
    """What was multicast in the next view is delivered as if it were of this one."""
    module = loaded_anew("virtual_synchrony")
    correct = module.VirtualSynchrony.on_packet

    def on_packet(self: Any, sender: int, packet: Any) -> None:
        if isinstance(packet, module.Data):
            packet = module.Data(packet.m, self.stage, packet.numbers)
        correct(self, sender, packet)

    module.VirtualSynchrony.on_packet = on_packet
    return plan_of(module.VirtualSynchrony)


def synchrony_that_installs_what_nobody_agreed_on() -> StackPlan:
    """It goes through a view that was given up, as if those who are left out had been heard."""
    module = loaded_anew("virtual_synchrony")
    correct = module.VirtualSynchrony.install

    def install(self: Any, changes: int, said: Any) -> None:
        for change in self.coming[: changes - 1]:
            self.pass_on(change.notice())
        correct(self, changes, said)

    module.VirtualSynchrony.install = install
    return plan_of(module.VirtualSynchrony)


def synchrony_that_follows_without_what_was_said() -> StackPlan:
    """It installs what another one has installed, by what is said for the next view."""
    module = loaded_anew("virtual_synchrony")
    correct = module.VirtualSynchrony.install

    def install(self: Any, changes: int, said: Any) -> None:
        ahead = max([flush.at for flush in said]) - self.stage
        for change in self.coming[:ahead]:
            self.pass_on(change.notice())
        correct(self, changes, said)

    module.furthest = lambda said: 0
    module.VirtualSynchrony.install = install
    return plan_of(module.VirtualSynchrony)


TO_ALL = PlannedCast(2, (0, 1, 2))
LEAVES = Scope(3, (TO_ALL,), fifo=False, views=((0, 1),))
STAYS = Scope(2, (PlannedCast(0, (0, 1)), PlannedCast(1, (0, 1))), fifo=False, views=((0, 1),))
GIVEN_UP = Scope(3, (PlannedCast(2, (0, 2)),), views=((0, 1, 2), (0, 1)))
SYNCHRONY = "virtual synchrony"

CASES = [
    Case(synchrony_that_does_not_wait_for_what_others_have, "virtual_synchrony", LEAVES, SYNCHRONY),
    Case(synchrony_that_delivers_during_the_flush, "virtual_synchrony", LEAVES, SYNCHRONY),
    Case(synchrony_that_multicasts_during_the_flush, "virtual_synchrony", STAYS, SYNCHRONY),
    Case(synchrony_that_takes_the_next_view_for_this_one, "virtual_synchrony", STAYS, SYNCHRONY),
    Case(synchrony_that_installs_what_nobody_agreed_on, "virtual_synchrony", GIVEN_UP, SYNCHRONY),
    Case(synchrony_that_follows_without_what_was_said, "virtual_synchrony", GIVEN_UP, SYNCHRONY),
]
