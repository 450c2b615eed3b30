"""What clients and servers say to each other, as typed messages.

A frame between a client and its server holds a list of these, encoded as MessagePack arrays by
msgspec, which checks types and lengths while it decodes and runs nothing of what it reads.
"""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, Struct

VERSION: Final = 5
LONGEST_NAME: Final = 200
MOST_GROUPS_OF_A_MESSAGE: Final = 64
MOST_REPLICAS: Final = 64
"""The most servers with replicas of one group."""

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
"""The name of a group, a process or a server."""

Number = Annotated[int, Meta(ge=0, lt=1 << 32)]
Position = Annotated[int, Meta(ge=0, lt=1 << 62)]
"""A place in the one order in which a server delivers to a client, over all its groups."""
Side = tuple[Annotated[int, Meta(ge=0, lt=1 << 62)], Number]
"""What tells apart the views of a partitionable group that were formed in different components."""
StackText = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Handles = Annotated[list[Number], Meta(min_length=1, max_length=MOST_GROUPS_OF_A_MESSAGE)]


class FromClient(Struct, array_like=True, forbid_unknown_fields=True):
    """A message of a client."""


class Request(FromClient):
    """A message that is answered; the client chooses its number, which the answer repeats."""

    request: Number


class GroupRequest(Request):
    """A request about the group of that name."""

    group: Name


class Hello(FromClient, tag=1):
    """Opens the conversation; the process has this name where it does not join under another."""

    version: int
    name: Name


class Exists(GroupRequest, tag=2):
    """Asks whether there is a group of that name."""


class Create(GroupRequest, tag=3):
    """Asks for a new group, which has no members yet."""

    stack: StackText
    owner: Name | None
    """The only process that may destroy the group; if None, every member may."""
    open: bool
    """Whether processes that are not members may send."""
    allow: list[Name] | None
    """The processes that may join; if None, all may."""
    domain: Name | None = None
    """The group shares an order only with groups of its stack that name the same; None: with those
    that name none."""
    keep: Number = 0
    """How many of its last messages the servers keep on disk, at least."""
    partitionable: bool = False
    """Whether members go on in every component of the network, with views of their own."""


class Destroy(GroupRequest, tag=4):
    """Asks to end a group for all of its members."""


class Join(GroupRequest, tag=5):
    """Asks to become a member of a group."""

    process: Name
    own: bool
    """Whether this member is delivered its own messages, too, in their place in the order."""
    since: Position | None = None
    """The number of the first message that this member wants of those that were kept; 0: it wants
    all of them. None: it wants none."""


class Attach(GroupRequest, tag=6):
    """Asks for a handle to send to an open group without joining it."""


class Leave(Request, tag=7):
    """Asks to leave a group, or to give up the handle to send to it."""

    handle: Number


class Info(GroupRequest, tag=8):
    """Asks what the servers know about a group."""


class Send(FromClient, tag=9):
    """Messages to the members of one group, or of several with the same stack; not answered."""

    handles: Handles
    bodies: Annotated[list[bytes], Meta(min_length=1)]
    """Each body is a message of its own."""


class Credit(FromClient, tag=10):
    """The client has received so many deliveries of a group, and may be sent as many more."""

    handle: Number
    messages: Annotated[int, Meta(ge=1, lt=1 << 20)]


class Inspect(Request, tag=11):
    """Asks for what `flexgroup probe` shows."""


class Goodbye(FromClient, tag=12):
    """The client closes the connection, and so leaves its groups."""


class Confirm(Request, tag=13):
    """Asks to be told when all servers with members have what this client has sent to a group."""

    handle: Number


class CreateReplicated(Request, tag=14):
    """Asks for groups of replicas, which share a stack that survives crashes itself."""

    stack: StackText
    groups: Annotated[
        list[tuple[Name, Annotated[list[Name], Meta(max_length=MOST_REPLICAS)]]],
        Meta(min_length=1, max_length=MOST_GROUPS_OF_A_MESSAGE),
    ]
    """The name of each group, and the names of the servers that have its replicas."""


class FromServer(Struct, array_like=True, forbid_unknown_fields=True):
    """A message of a server to a client."""


class Answer(FromServer):
    """The answer to a request that was carried out."""

    request: Number


