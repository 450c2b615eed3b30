"""What clients and servers say to each other, as typed messages.

A frame between a client and its server holds a list of these, encoded as MessagePack arrays by
msgspec, which checks types and lengths while it decodes and runs nothing of what it reads.
"""

from __future__ import annotations

from typing import Annotated, Final, Generic, TypeVar

from msgspec import Meta, Struct

T = TypeVar("T")

VERSION: Final = 2
LONGEST_NAME: Final = 200
MOST_GROUPS_OF_A_MESSAGE: Final = 64

Name = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
"""Of a group, a process or a server."""

Number = Annotated[int, Meta(ge=0, lt=1 << 32)]
StackText = Annotated[str, Meta(min_length=1, max_length=LONGEST_NAME)]
Handles = Annotated[list[Number], Meta(min_length=1, max_length=MOST_GROUPS_OF_A_MESSAGE)]


class FromClient(Struct, array_like=True, forbid_unknown_fields=True):
    """What a client says. Requests carry a number of the client's choice, which the reply has."""


class Hello(FromClient, tag=1):
    """First of all; the name is the process's, unless a group is joined under another."""

    version: int
    name: Name


class Exists(FromClient, tag=2):
    request: Number
    group: Name


class Create(FromClient, tag=3):
    request: Number
    group: Name
    stack: StackText
    owner: Name | None
    """Who alone may destroy the group; None: any member."""
    open: bool
    """Processes that are not members may send."""
    allow: list[Name] | None
    """The processes that may join; None: all."""


class Destroy(FromClient, tag=4):
    request: Number
    group: Name


class Join(FromClient, tag=5):
    request: Number
    group: Name
    process: Name
    own: bool
    """What this member sends is delivered to itself as well, in its place in the order."""


class Attach(FromClient, tag=6):
    """Get a handle to send to an open group without joining it."""

    request: Number
    group: Name


class Leave(FromClient, tag=7):
    request: Number
    handle: Number


class Info(FromClient, tag=8):
    request: Number
    group: Name


class Send(FromClient, tag=9):
    """To the members of one group, or of several groups with the same stack; not answered."""

    handles: Handles
    bodies: Annotated[list[bytes], Meta(min_length=1)]
    """Each is a message of its own."""


class Credit(FromClient, tag=10):
    """The client has taken so many deliveries of a group from its queue: send as many more."""

    handle: Number
    messages: Annotated[int, Meta(ge=1, lt=1 << 20)]


class Inspect(FromClient, tag=11):
    """What `flexgroup probe` shows."""

    request: Number


class Goodbye(FromClient, tag=12):
    """The client closes; it leaves its groups."""


class FromServer(Struct, array_like=True, forbid_unknown_fields=True):
    """What a server says to a client."""


class Welcome(FromServer, tag=1):
    server: str
    session: Number
    """The number of the client's next frame."""
    window: Number
    """How many deliveries of a group may be under way to the client without credit."""
    largest: Number
    """The most bytes a message may have."""
    sends: Number
    """How many messages the client may send beyond those that were granted."""


class Done(FromServer, tag=2):
    """The request was carried out."""

    request: Number
    value: bool = True


class Joined(FromServer, tag=3):
    """Deliveries of the group follow, under this handle. Also the answer to Attach."""

    request: Number
    handle: Number
    """Until the answer to `Leave`, or `Destroyed`; what a client says of one that has just ended
    is ignored."""
    view: Number
    members: list[str]
    stack: str = ""
    """Lets the client see whether a message may go to this group and another one at once."""


class GroupInfo(FromServer, tag=4):
    request: Number
    group: str
    stack: str
    owner: str | None
    open: bool
    view: Number
    members: list[str]
    """The names of the member processes, in the order they joined."""
    servers: list[str]


class Inspection(FromServer, tag=5):
    request: Number
    report: bytes
    """A JSON document."""


class Refused(FromServer, tag=6):
    """The request was not carried out, or (without a request) something else was wrong."""

    request: Number | None
    code: str
    """One of `flexgroup.wire.refusals`: exists, missing, not-owner, ..."""
    reason: str
    """What is wrong and what to do, for people."""
    handle: Number | None = None
    """The group, where the refused thing is a `Send`, which has no request."""


class Message(Struct, Generic[T], frozen=True, array_like=True, forbid_unknown_fields=True):
    """A message, in its place in the order of the group."""

    sender: str
    """The name of the process that sent it."""
    body: T
    """The bytes that were sent, or the value, if the group has a codec."""
    group: str = ""
    """Left out on the way, where the handle of the deliveries tells it."""


class Deliveries(FromServer, tag=7):
    """In order; each counts as one of the window."""

    handle: Number
    messages: list[Message[bytes]]


class ViewChange(FromServer, tag=8):
    """In its place among the deliveries of the group."""

    handle: Number
    view: Number
    members: list[str]


class Destroyed(FromServer, tag=9):
    """After the last delivery of the group."""

    handle: Number
    reason: str


class Closing(FromServer, tag=10):
    """The server ends, or excludes this client; nothing follows."""

    reason: str


class Granted(FromServer, tag=11):
    """The server has taken so many messages of the client: it may send as many more.

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
)
AnyFromServer = (
    Welcome
    | Done
    | Joined
    | GroupInfo
    | Inspection
    | Refused
    | Deliveries
    | ViewChange
    | Destroyed
    | Closing
    | Granted
)
