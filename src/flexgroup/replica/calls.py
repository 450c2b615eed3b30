"""Methods whose calls are ordered: what they are called with, and what they return, as bytes."""

from __future__ import annotations

import asyncio
import builtins
import inspect
import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import (
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
    get_type_hints,
    overload,
)

import msgspec

from flexgroup.client import values
from flexgroup.client.errors import CallFailed
from flexgroup.client.values import Codec
from flexgroup.core.errors import FlexGroupError, PeerError, UsageError

P = ParamSpec("P")
R = TypeVar("R")

RETURNED = b"\x00"
RAISED = b"\x01"


class Caller(ABC):
    """An object whose ordered methods are called at all replicas."""

    __slots__ = ()

    @property
    @abstractmethod
    def is_applying(self) -> bool:
        """Whether an ordered method is being applied here."""

    @abstractmethod
    def call_of(self, method: Ordered[..., Any]) -> Callable[..., Any]:
        """Return what calls an ordered method at all replicas."""


class AsyncCaller(Caller):
    """Calls are awaited."""

    __slots__ = ()


class BlockingCaller(Caller):
    """Calls wait."""

    __slots__ = ()


class Ordered(Generic[P, R]):
    """A method of a replicated object: what `ordered` makes of it."""

    def __init__(self, function: Callable[..., R]) -> None:
        self.function = function
        self.name = function.__name__
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        parameters = list(inspect.signature(function).parameters.values())[1:]
        # Arguments travel in one sequence, in which those without a default come first.
        parameters.sort(key=lambda one: (one.kind, one.default is not one.empty))
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise UsageError(
                    f"the ordered method {self.name} takes {parameter}: name each parameter, or"
                    " take a list or a dict"
                )
        if inspect.iscoroutinefunction(function):
            raise UsageError(
                f"the ordered method {self.name} is a coroutine, but is called at one place in the"
                " order, without waiting: write `def`"
            )
        self._parameters = parameters
        self._arguments: type[msgspec.Struct] | None = None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(parameter.name for parameter in self._parameters)})"

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: AsyncCaller, owner: type) -> Callable[P, Awaitable[R]]: ...
    @overload
    def __get__(self, instance: BlockingCaller, owner: type) -> Callable[P, R]: ...
    def __get__(self, instance: Caller | None, owner: type) -> Any:
        if instance is None:
            return self
        if instance.is_applying:
            raise UsageError(
                f"the ordered method {self.name} is called by another one, which has its place"
                " already: put what both do into a plain method"
            )
        return instance.call_of(self)

    def prepare(self) -> None:
        """Find out what the types are that the method is annotated with."""
        if self._arguments is not None:
            return
        try:
            hints = get_type_hints(self.function)
        except NameError as error:
            raise UsageError(
                f"the ordered method {self.name} is annotated with a type that cannot be found"
                f" ({error}); define or import it where the module can see it"
            ) from None
        fields: list[Any] = [
            (parameter.name, hints.get(parameter.name, Any))
            if parameter.default is parameter.empty
            else (parameter.name, hints.get(parameter.name, Any), parameter.default)
            for parameter in self._parameters
        ]
        try:
            self._arguments = msgspec.defstruct(
                self.name, fields, array_like=True, forbid_unknown_fields=True
            )
        except TypeError as error:
            raise UsageError(f"the ordered method {self.name}: {error}") from None
        self._arguments_codec: Codec[Any] = values.of(self._arguments)
        returned = hints.get("return", Any)
        self._result_codec: Codec[Any] = values if returned is Any else values.of(returned)

    def encode_arguments(self, *arguments: Any, **by_name: Any) -> bytes:
        assert self._arguments is not None
        try:
            called_with = self._arguments(*arguments, **by_name)
        except TypeError as error:
            raise TypeError(f"{self.name}(): {error}") from None
        return self._arguments_codec.encode(called_with)

    def apply(self, replica: object, arguments: bytes) -> bytes:
        """Call the method, and return what became of it; nothing is ever raised."""
        try:
            called_with = self._arguments_codec.decode(arguments)
            by_place, by_name = [], {}
            for parameter in self._parameters:
                argument = getattr(called_with, parameter.name)
                if parameter.kind is parameter.KEYWORD_ONLY:
                    by_name[parameter.name] = argument
                else:
                    by_place.append(argument)
            result = self.function(replica, *by_place, **by_name)
            return RETURNED + self._result_codec.encode(result)
        except (Exception, asyncio.CancelledError) as error:
            return failure(error)

    def result(self, replica: object, outcome: bytes) -> R:
        """Return what the method returned, or raise what it raised."""
        if outcome[:1] == RETURNED:
            result: R = self._result_codec.decode(outcome[1:])
            return result
        raise error_of(outcome, type(replica))


def ordered(function: Callable[Concatenate[Any, P], R]) -> Ordered[P, R]:
    """Have all replicas call this method, at the same place in the order of all calls.

    It may change the attributes of the object, and must do the same wherever it is called: what it
    does follows from these and from its arguments alone. It cannot wait.
    """
    return Ordered(function)


def failure(error: BaseException) -> bytes:
    """Return what tells of an error that a method raised, also if it cannot tell that itself."""
    try:
        text = str(error.args[0]) if len(error.args) == 1 else str(error)
    except Exception as another:
        text = f"its text cannot be made: {type(another).__name__}"
    told = text[:1_000].encode(errors="backslashreplace").decode()
    return RAISED + values.encode([type(error).__name__, told])


def error_of(outcome: bytes, replica: type) -> Exception:
    """Return the error: of the class of that name in Python, or in the module of the replica."""
    try:
        name, text = values.decode(outcome[1:])
    except (PeerError, TypeError, ValueError):
        return CallFailed("a call has an outcome that cannot be read")
    module = sys.modules.get(replica.__module__)
    found = getattr(module, str(name), None) or getattr(builtins, str(name), None)
    if (
        isinstance(found, type)
        and issubclass(found, Exception)
        and not issubclass(found, FlexGroupError)
    ):
        try:
            return found(text)
        except Exception:
            pass  # it wants to be made of something else
    return CallFailed(f"{name}: {text}")
