"""The stores of the suite: servers on this machine that answer as S3, Google Cloud Storage, Azure
Blob Storage and the Hub of Hugging Face do. Each has one bucket, container or repository."""

from __future__ import annotations

import json
import os
import urllib.request
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from pyarrow import fs

from wordpiece_core import storage
from wordpiece_core.storage import open_filesystem

S3, S3_QUERY = "s3, environment", "s3, query"
GOOGLE, AZURE, HUB = "gs", "abfs", "hf"

S3_PORT, GOOGLE_PORT, AZURE_PORT, HUB_PORT = 9000, 4443, 10000, 9100
S3_ENDPOINT = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{S3_PORT}"}
KEY_ID, SECRET, BUCKET = "suite", "of-this-suite", "corpora"
ACCOUNT = "devstoreaccount1"
ACCOUNT_KEY = (  # Azurite's own, which its documentation names
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


def _query(port: int) -> str:
    return f"?endpoint_override=127.0.0.1:{port}&scheme=http"


@dataclass(frozen=True)
class Store:
    """A store as the command sees it: `base` and `query` of its URIs, and variables of the
    environment. `port`: of its server."""

    base: str
    port: int
    query: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    def uri(self, name: str) -> str:
        """The URI of a place in it."""
        return f"{self.base}/{name}{self.query}"

    def upload(self, directory: Path) -> None:
        """Copies a local directory into it."""
        with self._in_environment():
            filesystem, inner = open_filesystem(self.uri(directory.name))
            fs.copy_files(str(directory), inner, destination_filesystem=filesystem)

    def files(self, name: str) -> dict[str, bytes]:
        """The files below a place, with their bytes."""
        with self._in_environment():
            return {
                entry.name: storage.read_bytes(self.uri(f"{name}/{entry.name}"))
                for entry in storage.entries(self.uri(name))
                if entry.kind == "file"
            }

    def make_bucket(self) -> None:
        """Makes the bucket, where the server does not begin with one."""
        with self._in_environment():
            if self.port == AZURE_PORT:
                open_filesystem(self.base)[0].create_dir(BUCKET)
            elif self.port == GOOGLE_PORT:
                request = urllib.request.Request(
                    f"http://127.0.0.1:{self.port}/storage/v1/b?project=suite",
                    json.dumps({"name": BUCKET}).encode(),
                    {"Content-Type": "application/json"},
                )
                urllib.request.urlopen(request, timeout=10).close()

    def _in_environment(self) -> AbstractContextManager[object]:
        return patch.dict(os.environ, S3_KEYS | self.environment)


S3_KEYS = {
    "AWS_ACCESS_KEY_ID": KEY_ID,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_DEFAULT_REGION": "us-east-1",
}
CONNECTION = (
    f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={ACCOUNT_KEY};"
    f"BlobEndpoint=http://127.0.0.1:{AZURE_PORT}/{ACCOUNT};"
)
STORES = {
    S3: Store(f"s3://{BUCKET}", S3_PORT, environment=S3_ENDPOINT),
    S3_QUERY: Store(f"s3://{BUCKET}", S3_PORT, _query(S3_PORT)),
    GOOGLE: Store(f"gs://anonymous@{BUCKET}", GOOGLE_PORT, _query(GOOGLE_PORT)),
    AZURE: Store(
        f"abfs://{BUCKET}", AZURE_PORT, environment={"AZURE_STORAGE_CONNECTION_STRING": CONNECTION}
    ),
    HUB: Store(
        "hf://datasets/owner/name",
        HUB_PORT,
        environment={"HF_ENDPOINT": f"http://127.0.0.1:{HUB_PORT}", "HF_TOKEN": "hf_suite"},
    ),
}
"""By what the table of the suite calls them."""
