"""Faults for real: processes and servers are killed with SIGKILL, and afterwards the turns are counted."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
from collections import Counter
from uuid import uuid4

import pytest

from tests.engines.servers import missing
from tri_memory import ChatTurn, CountPolicy, RedisSessionStore, engines
from tri_memory.engines.unavailable import Unavailable
from tri_memory.summary import is_summary

WRITERS, TURNS = 4, 1_000


def start(*arguments: object) -> subprocess.Popen[str]:
    """A writing process, which ends after two minutes at the latest."""
    writer = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.writer", *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )
    limit = threading.Timer(120, writer.kill)
    limit.daemon = True
    limit.start()
    return writer


@pytest.mark.parametrize("server", ["embedded_valkey", "container_redis"])
def test_a_writer_killed_between_summary_and_commit_loses_nothing_and_holds_up_nobody(server, request):
    url, prefix = request.getfixturevalue(server), f"{uuid4().hex}:"
    with start("stop_while_summarising", url, prefix, "s") as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "summarising 21\n"
        writer.kill()

    async def go_on() -> list[ChatTurn]:
        async with RedisSessionStore.from_url(
            url, prefix=prefix, policy=CountPolicy(40, 20), summarizer=lambda turns: f"{len(turns)} turns"
        ) as store:
            await store.append("s", ChatTurn("user", "turn 41"))
            history = await store.get_history("s")
            assert [turn.content for turn in history] == [f"turn {i}" for i in range(42)]
            await asyncio.sleep(1.2)  # the dead writer's lock runs out
            await store.append("s", ChatTurn("user", "turn 42"))
            return await store.get_history("s")

    history = asyncio.run(go_on())
    assert history[0].content == "[conversation summary] 23 turns"
    assert [turn.content for turn in history[1:]] == [f"turn {i}" for i in range(23, 43)]


@pytest.mark.parametrize("sessions", [["one for all"], ["s0", "s1"]])
def test_a_server_killed_amid_four_writing_processes_keeps_every_confirmed_turn_once(sessions):
    try:
        server = engines.redis("embedded", limit_s=60)
        server.start()
    except Unavailable as why:
        missing("embedded", why)
    prefix = f"{uuid4().hex}:"
    rng = random.Random(7)
    try:
        writers = [
            start("write", server.url, prefix, sessions[i % len(sessions)], f"w{i}", TURNS) for i in range(WRITERS)
        ]
        said: list[str] = []
        for kill in range(3):
            assert writers[kill].stdout is not None
            said += [writers[kill].stdout.readline() for _ in range(rng.randrange(50, 250))]
            server.kill()
            server.start()
        for writer in writers:
            assert writer.stdout is not None
            said += writer.stdout.readlines()  # not communicate(), which skips what readline has read ahead
            assert writer.wait(timeout=120) == 0
        stored = asyncio.run(everything(server.url, prefix, sessions))
    finally:
        server.stop()

    assert len(said) == WRITERS * TURNS
    confirmed = [line[2:].rstrip() for line in said if line.startswith("+")]
    unsure = {line[2:].rstrip() for line in said if line.startswith("?")}
    times = Counter(text for texts in stored.values() for text in texts)
    assert [text for text in confirmed if text not in times] == [], "confirmed and gone"
    assert [text for text, number in times.items() if number > 1] == [], "stored twice"
    assert set(times) - set(confirmed) <= unsure
    assert len(confirmed) > WRITERS * TURNS * 0.9, "the writers did not get over the restarts"
    for texts in stored.values():
        for name in {text.split()[0] for text in texts}:
            numbers = [int(text.split()[1]) for text in texts if text.startswith(f"{name} ")]
            assert numbers == sorted(numbers), "a writer's own order is lost"


async def everything(url: str, prefix: str, sessions: list[str]) -> dict[str, list[str]]:
    async with RedisSessionStore.from_url(url, prefix=prefix) as store:
        assert {row.session_id for row in await store.list_sessions()} == set(sessions)
        return {name: [turn.content for turn in await store.get_history(name)] for name in sessions}


@pytest.mark.parametrize("server", ["embedded_valkey", "container_redis"])
def test_processes_that_write_and_fold_one_session_lose_nothing(server, request):
    """Four processes, a summariser slower than its lock, and everything counted in the summaries."""
    url, prefix = request.getfixturevalue(server), f"{uuid4().hex}:"
    code = (
        "import asyncio, sys\n"
        "from tri_memory import ChatTurn, CountPolicy, RedisSessionStore\n"
        "from tri_memory.summary import is_summary, summary_text\n"
        "async def count(turns):\n"
        "    await asyncio.sleep(0.1)\n"
        "    return str(sum(int(summary_text(t)) if is_summary(t) else 1 for t in turns))\n"
        "async def go(url, prefix, name):\n"
        "    options = dict(prefix=prefix, policy=CountPolicy(40, 20), summarizer=count, lock_s=0.05)\n"
        "    async with RedisSessionStore.from_url(url, **options) as store:\n"
        "        for i in range(150):\n"
        "            await store.append('s', ChatTurn('user', f'{name} {i}'))\n"
        "asyncio.run(go(*sys.argv[1:]))\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, url, prefix, f"w{i}"]) for i in range(WRITERS)]
    assert [writer.wait(timeout=120) for writer in writers] == [0] * WRITERS

    async def read() -> list[ChatTurn]:
        async with RedisSessionStore.from_url(url, prefix=prefix) as store:
            return await store.get_history("s")

    history = asyncio.run(read())
    assert [i for i, turn in enumerate(history) if is_summary(turn)] == [0]
    folded = int(history[0].content.rpartition("] ")[2])
    kept = [turn.content for turn in history[1:]]
    assert folded + len(kept) == WRITERS * 150
    assert len(set(kept)) == len(kept)
