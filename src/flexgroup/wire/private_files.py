"""Writing files that not everybody may read."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """Write the file as a whole, and never let others read it for a moment who should not."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with open(partial, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)
    partial.replace(path)
