"""Parquet files with encrypted columns, with public keys."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

KEYS = {"footer": b"0123456789012345", "column": b"1234567890123450"}


class Kms(pe.KmsClient):
    """A key management service that keeps nothing secret."""

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(KEYS[master_key_identifier] + key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)[16:]


def write_encrypted(
    path: Path, table: pa.Table, columns: list[str], *, plain_footer: bool, algorithm: str
) -> Path:
    """A file whose `columns` (paths) are encrypted; without a plain footer, all of it is."""
    config = pe.EncryptionConfiguration(
        footer_key="footer",
        column_keys={"column": columns} if columns else None,
        uniform_encryption=not columns,
        plaintext_footer=plain_footer,
        encryption_algorithm=algorithm,
    )
    connection = pe.KmsConnectionConfig(custom_kms_conf=dict.fromkeys(KEYS, ""))
    factory = pe.CryptoFactory(lambda _: Kms())
    properties = factory.file_encryption_properties(connection, config)
    with pq.ParquetWriter(path, table.schema, encryption_properties=properties) as writer:
        writer.write_table(table, row_group_size=3)
    return path
