"""Starting is quick: the heavy libraries are imported by the commands that need them."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

HEAVY = "numpy pyarrow pandas pyspark rich".split()

REPORT = f"""
import json, sys
try:
    {{statement}}
finally:
    print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]), file=sys.stderr)
"""


def heavy_modules_after(statement: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-c", REPORT.format(statement=statement)], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    loaded: list[str] = json.loads(run.stderr.splitlines()[-1])
    return loaded


def test_the_package_alone() -> None:
    assert heavy_modules_after("import flexgroup") == []


@pytest.mark.skipif(not find_spec("flexgroup.cli.main"), reason="there is no command line yet")
@pytest.mark.parametrize("arguments", [["--help"], ["simulate", "--help"]], ids=" ".join)
def test_asking_for_help(arguments: list[str]) -> None:
    start = (
        f"sys.argv = {['flexgroup', *arguments]!r};"
        " from flexgroup.cli.main import main; sys.exit(main())"
    )
    assert heavy_modules_after(start) == []
