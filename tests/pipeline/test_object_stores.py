"""Traces and results in a store of objects, with and without Spark; moto stands in for S3."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest

from flexgroup.cli.main import main
from flexgroup.pipeline.tables_elsewhere import can_reach

from ..trace.recorded import record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

moto = pytest.importorskip("moto.server", reason="needs moto, flask and flask-cors")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A bucket with a trace set in it."""
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "nobody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "nothing")
        patch.setenv("AWS_REGION", "us-east-1")
        store = pafs.S3FileSystem(
            endpoint_override=f"http://{host}:{port}", allow_bucket_creation=True
        )
        store.create_dir("bucket")
        traces = tmp_path_factory.mktemp("recorded") / "traces"
        record(traces)
        (traces / "runs" / "_half.parquet").write_text("in the making")
        pafs.copy_files(str(traces), "bucket/traces", destination_filesystem=store)
        yield store
    server.stop()


def names(store: Any, folder: str) -> list[str]:
    found = store.get_file_info(pafs.FileSelector(folder, recursive=True))
    return sorted(each.path.removeprefix(folder + "/") for each in found if each.is_file)


def test_traces_and_results_without_spark(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    here = ["s3a://bucket/traces", "--engine", "local"]
    command = ["verify", *here, "--out", "s3a://bucket/tables", "--csv", "--json"]
    assert main(command) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    written = pq.read_table("bucket/tables/verdicts/verdicts.parquet", filesystem=store)
    assert {row["property"] for row in written.to_pylist()} == {
        verdict["property"] for verdict in verdicts
    }
    assert names(store, "bucket/tables") == [
        "evidence.csv", "evidence/evidence.parquet", "verdicts.csv", "verdicts/verdicts.parquet",
    ]  # fmt: skip
    assert main(command) == 2
    assert "'s3a://bucket/tables/verdicts' exists; give --force" in capsys.readouterr().err
    assert main([*command, "--force"]) == 0
    assert main(["measure", *here, "--out", "s3://bucket/measured"]) == 0
    assert "points/points.parquet" in names(store, "bucket/measured")
    assert list(tmp_path.iterdir()) == [], "no folder of this machine is called s3a:"


def test_what_is_not_there_is_told(store: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for place in ("s3a://bucket/nothing", "s3a://nowhere/traces"):
        assert main(["verify", place, "--engine", "local"]) == 2
        assert f"'{place}'" in capsys.readouterr().err


def test_a_spark_without_a_connector_gets_what_was_fetched(
    spark: SparkSession, store: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not can_reach(spark, "s3a://bucket/traces")
    command = ["verify", "s3a://bucket/traces", "--out", "s3a://bucket/of-spark"]
    assert main(command) == 0
    assert "tables written to s3a://bucket/of-spark" in capsys.readouterr().out
    assert "verdicts/verdicts.parquet" in names(store, "bucket/of-spark")
    assert main(command) == 2
    assert "exists; give --force" in capsys.readouterr().err
