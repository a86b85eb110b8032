"""A local S3 server for the requests that the jobs make. Clients must sign with its key.

    with serving() as store:
        store.put("bucket/in/a.txt", b"some text")
        store.uri("bucket/in")

Its key is in the environment of this process while it runs.

`objects` has its content. Tests can make it answer with errors, or not at all.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

KEY, SECRET = "MARKED-KEY", "MARKED/SECRET+OF=STORE"
CODES = {403: "AccessDenied", 404: "NoSuchKey", 503: "SlowDown", 500: "InternalError"}


@dataclass
class Object:
    data: bytes
    modified: float = field(default_factory=time.time)

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.data).hexdigest()}"'


@dataclass
class Store:
    """`objects`: by bucket and key. `status`: what every request is answered with, if not None.
    `failures`: how many requests are answered with `status` before all is well again; None: all.
    `hangs_after`: how many requests are answered before no other is. `requests`: how many there
    have been. `waiting`: set when one is not answered. `unanswered`: which are not."""

    address: str = ""
    objects: dict[str, dict[str, Object]] = field(default_factory=dict)
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    status: int | None = None
    failures: int | None = None
    hangs_after: int | None = None
    requests: int = 0
    unanswered: list[str] = field(default_factory=list)
    waiting: threading.Event = field(default_factory=threading.Event)
    goes_on: threading.Event = field(default_factory=threading.Event)

    def put(self, place: str, data: bytes) -> None:
        bucket, _, key = place.partition("/")
        self.objects.setdefault(bucket, {})[key] = Object(data)

    def files(self, place: str) -> dict[str, bytes]:
        """Return the content of the objects below a prefix, by the rest of their keys."""
        bucket, _, prefix = place.partition("/")
        found = self.objects.get(bucket, {}).items()
        below = [(key, of) for key, of in found if key.startswith(f"{prefix}/")]
        return {key[len(prefix) + 1 :]: of.data for key, of in below if not key.endswith("/")}

    def uri(self, place: str) -> str:
        """The URI of a place."""
        return f"s3://{place}?endpoint_override={self.address}&scheme=http&region=us-east-1"


class S3(BaseHTTPRequestHandler):
    store: Store
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or the rest of an answer waits, 40 ms, for its head to arrive

    def do_GET(self) -> None:
        store, url = self.store, urlsplit(self.path)
        store.requests += 1
        self.body = self.read_body()
        if store.hangs_after is not None and store.requests > store.hangs_after:
            store.unanswered.append(self.requestline)
            store.waiting.set()
            store.goes_on.wait()
        if store.status is not None and store.failures != 0:
            store.failures = None if store.failures is None else store.failures - 1
            self.error(store.status)
            return
        if f"Credential={KEY}/" not in self.headers.get("Authorization", ""):
            self.error(403)
            return
        self.query = {k: v[0] for k, v in parse_qs(url.query, keep_blank_values=True).items()}
        self.bucket, _, self.key = unquote(url.path).removeprefix("/").partition("/")
        if self.bucket not in store.objects and not (self.command == "PUT" and not self.key):
            self.error(404, "NoSuchBucket")
            return
        of_what = "object" if self.key else "bucket"
        getattr(self, f"{self.command.lower()}_{of_what}")()

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

    def read_body(self) -> bytes:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if "x-amz-decoded-content-length" not in self.headers:
            return body
        data, rest = b"", body  # in chunks of its own, each after its length
        while rest:
            head, _, rest = rest.partition(b"\r\n")
            size = int(head.partition(b";")[0] or b"0", 16)
            if not size:
                break
            data, rest = data + rest[:size], rest[size + 2 :]
        return data

    # --- Buckets ----------------------------------------------------------------------------------

    def head_bucket(self) -> None:
        self.answer(200)

    def put_bucket(self) -> None:
        self.store.objects.setdefault(self.bucket, {})
        self.answer(200)

    def get_bucket(self) -> None:
        prefix, delimiter = self.query.get("prefix", ""), self.query.get("delimiter")
        after = self.query.get("continuation-token", "")
        most = int(self.query.get("max-keys", 1000))
        objects = self.store.objects[self.bucket]
        lines: list[str] = []
        common: dict[str, None] = {}
        last, is_cut = "", False
        for key in sorted(key for key in objects if key.startswith(prefix) and key > after):
            if len(lines) + len(common) >= most:
                is_cut = True
                break
            last = key
            rest = key[len(prefix) :]
            if delimiter and delimiter in rest:
                common[prefix + rest.partition(delimiter)[0] + delimiter] = None
                continue
            found = objects[key]
            stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found.modified))
            lines.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{stamp}</LastModified>"
                f"<ETag>{escape(found.etag)}</ETag><Size>{len(found.data)}</Size></Contents>"
            )
        for name in common:
            lines.append(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>")
        more = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>" if is_cut else ""
        self.xml(
            f"<ListBucketResult><Name>{self.bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{len(lines)}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
            f"{more}{''.join(lines)}</ListBucketResult>"
        )

    def post_bucket(self) -> None:
        for node in ElementTree.fromstring(self.body).iter():
            if node.tag.endswith("Key") and node.text:
                self.store.objects[self.bucket].pop(node.text, None)
        self.xml("<DeleteResult/>")

    def delete_bucket(self) -> None:
        del self.store.objects[self.bucket]
        self.answer(204)

    # --- Objects ----------------------------------------------------------------------------------

    def get_object(self) -> None:
        found = self.store.objects[self.bucket].get(self.key)
        if found is None:
            self.error(404)
            return
        data, status = found.data, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked:
            data, status = data[int(asked[1]) : int(asked[2]) + 1], 206
        stamp = formatdate(found.modified, usegmt=True)
        self.answer(status, data, {"ETag": found.etag, "Last-Modified": stamp})

    head_object = get_object

    def put_object(self) -> None:
        source = self.headers.get("x-amz-copy-source")
        if source is not None:
            bucket, _, key = unquote(source).removeprefix("/").partition("/")
            copied = self.store.objects[bucket][key]
            self.store.objects[self.bucket][self.key] = Object(copied.data)
            self.xml(f"<CopyObjectResult><ETag>{escape(copied.etag)}</ETag></CopyObjectResult>")
        elif "uploadId" in self.query:
            part = Object(self.body)
            self.store.parts[self.query["uploadId"]][int(self.query["partNumber"])] = part.data
            self.answer(200, headers={"ETag": part.etag})
        else:
            made = self.store.objects[self.bucket][self.key] = Object(self.body)
            self.answer(200, headers={"ETag": made.etag})

    def post_object(self) -> None:
        if "uploads" in self.query:
            upload = str(len(self.store.parts) + 1)
            self.store.parts[upload] = {}
            names = f"<Bucket>{self.bucket}</Bucket><Key>{escape(self.key)}</Key>"
            kind = "InitiateMultipartUploadResult"
            self.xml(f"<{kind}>{names}<UploadId>{upload}</UploadId></{kind}>")
            return
        parts = self.store.parts[self.query["uploadId"]]
        made = Object(b"".join(parts[number] for number in sorted(parts)))
        self.store.objects[self.bucket][self.key] = made
        kind = "CompleteMultipartUploadResult"
        self.xml(f"<{kind}><Key>{escape(self.key)}</Key><ETag>{escape(made.etag)}</ETag></{kind}>")

    def delete_object(self) -> None:
        if "uploadId" not in self.query:
            self.store.objects[self.bucket].pop(self.key, None)
        self.answer(204)

    # --- Answers ----------------------------------------------------------------------------------

    def error(self, status: int, code: str = "") -> None:
        code = code or CODES[status]
        self.xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>", status)

    def xml(self, text: str, status: int = 200) -> None:
        head = '<?xml version="1.0" encoding="UTF-8"?>'
        self.answer(status, (head + text).encode(), {"Content-Type": "application/xml"})

    def answer(self, status: int, data: bytes = b"", headers: dict[str, Any] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Says nothing: whoever asked has gone."""


@contextmanager
def serving() -> Iterator[Store]:
    """A store, as long as the block runs."""
    store, before = Store(), dict(os.environ)
    os.environ.update(AWS_ACCESS_KEY_ID=KEY, AWS_SECRET_ACCESS_KEY=SECRET)
    handler = type("Handler", (S3,), {"store": store})
    with _Server(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        store.address = f"127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield store
        finally:
            store.goes_on.set()
            server.shutdown()
            os.environ.clear()
            os.environ.update(before)
