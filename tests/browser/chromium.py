"""Headless Chromium by Playwright, from an existing installation; none is downloaded."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextmanager
def browser() -> Iterator[Browser]:
    """Return the browser in the variable CHROMIUM, or an installed one."""
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    assert program, "needs Chromium; install it, or name its program in the variable CHROMIUM"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program)
        yield opened
        opened.close()


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A server of a folder, on this machine alone: its address, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    handler = partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
