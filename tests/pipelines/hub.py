"""A local server with the file routes of the Hugging Face Hub.

    python hub.py DIRECTORY [PORT]

serves the files in a directory as the dataset `owner/name`, and prints its address. It accepts
commits.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPO = "/api/datasets/owner/name"


class Hub(BaseHTTPRequestHandler):
    """Answers from the files in `root`."""

    root: Path
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as in `s3`

    def do_GET(self) -> None:
        place = unquote(urlsplit(self.path).path)
        if place in (REPO, f"{REPO}/revision/main"):
            self.answer({"_id": "1", "id": "owner/name", "sha": COMMIT, "private": False})
        elif found := re.fullmatch(rf"{REPO}/tree/[^/]+/?(.*)", place):
            folder = self.root / found[1]
            if folder.is_dir():
                deep = "recursive=True" in self.path or "recursive=true" in self.path
                below = sorted(folder.rglob("*") if deep else folder.iterdir())
                self.answer([self.entry(path) for path in below])
            else:
                self.missing()
        elif found := re.fullmatch(r"/datasets/owner/name/resolve/[^/]+/(.+)", place):
            self.file(self.root / found[1])
        else:
            self.missing()

    do_HEAD = do_GET  # noqa: N815

    def do_POST(self) -> None:
        body, place = self.body().decode(), urlsplit(self.path).path
        if place == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif place.startswith(f"{REPO}/preupload/"):
            self.answer({"files": [self.upload(file) for file in json.loads(body)["files"]]})
        elif place.startswith(f"{REPO}/commit/"):
            self.commit([json.loads(line) for line in body.splitlines()])
        else:
            paths = json.loads(body)["paths"] if body.startswith("{") else parse_qs(body)["paths"]
            there = (self.root / path for path in paths)
            self.answer([self.entry(path) for path in there if path.exists()])

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def upload(self, file: dict[str, Any]) -> dict[str, Any]:
        """Ask for a file in the commit, not by Xet."""
        return {"path": file["path"], "uploadMode": "regular", "shouldIgnore": False}

    def commit(self, lines: list[dict[str, Any]]) -> None:
        """Does what a commit says, its header first."""
        for line in lines[1:]:
            kind, value = line["key"], line["value"]
            path = self.root / value["path"]
            if kind in ("deletedFile", "deletedFolder"):
                shutil.rmtree(path) if path.is_dir() else path.unlink()
                self.remove_empty(path.parent)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(base64.b64decode(value["content"]))
        url = f"http://{self.headers['Host']}/datasets/owner/name/commit/{COMMIT}"
        self.answer({"success": True, "commitOid": COMMIT, "commitUrl": url, "hookOutput": ""})

    def remove_empty(self, directory: Path) -> None:
        """Git has no empty directories."""
        while directory != self.root and not any(directory.iterdir()):
            directory.rmdir()
            directory = directory.parent

    def entry(self, path: Path) -> dict[str, Any]:
        name = path.relative_to(self.root).as_posix()
        if path.is_dir():
            return {"type": "directory", "path": name, "oid": "0" * 40}
        return {"type": "file", "path": name, "oid": "0" * 40, "size": path.stat().st_size}

    def file(self, path: Path) -> None:
        if not path.is_file():
            self.missing()
            return
        data, status = path.read_bytes(), 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked:
            data, status = data[int(asked[1]) : int(asked[2]) + 1], 206
        self.send(status, data, "application/octet-stream")

    def answer(self, value: object) -> None:
        self.send(200, json.dumps(value).encode(), "application/json")

    def missing(self) -> None:
        self.send(404, b'{"error": "Entry not found"}', "application/json")

    def send(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("X-Repo-Commit", COMMIT)
        if status == 404:
            self.send_header("X-Error-Code", "EntryNotFound")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Says nothing."""


if __name__ == "__main__":
    Hub.root = Path(sys.argv[1])
    port = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    server = ThreadingHTTPServer(("127.0.0.1", port), Hub)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
