"""Which form of the package runs: the compiled modules, or the Python they were compiled from.

Extension modules lie beside their sources, and Python prefers them. Two cases ask for the
sources all the same: FLEXGROUP_PURE=1 in the environment, and a source that was edited after it
was compiled, where the extension would run code that is no longer there. It is always all or
nothing: compiled modules call each other directly, and half of them would be a third form.
"""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
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
        give_way()  # in a zip file, as Spark ships it, there are sources only
        return
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


def give_way() -> None:
    """Where this package was shipped in a zip file, and the same sources are installed with their
    compiled modules, let these take the place of the zip file."""
    if os.environ.get("FLEXGROUP_PURE") == "1":
        return
    for entry in sys.path:
        folder = os.path.join(entry, "flexgroup")
        if is_compiled(folder) and is_same(os.path.dirname(PACKAGE), folder):
            package = sys.modules["flexgroup"]
            package.__path__[:] = [folder]
            package.__file__ = os.path.join(folder, "__init__.py")
            del sys.modules[__name__]
            import_module(__name__).choose_form()
            return


def is_compiled(folder: str) -> bool:
    """Tell whether there are extension modules in the folder of a package."""
    extensions = FileFinder(os.path.join(folder, "core"), (ExtensionFileLoader, EXTENSION_SUFFIXES))
    return extensions.find_spec("message") is not None


def is_same(archive: str, folder: str) -> bool:
    """Tell whether the sources in a zip file are those in a folder, byte by byte."""
    try:
        with zipfile.ZipFile(archive) as shipped:
            for info in shipped.infolist():
                source = os.path.join(os.path.dirname(folder), *info.filename.split("/"))
                with open(source, "rb") as file:
                    if zlib.crc32(file.read()) != info.CRC:
                        return False
    except (OSError, zipfile.BadZipFile):
        return False
    return True


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
