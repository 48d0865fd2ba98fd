"""A real JupyterLab with a real Chromium in front of it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import needs
from tri_memory.lab import workbook

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass
class Lab:
    """A running server."""

    url: str
    token: str

    def wait_for_idle_kernel(self, notebook: str, *, cells_run: bool, limit_s: float = 180) -> None:
        """Until the notebook's kernel is idle, and stays so for a second; with `cells_run` it has to be busy first."""
        end, seen_busy, idle_since = time.monotonic() + limit_s, not cells_run, None
        while time.monotonic() < end:
            state = self._kernel_state(notebook)
            seen_busy = seen_busy or state == "busy"
            idle_since = (idle_since or time.monotonic()) if state == "idle" and seen_busy else None
            if idle_since and time.monotonic() - idle_since > 1:
                return
            time.sleep(0.1)
        raise TimeoutError(f"the kernel of {notebook} was not idle within {limit_s:g} s")

    def _kernel_state(self, notebook: str) -> str | None:
        request = urllib.request.Request(f"{self.url}api/sessions", headers={"Authorization": f"token {self.token}"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            states = [s["kernel"]["execution_state"] for s in json.load(answer) if notebook in s["path"]]
        return states[0] if states else None


@dataclass
class Watched:
    """A page, with what it complained about and whom it called."""

    page: Any
    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab as `make lab` serves it: a workbook with every notebook, on a free port of this machine."""
    root = tmp_path_factory.mktemp("lab")
    folder = workbook.prepare(root)
    token = secrets.token_hex(16)
    home = {
        "JUPYTER_CONFIG_DIR": str(root / "config"),
        "JUPYTER_RUNTIME_DIR": str(root / "runtime"),
        "JUPYTER_TOKEN": token,
    }
    options = ["--no-browser", "--port=0", f"--ServerApp.root_dir={folder}", "--allow-root", "--ServerApp.ip=127.0.0.1"]
    log = (root / "log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options], env=os.environ | home, stdout=log, stderr=subprocess.STDOUT
    )
    try:
        yield Lab(_address(root, server), token)
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()


def _address(root: Path, server: subprocess.Popen[bytes], limit_s: float = 90) -> str:
    """Where the server says it listens, once it answers there."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end and server.poll() is None:
        for info in (root / "runtime").glob("jpserver-*.json"):
            try:
                url = json.loads(info.read_text())["url"]
                urllib.request.urlopen(f"{url}api", timeout=5).close()
            except (OSError, ValueError):
                continue
            return url
        time.sleep(0.3)
    raise TimeoutError(f"JupyterLab did not answer within {limit_s:g} s:\n{(root / 'log').read_text()[-2_000:]}")


@pytest.fixture(scope="package")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless browser that never downloads anything. It is gone before other tests run: playwright's synchronous
    API keeps an event loop going in this thread, beside which no other can run."""
    playwright = needs("playwright.sync_api", "pip install -e '.[browser]'")
    if CHROMIUM is None:
        message = "no Chromium on this machine: apt-get install chromium (or your system's package)"
        pytest.fail(message) if os.environ.get("STRICT") == "1" else pytest.skip(message)
    with playwright.sync_playwright() as driver:
        profile = str(tmp_path_factory.mktemp("profile"))
        context = driver.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, headless=True, args=FLAGS
        )
        yield context
        context.close()


@pytest.fixture
def watched(chromium: Any) -> Iterator[Watched]:
    """A new page that records console errors and every request that leaves this machine."""
    page = chromium.new_page()
    page.set_viewport_size({"width": 1400, "height": 1000})
    seen = Watched(page)
    page.on("console", lambda message: seen.errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("request", lambda request: seen.strangers.append(request.url) if _is_strange(request.url) else None)
    yield seen
    page.close()


def _is_strange(url: str) -> bool:
    return not url.startswith(
        ("http://127.0.0.1", "ws://127.0.0.1", "http://localhost", "ws://localhost", "data:", "blob:")
    )