class Welcome(FromServer, tag=1):
    """The answer to `Hello`, with what the client has to keep to."""

    server: str
    session: Number
    """The number of the client's next frame."""
    window: Number
    """How many deliveries of a group may be under way to the client without credit."""
    largest: Number
    """The most bytes a message may have."""
    sends: Number
    """How many messages the client may send beyond those that were granted."""


class Done(Answer, tag=2):
    """The request was carried out."""

    value: bool = True


class Joined(Answer, tag=3):
    """The answer to `Join` and `Attach`. Deliveries to a member follow under this handle."""

    handle: Number
    """It is valid until the answer to `Leave`, or until `Destroyed`. What a client says about a
    handle that has just ended is ignored."""
    view: Number
    members: list[str]
    stack: str = ""
    """It tells the client whether one message can go to this group and another one."""
    position: Position = 0
    """The place of a member's first view. The answer to `Attach` has none."""
    side: Side = (0, 0)
    """The component of the network that this view was formed in, if it was parted."""


class Description(Answer, tag=4):
    """The answer to `Info`."""

    group: str
    stack: str
    owner: str | None
    open: bool
    view: Number
    members: list[str]
    """The names of the member processes, in the order they joined."""
    servers: list[str]
    promises: list[str]
    """The names of the properties that the stack promises at this server."""
    domain: str | None = None
    keep: Number = 0
    partitionable: bool = False


class Inspection(Answer, tag=5):
    """The answer to `Inspect`."""

    report: bytes
    """A JSON document."""


class Refused(FromServer, tag=6):
    """A request was not carried out or, without the number of one, something else was wrong."""

    request: Number | None
    code: str
    """One of those in `flexgroup.wire.refusals`: exists, missing, not-owner, ..."""
    reason: str
    """A text for people, which says what is wrong and what to do."""
    handle: Number | None = None
    """The handle of the group if a `Send` is refused, which has no number."""


class Sent(Struct, array_like=True, forbid_unknown_fields=True):
    """Messages that follow each other in the order of a group, all from one process."""

    sender: str
    """The name of the process that sent them."""
    bodies: list[bytes]


class Delivered(FromServer, tag=7):
    """Messages in the order of a group, or of several; each takes one place of their windows."""

    handles: Handles
    """The handles of all groups of this client that the messages were sent to. A message to
    several groups is still to be given to the application only once."""
    here: Number
    """So many of these groups, from the first on, get the messages now. The others, whose windows
    are full or were, get them, or have got them, in their own places."""
    position: Position
    """The place of the first message; the others follow it."""
    sent: list[Sent]


class DeliveredKept(FromServer, tag=13):
    """Messages in the order of a group that keeps them; each takes one place of the window."""

    handle: Number
    ahead: int
    """The number of each message is its position and this."""
    position: Position
    """The place of the first message; the others follow it."""
    sent: list[Sent]


class ViewChange(FromServer, tag=8):
    """The group has other members from here on, between the deliveries before and after it."""

    handle: Number
    position: Position
    view: Number
    members: list[str]
    merged: list[list[str]] = []
    """If components of the network have met: the members of each that were in one view before."""
    side: Side = (0, 0)
    """The component of the network that this view was formed in, if it was parted."""


class Held(FromServer, tag=12):
    """The server holds back what has this position, and perhaps some of what follows it, since a
    window is full; it has sent all that comes before. With 0, it has sent everything."""

    position: Position


class Destroyed(FromServer, tag=9):
    """The group has ended; this follows its last delivery."""

    handle: Number
    reason: str


class Closing(FromServer, tag=10):
    """The server ends, or gives this client up; nothing follows."""

    reason: str


class Granted(FromServer, tag=11):
    """The server has taken so many messages of the client, which may send as many more.

    A server that is busy reads on, since a client that waits to send must still be able to say
    that it has received; so senders are slowed down by this, and not by a connection that fills.
    """

    messages: Number


AnyFromClient = (
    Hello
    | Exists
    | Create
    | Destroy
    | Join
    | Attach
    | Leave
    | Info
    | Send
    | Credit
    | Inspect
    | Goodbye
    | Confirm
    | CreateReplicated
)
AnyFromServer = (
    Welcome
    | Done
    | Joined
    | Description
    | Inspection
    | Refused
    | Delivered
    | DeliveredKept
    | ViewChange
    | Destroyed
    | Closing
    | Granted
    | Held
)
