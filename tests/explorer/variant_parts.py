"""What a broken variant is made of."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import flexgroup
from flexgroup.core.layer import Layer
from flexgroup.protocols.catalogue import Answers, Protocol, StackPlan
from flexgroup.worlds.explorer.scope import Scope

FILE_OF = {"xamp_reliable": "xamp_at_least"}
"""Of protocols that share one."""


def loaded_anew(module: str) -> Any:
    path = Path(flexgroup.__file__).parent / "protocols" / f"{FILE_OF.get(module, module)}.py"
    spec = spec_from_file_location(f"explored_{module}", path)
    assert spec is not None
    assert spec.loader is not None
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    return fresh


def plan_of(layer: type[Layer], name: str = "variant") -> StackPlan:
    row = Protocol(name, layer, "", "", answers=Answers.LAST)
    return StackPlan(name, (row,), (frozenset(),))


class Case(NamedTuple):
    """A variant of a protocol's module, and a scope in which a property is seen broken."""

    variant: Callable[[], StackPlan]
    module: str
    scope: Scope
    broken: str
