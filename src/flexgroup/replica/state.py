"""The object of a replica, as its machine sees it: never does anything that raises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import chain, islice
from threading import get_ident

from flexgroup.core.errors import UsageError
from flexgroup.replica.attributes import check_class_of, codecs_of, state_of
from flexgroup.replica.calls import failure
from flexgroup.replica.replicated import Replicated


class ObjectState:
    def __init__(self, replica: Replicated, report: Callable[[str, Exception], None]) -> None:
        """`report` takes what functions of the application raise where nobody waits for them."""
        for method in replica.ordered_methods.values():
            method.prepare()
        codecs_of(type(replica))  # which says now what it would say to the first newcomer
        check_class_of(replica)
        self._replica = replica
        self._report = report
        self._initially = deepcopy(state_of(replica))
        self._coming: Replicated | None = None
        """The object with the state that is being restored."""

    @property
    def methods(self) -> list[str]:
        return sorted(str(method) for method in self._replica.ordered_methods.values())

    def apply(self, caller: str, method: str, arguments: bytes) -> bytes:
        if not method:
            return b""
        replica = self._replica
        known = replica.ordered_methods.get(method)
        if known is None:
            return failure(
                UsageError(f"{type(replica).__name__} has no ordered method {method} everywhere")
            )
        replica._caller = caller
        replica._applied_in = get_ident()
        try:
            return known.apply(replica, arguments)
        finally:
            replica._caller = ""

    def joined(self, member: str) -> None:
        self._tell(self._replica.joined, member)

    def left(self, member: str) -> None:
        self._tell(self._replica.left, member)

    def _tell(self, hook: Callable[[str], None], member: str) -> None:
        try:
            hook(member)
        except Exception as error:
            self._report(f"{type(self._replica).__name__}.{hook.__name__}({member!r})", error)

    def pieces(self) -> Iterator[bytes]:
        try:
            pieces = iter(self._replica.snapshot())
            return chain(list(islice(pieces, 1)), pieces)
        except Exception as error:
            return failing(error)

    def begin_restoring(self) -> None:
        coming = type(self._replica).__new__(type(self._replica))
        vars(coming).update(vars(self._replica))
        for name in state_of(coming):
            del vars(coming)[name]
        vars(coming).update(deepcopy(self._initially))
        self._coming = coming

    def restore(self, piece: bytes) -> None:
        assert self._coming is not None
        self._coming.restore(piece)

    def end_restoring(self) -> None:
        assert self._coming is not None
        held = vars(self._replica)
        for name in state_of(self._replica):
            del held[name]
        held.update(state_of(self._coming))
        self._coming = None


def failing(error: Exception) -> Iterator[bytes]:
    """Return an iterator that raises the error when it is drawn from."""
    raise error
    yield b""
