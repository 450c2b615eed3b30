"""What a broken variant is made of."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import flexgroup
from flexgroup.core.layer import Layer
from flexgroup.protocols.catalogue import Answers, Protocol, StackPlan
from flexgroup.worlds.explorer.scope import Scope


def loaded_anew(module: str, *parts: str) -> Any:
    """A protocol's module, loaded a second time, and with it parts that it is composed of: each
    before those that use it."""
    if not parts:
        return _loaded(module)
    name = f"flexgroup.protocols.parts.{parts[0]}"
    shared = import_module(name)
    sys.modules[name] = _loaded(f"parts/{parts[0]}")
    try:
        return loaded_anew(module, *parts[1:])
    finally:
        sys.modules[name] = shared


def _loaded(module: str) -> Any:
    path = Path(flexgroup.__file__).parent / "protocols" / f"{module}.py"
    spec = spec_from_file_location(f"explored_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    return fresh


def plan_of(layer: type[Layer], name: str = "variant") -> StackPlan:
    return StackPlan.of(Protocol(name, layer, "", "", answers=Answers.LAST))


class Case(NamedTuple):
    """A variant of a protocol's module, and a scope in which a property is seen broken."""

    variant: Callable[[], StackPlan]
    module: str
    scope: Scope
    broken: str
