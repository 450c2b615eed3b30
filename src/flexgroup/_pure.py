"""Which form of the package runs: the compiled modules, or the Python they were compiled from.

Extension modules lie beside their sources, and Python prefers them. Two cases ask for the
sources all the same: FLEXGROUP_PURE=1 in the environment, and a source that was edited after it
was compiled, where the extension would run code that is no longer there. It is always all or
nothing: compiled modules call each other directly, and half of them would be a third form.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from types import ModuleType

PACKAGE = os.path.dirname(os.path.abspath(__file__))


class SourceFinder:
    """Finds the modules of flexgroup as Python's own finder does, but only their sources."""

    def __init__(self) -> None:
        self._folders: dict[str, FileFinder] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or not fullname.startswith("flexgroup."):
            return None
        for folder in path:
            finder = self._folders.get(folder)
            if finder is None:
                finder = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
                self._folders[folder] = finder
            spec = finder.find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return spec
        # The finders after this one would still take an extension whose source is gone.
        spec = PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, ExtensionFileLoader):
            raise ModuleNotFoundError(f"{fullname} is compiled, but has no source", name=fullname)
        return None

    def invalidate_caches(self) -> None:
        for finder in self._folders.values():
            finder.invalidate_caches()


def choose_form() -> None:
    """Make imports of flexgroup find the sources where that is asked for or needed.

    Called once, by the package itself, before it imports anything of its own.
    """
    if os.environ.get("FLEXGROUP_PURE") == "1":
        sys.meta_path.insert(0, SourceFinder())
        return
    edited = edited_since_compiled()
    if edited:
        sys.meta_path.insert(0, SourceFinder())
        print(
            f"flexgroup: running in pure Python, because {edited[0]}"
            f"{f' and {len(edited) - 1} more' if edited[1:] else ''} changed since it was"
            " compiled; `make compiled` compiles again",
            file=sys.stderr,
        )


def edited_since_compiled() -> list[str]:
    """The sources that are newer than their extension module, or gone.

    Only in a source tree: installed files keep no honest times, and nobody edits them.
    """
    if not os.path.exists(os.path.join(PACKAGE, "..", "..", "pyproject.toml")):
        return []
    edited: list[str] = []
    for folder, folders, files in os.walk(PACKAGE):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        for name in files:
            if not name.endswith(tuple(EXTENSION_SUFFIXES)):
                continue
            source = os.path.join(folder, name.partition(".")[0] + ".py")
            try:
                compiled_at = os.stat(os.path.join(folder, name)).st_mtime_ns
                if os.stat(source).st_mtime_ns <= compiled_at:
                    continue
            except FileNotFoundError:
                pass
            edited.append(os.path.relpath(source, PACKAGE))
    return sorted(edited)


def compiled() -> bool:
    """Whether this process runs the compiled form."""
    spec = import_module("flexgroup.core.message").__spec__
    return spec is not None and isinstance(spec.loader, ExtensionFileLoader)
