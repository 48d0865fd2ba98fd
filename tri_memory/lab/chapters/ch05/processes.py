"""Start a child process for one errand, and wait for it, with a limit."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

PATIENCE_S = 30.0


async def remember(session_ids: Sequence[str], url: str | None, prefix: str) -> str:
    """For each visit from the kit's data a new process that stores it and ends. `url` None: in its own memory.
    Returns a line a process."""
    return await _for_each(session_ids, {"do": "remember", "url": url, "prefix": prefix})


async def ask(session_ids: Sequence[str], url: str | None, prefix: str) -> str:
    """For each session a new process that says what it finds of it. Returns a line a process."""
    return await _for_each(session_ids, {"do": "ask", "url": url, "prefix": prefix})


async def _for_each(session_ids: Sequence[str], request: dict[str, Any]) -> str:
    errands = [errand(request | {"session_id": session_id}) for session_id in session_ids]
    return "\n".join(await asyncio.gather(*errands))


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
