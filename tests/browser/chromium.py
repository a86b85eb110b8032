"""Headless Chromium, driven by its DevTools protocol (JSON over a WebSocket)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60  # for an answer; a browser that takes longer hangs
CONSOLE = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")


class MissingBrowserError(Exception):
    """There is no Chromium."""


def program() -> str:
    """The browser's program: that of the variable CHROMIUM, or one that is installed."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise MissingBrowserError(
            "needs Chromium; install it (Debian: apt-get install chromium), or name its program in"
            " the variable CHROMIUM"
        )
    return found


@dataclass
class Tab:
    """A page in the browser. `console`: its messages; `requests`: the addresses that it requested;
    `dialogs`: texts of alerts."""

    socket: ClientConnection
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    _calls: int = 0

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the protocol. Events that come before its answer are kept."""
        self._calls += 1
        self.socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            answer = json.loads(self.socket.recv(SECONDS))
            if answer.get("id") == self._calls:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._keep(answer)

    def _keep(self, event: dict[str, Any]) -> None:
        name, parameters = event["method"], event["params"]
        if name in CONSOLE:
            self.console.append(json.dumps(parameters))
        elif name == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif name == "Page.javascriptDialogOpening":
            self.dialogs.append(parameters["message"])
            accept = {"id": 0, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}}
            self.socket.send(json.dumps(accept))

    def open(self, url: str, width: int = 1100, *, dark: bool = False, media: str = "") -> None:
        """Opens an address in a window of so many pixels, and waits until it is loaded."""
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.console.clear()
        self.requests.clear()
        self.call("Page.navigate", url=url)
        self.run(
            "new Promise(done => document.readyState === 'complete' ? done()"
            " : addEventListener('load', () => done()))"
        )
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def run(self, script: str) -> Any:
        """The value of an expression in the page; of a promise, its result."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def pdf(self) -> bytes:
        """The page as it is printed."""
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        return base64.b64decode(answer["data"])


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """A browser with one page, and with a new profile there."""
    command = [program(), "--headless", "--disable-gpu", "--remote-debugging-port=0"]
    command += [f"--user-data-dir={profile}", "--no-first-run", "--disable-extensions"]
    if os.geteuid() == 0:  # Chromium refuses its sandbox to root
        command.append("--no-sandbox")
    with subprocess.Popen([*command, "about:blank"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = next(line for line in process.stderr if "DevTools listening on" in line)
            drained = threading.Thread(target=process.stderr.read, daemon=True)
            drained.start()
            port = address.split(":")[-1].split("/")[0]
            with urlopen(f"http://127.0.0.1:{port}/json", timeout=SECONDS) as answer:
                targets = json.load(answer)
            (page,) = [target for target in targets if target["type"] == "page"]
            with connect(page["webSocketDebuggerUrl"], max_size=None) as socket:
                yield Tab(socket)
        finally:
            process.terminate()


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """A server of a folder, on this machine alone: its address, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def log_message(self, *_: Any) -> None:
            asked.append(self.path)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
