"""Executors get the package in a zip file, and use what is installed there if it is the same."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import flexgroup
from flexgroup._pure import compiled
from flexgroup.pipeline.spark.session import packed

INSTALLED = Path(str(flexgroup.__file__)).parent

WHERE = "import flexgroup.core.message, flexgroup._pure; print(flexgroup.core.message.__file__)"


def found_with(archive: Path, installed: Path, form: str) -> str:
    """Return where a Python finds a module that has the zip file before an installed package."""
    path = os.pathsep.join([str(archive), str(installed.parent)])
    environment = {**os.environ, "PYTHONPATH": path, "FLEXGROUP_PURE": form}
    done = subprocess.run(
        [sys.executable, "-c", WHERE],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.skipif(not compiled(), reason="nothing is compiled here")
def test_the_same_package_is_used_where_it_is_installed_with_compiled_modules() -> None:
    found = Path(found_with(packed(), INSTALLED, form=""))
    assert found.is_relative_to(INSTALLED)
    assert found.suffix != ".py"


def test_the_pure_form_is_that_in_the_zip_file() -> None:
    assert "flexgroup.zip" in found_with(packed(), INSTALLED, form="1")


def test_a_package_that_is_not_the_same_is_passed_over(tmp_path: Path) -> None:
    archive = Path(shutil.copy(packed(), tmp_path))
    with zipfile.ZipFile(archive, "a") as target:
        target.writestr("flexgroup/news.py", "# of a later version")
    assert "flexgroup.zip" in found_with(archive, INSTALLED, form="")
