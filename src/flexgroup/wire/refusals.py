"""Why a server refuses what a client asked for: the codes of `Refused`.

The class of error that an application sees for each is in `flexgroup.client.errors`.
"""

from __future__ import annotations

from typing import Final

EXISTS: Final = "exists"
"""There is a group of that name, or one is being created or destroyed."""
MISSING: Final = "missing"
"""There is no group of that name."""
DESTROYED: Final = "destroyed"
"""The group ended while the request was under way."""
NOT_OWNER: Final = "not-owner"
"""The group has an owner, and another process wants to destroy it."""
NOT_MEMBER: Final = "not-member"
"""Only members may do that, or the handle is not one of a group."""
ALREADY_MEMBER: Final = "already-member"
"""A process of that name is in the group."""
NOT_ALLOWED: Final = "not-allowed"
"""The process is not among those that may join, or the group is not open."""
BAD_STACK: Final = "bad-stack"
"""A stack that cannot be built: an unknown protocol, or a need that is not met."""
NOT_KEPT: Final = "not-kept"
"""Messages are asked for that are not kept here, or cannot be kept."""
MIXED_STACKS: Final = "mixed-stacks"
"""One message to groups with different stacks."""
TOO_LARGE: Final = "too-large"
"""A message of more bytes than `Welcome.largest`."""
MALFORMED: Final = "malformed"
"""The server cannot understand the request; it closes the connection."""
BAD_VERSION: Final = "bad-version"
"""The client speaks another version of the protocol."""
CLOSING: Final = "closing"
"""The server is about to end."""
EXCLUDED: Final = "excluded"
"""The server was excluded from the group of servers, and cannot go on."""
TOO_MANY: Final = "too-many"
"""One of the limits of the server is reached: of clients, or of groups of a client."""
BUSY: Final = "busy"
"""The same is being done already, or cannot be done just now."""
