"""Ways in which a Parquet file can be other than it should be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

Damage = Callable[[Path], None]


def cut_in_half(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])


def make_empty(path: Path) -> None:
    path.write_bytes(b"")


def make_text(path: Path) -> None:
    path.write_text("run,process,step\n")


def make_foreign(path: Path) -> None:
    pq.write_table(pa.table({"city": ["Porto Alegre"], "people": [1_300_000]}), path)


def damage_the_middle(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for position in range(20, len(data) // 2):
        data[position] ^= 0xFF
    path.write_bytes(bytes(data))


def without(column: str) -> Damage:
    def damage(path: Path) -> None:
        table = pq.ParquetFile(path).read()
        pq.write_table(table.drop_columns([column]), path)

    damage.__name__ = f"without_{column}"
    return damage


def with_type(column: str, other: pa.DataType) -> Damage:
    def damage(path: Path) -> None:
        table = pq.ParquetFile(path).read()
        position = table.column_names.index(column)
        values = table.column(column).cast(other)
        pq.write_table(table.set_column(position, column, values), path)

    damage.__name__ = f"with_{column}_as_{other}"
    return damage


def with_null(column: str) -> Damage:
    def damage(path: Path) -> None:
        table = pq.ParquetFile(path).read()
        position = table.column_names.index(column)
        values = [None, *table.column(column).to_pylist()[1:]]
        field = table.schema.field(column).with_nullable(True)
        table = table.set_column(position, field, pa.array(values, field.type))
        pq.write_table(table, path)

    damage.__name__ = f"with_null_{column}"
    return damage


def flip_a_bit_of(column: str) -> Damage:
    """The last bit of the last page of its first row group."""

    def damage(path: Path) -> None:
        group = pq.read_metadata(path).row_group(0)
        chunks = [group.column(number) for number in range(group.num_columns)]
        (chunk,) = (chunk for chunk in chunks if chunk.path_in_schema == column)
        begin = chunk.dictionary_page_offset or chunk.data_page_offset
        data = bytearray(path.read_bytes())
        data[begin + chunk.total_compressed_size - 1] ^= 1
        path.write_bytes(bytes(data))

    damage.__name__ = f"flip_a_bit_of_{column}"
    return damage


def without_checksums(path: Path) -> None:
    pq.write_table(pq.ParquetFile(path).read(), path)


def without_rows(path: Path) -> None:
    table = pq.ParquetFile(path).read()
    pq.write_table(table.slice(0, 0), path)
