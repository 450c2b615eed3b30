"""Protocols of one's own: the modules that register them, named in a command or once for all.

In the `pyproject.toml` of the folder that a command is given in, or of one above it:

    [tool.flexgroup]
    protocols = ["ring", "lab.token"]

A module is looked for where Python looks for modules, and beside that file.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from pathlib import Path

from flexgroup.core.errors import FlexGroupError, UsageError

FILE = "pyproject.toml"


def import_protocols(modules: Iterable[str]) -> None:
    """Import these modules, which register protocols."""
    for module in modules:
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise UsageError(
                f"cannot import '{module}': {error}; is it installed, or on PYTHONPATH?"
            ) from None
        except FlexGroupError:
            raise
        except Exception as error:
            raise UsageError(
                f"cannot import '{module}', which fails with {type(error).__name__}: {error}"
            ) from error


def configured_protocols(folder: Path) -> list[str]:
    """Return the modules that the project of a folder names, and let Python find them."""
    file = next((f / FILE for f in (folder, *folder.parents) if (f / FILE).is_file()), None)
    if file is None:
        return []
    text = file.read_text(encoding="utf-8")
    if "flexgroup" not in text:
        return []
    import tomllib  # which few projects need

    try:
        table = tomllib.loads(text).get("tool", {}).get("flexgroup", {})
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file} is not TOML: {error}") from None
    unknown = sorted(set(table) - {"protocols"}) if isinstance(table, dict) else ["flexgroup"]
    if unknown:
        raise UsageError(
            f"{file}: [tool.flexgroup] says '{unknown[0]}', which nothing reads; "
            'write protocols = ["MODULE"]'
        )
    modules = table.get("protocols", [])
    if not isinstance(modules, list) or not all(isinstance(name, str) for name in modules):
        raise UsageError(f'{file}: write [tool.flexgroup] with protocols = ["MODULE"]')
    if modules and str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    return modules
