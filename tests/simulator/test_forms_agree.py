"""The compiled form and the Python it was compiled from give the same traces, to the byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = """
import sys
from pathlib import Path
from flexgroup._pure import compiled
from flexgroup.worlds.simulator.scenario import Scenario, record_scenario

for stack in ("skeen", "df", "dcc", "dcc/rv", "dcc-published", "fifo dcc"):
    record_scenario(Scenario(stack, 6, 6, "random:N", "lan", 0.01, seed=3), Path(sys.argv[1]))
print("compiled" if compiled() else "pure")
"""


def digests(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*.parquet"))
    }


def run(directory: Path, pure: str, hash_seed: str) -> str:
    environment = {**os.environ, "FLEXGROUP_PURE": pure, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(directory)],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_both_forms_write_the_same_bytes(tmp_path: Path) -> None:
    if run(tmp_path / "as installed", "0", "1") == "pure":
        pytest.skip("nothing is compiled here")
    assert run(tmp_path / "pure", "1", "2") == "pure"
    written = digests(tmp_path / "pure")
    assert len(written) == 6 * 5
    assert written == digests(tmp_path / "as installed")
