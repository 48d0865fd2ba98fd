"""Start a child process for one errand, and wait for it, with a limit."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

PATIENCE_S = 30.0


async def remember(session_id: str, url: str | None, prefix: str) -> str:
    """A new process stores a visit from the kit's data and ends. `url` None: in its own memory. Returns its report."""
    return await errand({"do": "remember", "session_id": session_id, "url": url, "prefix": prefix})


async def ask(session_id: str, url: str | None, prefix: str) -> str:
    """A new process says what it finds of that session. Returns its report."""
    return await errand({"do": "ask", "session_id": session_id, "url": url, "prefix": prefix})


async def errand(request: dict[str, Any]) -> str:
    """What the child printed. TimeoutError or RuntimeError, saying what it was to do, where it did not."""
    return await asyncio.to_thread(_errand, request)


def _errand(request: dict[str, Any]) -> str:
    argv = [sys.executable, "-m", "tri_memory.lab.chapters.ch05.process"]
    what = f"the process that was to {request['do']}"
    try:
        done = subprocess.run(
            argv,
            input=json.dumps(request),
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{what} had not ended after {PATIENCE_S:.0f} s, and was killed") from None
    if done.returncode:
        raise RuntimeError(f"{what} failed: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout.rstrip("\n")
