"""The kernel says which columns of a Parquet file are encrypted."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError

from .encrypted_files import write_encrypted

TABLE = pa.table(
    {"id": [1, 2, 3, 4, 5], "text": ["a", "b", "c", "d", "e"], "pair": [{"x": 1, "y": "q"}] * 5}
)


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize(
    "columns", [["text"], ["pair.y"], ["id", "text"], ["id", "text", "pair.x", "pair.y"]]
)
def test_encrypted_columns_are_named(tmp_path: Path, columns: list[str], algorithm: str) -> None:
    path = write_encrypted(
        tmp_path / "a.parquet", TABLE, columns, plain_footer=True, algorithm=algorithm
    )
    data = path.read_bytes()
    assert _kernel.encrypted_columns(data) == columns
    length = int.from_bytes(data[-8:-4], "little")
    assert _kernel.encrypted_columns(data[-length - 8 :]) == columns
    with pytest.raises(InputError, match="not the footer of a Parquet file, or a broken one"):
        _kernel.encrypted_columns(data[-length - 7 :])


@pytest.mark.parametrize("columns", [["text"], []])
def test_an_encrypted_footer_is_named(tmp_path: Path, columns: list[str]) -> None:
    path = write_encrypted(
        tmp_path / "a.parquet", TABLE, columns, plain_footer=False, algorithm="AES_GCM_V1"
    )
    with pytest.raises(InputError, match="the footer is encrypted"):
        _kernel.encrypted_columns(path.read_bytes())


def test_plain_files_have_none(tmp_path: Path) -> None:
    many = pa.table({f"column {n}": list(range(40)) for n in range(40)})
    options = {"store_schema": False, "write_page_index": True}
    for number, table in enumerate((TABLE, many, many.select([]), TABLE.slice(0, 0))):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path, row_group_size=7, **options)
        assert _kernel.encrypted_columns(path.read_bytes()) == []


def test_broken_footers_are_errors_and_nothing_worse(tmp_path: Path) -> None:
    path = write_encrypted(
        tmp_path / "a.parquet", TABLE, ["text"], plain_footer=True, algorithm="AES_GCM_V1"
    )
    good = path.read_bytes()
    length = int.from_bytes(good[-8:-4], "little")
    footer, rng = good[-length - 8 : -8], random.Random(1)
    for _ in range(3000):
        broken = bytearray(footer)
        for _ in range(rng.randint(1, 4)):
            broken[rng.randrange(length)] = rng.randrange(256)
        try:
            columns = _kernel.encrypted_columns(bytes(broken) + good[-8:])
        except InputError:
            continue
        assert all(isinstance(column, str) for column in columns)
    for cut in range(length - 40):  # before the signature
        tail = footer[:cut] + cut.to_bytes(4, "little") + b"PAR1"
        with pytest.raises(InputError):
            _kernel.encrypted_columns(tail)
