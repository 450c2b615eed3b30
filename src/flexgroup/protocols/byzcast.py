"""ByzCast: atomic multicast in a tree of groups of replicas, of which some in each group lie.

Source: Coelho, Junior, Bessani, Dotti and Pedone 2018; algorithm 3.4 and section 3.3.1 of the DCC
dissertation (Louzada 2024), whose names are used here. A message is ordered by the lowest group of
the tree that all its destinations are below, and goes down from there, through the log of each
group on the way. A group takes from its parent what f + 1 members of that say.

Assumes a log for each group, which fewer than a third of its members can break (`pbft`, or `log`
in small scopes), and says truly who sent an entry. Guarantees total (acyclic) order and agreement
among correct processes, although up to f of the 3f + 1 members of each group, and any clients, do
what they like. Partially genuine: groups between the lowest common ancestor and the destinations
take part.

The groups stand in a tree by their numbers, with group 0 as the root. All others are its children;
with the option `binary`, groups 2g + 1 and 2g + 2 are those of group g, with `chain`, group g + 1.

Differs from the algorithm as printed (`byzcast-published`): what a group relays to another has
numbers, and counts in their order. As printed, a message counts when it has come "(f + 1) times".
If a liar among the relays leaves one out, the next has its copies sooner, and overtakes it in one
child and not in another: the order is a cycle, although the broadcast in each group is FIFO.
`byzcast-published` reads "times" kindly, as copies of distinct members of the parent; any other
reading lets one liar alone, even a client, forge messages.

Not in the algorithm: a member relays no more than the other group can be sure to take
(`vouched_channels`), so that no liar can fill its memory; a group that is asked to order a message
for which another one is the lowest common ancestor refuses, and so it does if the message is not of
who asks; an identity that an origin uses twice counts once.
"""

from __future__ import annotations

from typing import ClassVar, final

from flexgroup.core.guarantees import Guarantee, Guarantees
from flexgroup.core.layer import Context, Layer
from flexgroup.core.message import Message, Packet, origin_of
from flexgroup.core.replicas import (
    check_destinations,
    group_number,
    members_of_groups,
    numbers_of_groups,
)
from flexgroup.protocols.parts.group_channels import Confirm, Incoming, Transfer
from flexgroup.protocols.parts.group_tree import (
    SHAPES,
    child_towards,
    lowest_common_ancestor,
    parent_of,
    shape_of,
)
from flexgroup.protocols.parts.taken_messages import TakenMessages
from flexgroup.protocols.parts.timestamps import FAR
from flexgroup.protocols.parts.vouched_channels import (
    AS_THEY_COME,
    Sending,
    Vouched,
    confirmations,
)


@final
class Submit(Packet):
    """x0-broadcast(m) by the origin of m."""

    m: Message


class ByzCast(Layer):
    __slots__ = ("A_delivered", "from_parent", "ordered", "shape", "to_children", "x")

    NEEDS: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    GIVES: ClassVar[Guarantees] = frozenset(
        {Guarantee.RELIABLE, Guarantee.TOTAL, Guarantee.UNIFORM}
    )
    PACKETS: ClassVar[tuple[type[Packet], ...]] = (Submit, Transfer, Confirm)
    UNORDERED: ClassVar[tuple[type[Packet], ...]] = (Confirm,)
    NEEDS_REPLICAS: ClassVar[bool] = True
    AMONG_LIARS: ClassVar[bool] = True
    OPTIONS: ClassVar[tuple[str, ...]] = SHAPES

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.x = group_number(context.replicas, context.process)
        """The group of this process, x_k in the algorithm."""
        self.shape = shape_of(context.options)
        """That of the tree."""
        self.A_delivered = TakenMessages()
        # Not in the algorithm.
        self.ordered = TakenMessages()
        """What this group has ordered as the lowest common ancestor."""
        self.from_parent = Vouched(Incoming())
        self.to_children: dict[int, Sending] = {}

    def on_cast(self, m: Message) -> None:
        """Lines 4 to 6."""
        check_destinations(self.context.replicas, m.destinations)
        self.send(self.context.replicas[self.lca(m)], Submit(m))

    def lca(self, m: Message) -> int:
        groups = numbers_of_groups(self.context.replicas, m.destinations)
        return lowest_common_ancestor(self.shape, groups)

    def on_packet(self, sender: int, packet: Packet) -> None:
        """Line 8."""
        source = group_number(self.context.replicas, sender)
        if isinstance(packet, Submit) and self.is_submitted(sender, packet.m):
            self.on_submit(packet.m)
        elif isinstance(packet, Transfer) and self.is_relayed(source, packet):
            self.on_transfer(source, sender, packet)
        elif isinstance(packet, Confirm) and self.is_confirmed(source, packet):
            self.on_confirm(source, sender, packet.number)
        else:
            raise self.refuse(sender, packet)

    def on_submit(self, m: Message) -> None:
        """Line 9, k = 0."""
        if not self.ordered.has(m.id):
            self.ordered.add(m.id)
            self.relay_and_deliver(m)

    def on_transfer(self, parent: int, sender: int, packet: Transfer) -> None:
        """Line 9, k > 0."""
        group = self.context.replicas[parent]
        in_order = AS_THEY_COME not in self.context.options
        before = self.from_parent.incoming.taken
        for transfer in self.from_parent.add(sender, packet, group, in_order):
            for m in transfer.messages:
                self.relay_and_deliver(m)
        for number in confirmations(before, self.from_parent.incoming.taken):
            self.send(group, Confirm(number))

    def relay_and_deliver(self, m: Message) -> None:
        """Lines 10 to 14."""
        for child in self.children_towards(m):
            for packet in self.to_children.setdefault(child, Sending()).add((m,)):
                self.send(self.context.replicas[child], packet)
        if self.process in m.destinations and not self.A_delivered.has(m.id):
            self.A_delivered.add(m.id)
            self.deliver(m)

    def children_towards(self, m: Message) -> list[int]:
        """The children that reach a destination of m."""
        groups = numbers_of_groups(self.context.replicas, m.destinations)
        found = {child_towards(self.shape, self.x, group) for group in groups}
        return sorted(found - {-1})

    # Not in the algorithm.

    def on_confirm(self, child: int, sender: int, number: int) -> None:
        sending = self.to_children.setdefault(child, Sending())
        for packet in sending.confirm(sender, number, self.context.replicas[child]):
            self.send(self.context.replicas[child], packet)

    def is_submitted(self, sender: int, m: Message) -> bool:
        """m is of the sender, for whole groups, and to be ordered by this one."""
        replicas = self.context.replicas
        groups = numbers_of_groups(replicas, m.destinations)
        if self.x < 0 or not groups or origin_of(m.id) != sender:
            return False
        return m.destinations == members_of_groups(replicas, groups) and self.lca(m) == self.x

    def is_relayed(self, source: int, packet: Transfer) -> bool:
        """It is from the parent, and may be under way."""
        if self.x <= 0 or source != parent_of(self.shape, self.x):
            return False
        return self.from_parent.is_under_way(packet.number)

    def is_confirmed(self, source: int, packet: Confirm) -> bool:
        """It is from a child."""
        if self.x < 0 or source <= 0 or packet.number >= FAR:
            return False
        return parent_of(self.shape, source) == self.x
