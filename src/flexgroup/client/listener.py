"""Functions instead of receiving: what an application that cannot wait derives from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from flexgroup.client.message import Message, View
from flexgroup.core.errors import FlexGroupError

T = TypeVar("T")


class Listener(ABC, Generic[T]):
    """Called as soon as something has come in a group; see `Group.listen`.

    What a function raises goes to the exception handler of the event loop; then the next is called.
    """

    __slots__ = ()

    @abstractmethod
    def delivered(self, messages: list[Message[T]]) -> None:
        """All that has come together, in order."""

    def changed(self, view: View) -> None:
        """The members are others from here on: between the messages before and after it."""

    def refused(self, error: FlexGroupError) -> None:
        """The server has refused something that was sent; unless told otherwise, reported."""
        raise error

    def ended(self, error: FlexGroupError) -> None:
        """Nothing more will come: the last call, with what `receive` would have raised."""
