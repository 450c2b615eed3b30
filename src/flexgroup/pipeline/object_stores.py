"""Trace sets and results in stores of objects, for those who have no Spark that can reach them.

pyarrow speaks to S3 and what is like it, to Google's and Azure's stores and to HDFS. A trace set
there is fetched into a folder of this machine, and read like any other; results are written here
and put there.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from flexgroup.core.errors import UsageError
from flexgroup.pipeline.result_tables import write_tables

SCHEMES = {
    "s3": "s3", "s3a": "s3", "s3n": "s3", "gs": "gs", "gcs": "gs",
    "abfs": "abfs", "abfss": "abfss", "hdfs": "hdfs",
}  # fmt: skip
"""What pyarrow calls the file systems that Hadoop has names for."""

COPIED_AT_ONCE = 1 << 22


def is_store(location: str) -> bool:
    """Tell whether this is a location in a store that pyarrow may know."""
    return urlsplit(location).scheme in SCHEMES


@contextmanager
def _told(location: str) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as problem:
        reason = str(problem).splitlines()[0]
        raise UsageError(
            f"'{location}' cannot be reached: {reason}; check the place, and the credentials and"
            " settings of its store (for S3 these are AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,"
            " AWS_REGION and AWS_ENDPOINT_URL)"
        ) from None


def _store_of(location: str) -> tuple[pafs.FileSystem, str]:
    """Return the file system of a location and the path there."""
    parts = urlsplit(location)
    scheme = SCHEMES.get(parts.scheme)
    if scheme is None:
        known = ", ".join(SCHEMES)
        raise UsageError(
            f"'{location}' is in a file system that only Spark may know; without Spark, these can"
            f" be read and written: {known}"
        )
    path = f"{parts.netloc}{parts.path}".rstrip("/")
    if scheme == "s3":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        return pafs.S3FileSystem(endpoint_override=endpoint), path
    store, path = pafs.FileSystem.from_uri(re.sub(r"^\w+", scheme, location.rstrip("/")))
    return store, path


@contextmanager
def fetched(location: str) -> Iterator[Path]:
    """Give a folder of this machine with what is in the trace set at a location; it goes again at
    the end."""
    with _told(location):
        store, root = _store_of(location)
        found = store.get_file_info(pafs.FileSelector(root, recursive=True))
    files = [each for each in found if each.type == pafs.FileType.File and _counts(each, root)]
    if not files:
        raise UsageError(f"'{location}' does not exist; give the directory of a trace set")
    with tempfile.TemporaryDirectory(prefix="flexgroup-") as room:
        folder = Path(room) / (Path(root).name or "traces")
        with _told(location):
            for each in files:
                target = folder / each.path.removeprefix(root).lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(store.open_input_stream(each.path), target.open("wb"))
        yield folder


def _counts(file: pafs.FileInfo, root: str) -> bool:
    """Tell whether readers look at a file: those do not count that are still being written."""
    name = file.path.removeprefix(root).lstrip("/")
    return name.startswith(("runs/", "events/")) and not file.base_name.startswith(("_", "."))


def refuse_to_overwrite_in_store(location: str, names: Sequence[str]) -> None:
    """Raise a UsageError if one of these tables is there already, or if nobody can look there."""
    with _told(location):
        store, root = _store_of(location)
        for name in [f"{name}{end}" for name in names for end in ("", ".csv")]:
            if store.get_file_info(f"{root}/{name}").type != pafs.FileType.NotFound:
                raise UsageError(
                    f"'{location}/{name}' exists; give --force to overwrite it, or another"
                    " directory"
                )


def write_tables_in_store(
    tables: Mapping[str, pa.Table], location: str, with_csv: bool = False
) -> None:
    """Write each table as a folder with one file; those of the same names give way."""
    with tempfile.TemporaryDirectory(prefix="flexgroup-") as room, _told(location):
        store, root = _store_of(location)
        write_tables(tables, Path(room), with_csv)
        for name in tables:
            for path in [*sorted(Path(room).glob(f"{name}/*")), Path(room) / f"{name}.csv"]:
                if path.exists():
                    target = f"{root}/{path.relative_to(room).as_posix()}"
                    store.create_dir(target.rpartition("/")[0], recursive=True)
                    _copy(path.open("rb"), store.open_output_stream(target))


def _copy(source: object, target: object) -> None:
    with source as reading, target as writing:  # type: ignore[attr-defined]
        while data := reading.read(COPIED_AT_ONCE):
            writing.write(data)
