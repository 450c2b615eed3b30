"""Which form of the package runs: the compiled modules, or the Python they were compiled from.

Extension modules lie beside their sources, and Python prefers them. Two cases ask for the
sources all the same: FLEXGROUP_PURE=1 in the environment, and a source that was edited after it
was compiled, where the extension would run code that is no longer there. It is always all or
nothing: compiled modules call each other directly, and half of them would be a third form.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from types import ModuleType

PACKAGE = os.path.dirname(os.path.abspath(__file__))


class SourceFinder(FileFinder):
    """Finds the modules in a folder as Python's own finder does, but only their sources."""

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = super().find_spec(fullname, target)
        extensions = FileFinder(self.path, (ExtensionFileLoader, EXTENSION_SUFFIXES))
        if spec is None and extensions.find_spec(fullname) is not None:
            raise ModuleNotFoundError(f"{fullname} is compiled, but has no source", name=fullname)
        return spec


def find_sources(folder: str) -> SourceFinder:
    """A hook for `sys.path_hooks`: the finder for a folder of this package."""
    if not f"{folder}{os.sep}".startswith(f"{PACKAGE}{os.sep}"):
        raise ImportError("not a folder of flexgroup", path=folder)
    return SourceFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


def choose_form() -> None:
    """Make imports of flexgroup find the sources where that is asked for or needed.

    Called once, by the package itself, before it imports anything of its own.
    """
    if not os.path.isdir(PACKAGE):
        return  # in a zip file, as Spark ships it, there are sources only
    if os.environ.get("FLEXGROUP_PURE") != "1":
        edited = edited_since_compiled()
        if not edited:
            return
        print(
            f"flexgroup: running in pure Python, because {edited[0]}"
            f"{f' and {len(edited) - 1} more' if edited[1:] else ''} changed since it was"
            " compiled; `make compiled` compiles again",
            file=sys.stderr,
        )
    sys.path_hooks.insert(0, find_sources)
    sys.path_importer_cache.pop(PACKAGE, None)  # this module was found by the usual finder


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
