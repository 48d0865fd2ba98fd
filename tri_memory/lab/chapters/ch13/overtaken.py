"""Two writers that a forgetting overtakes: a summary that takes long, and a job that waits in a queue."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from tri_memory import ChatTurn, InMemoryEpisodicStore, InMemoryPreferenceStore, InMemorySessionStore
from tri_memory.embedding.hashing import HashingEmbedder
from tri_memory.entity.records import Forgotten
from tri_memory.episodic.archive import archive
from tri_memory.privacy.forget import Stores, forget_user
from tri_memory.privacy.guarded import guarded
from tri_memory.privacy.jobs import Jobs
from tri_memory.privacy.tombstones import InMemoryTombstones

USER, KEY = "zh-shop-01", "zh-shop-01/s1"
SAID = ChatTurn("user", "ZB-2207，我对芝麻过敏。")
SUMMARY = "林晓蓓，ZB-2207。对芝麻过敏。"


@dataclass(frozen=True)
class Overtaken:
    """What happened, in order; `verified` as the receipt said, `back` entries that stand there in the end."""

    steps: tuple[str, ...]
    verified: bool
    back: int


async def slow_summary(*, tombstones: InMemoryTombstones | None) -> Overtaken:
    """A session is being archived; while the model writes its summary, the user is forgotten."""
    begun, go_on = asyncio.Event(), asyncio.Event()
    sessions, episodes, embedder = InMemorySessionStore(), InMemoryEpisodicStore(), HashingEmbedder()
    stores = Stores(sessions=sessions, episodes=episodes, dimensions=embedder.dimensions)
    steps = ["a session is read, and its summary begins"]

    async def model(turns: object) -> str:
        begun.set()
        await go_on.wait()
        return SUMMARY

    safe: list[Any] = [sessions, episodes]
    if tombstones is not None:
        safe = [guarded(store, tombstones) for store in safe]
    await safe[0].append(KEY, SAID)
    given = {"sessions": safe[0], "episodes": safe[1], "embedder": embedder, "summarizer": model}
    saving = asyncio.create_task(archive(KEY, user_id=USER, **given))
    await asyncio.wait_for(begun.wait(), 10)
    receipt = await forget_user(USER, stores=stores, tombstones=tombstones, canaries=["ZB-2207"])
    steps.append(f"forget: {receipt.erased} erased, {sum(line.left or 0 for line in receipt.lines)} found")
    go_on.set()
    steps.append(f"the summary is ready: {await _ended(saving)}")
    back = await stores.all()[1].find(USER, "ZB-2207") or 0
    return Overtaken((*steps, f"a hunt finds {back}"), receipt.ok, back)


async def queued_job(*, judged: bool) -> Overtaken:
    """A consumer has taken a job from its queue when the user is forgotten, and then it writes. `judged`: the
    forgetting is told of the registry in which the job announced itself."""
    taken, go_on = asyncio.Event(), asyncio.Event()
    registry, preferences = InMemoryTombstones(), InMemoryPreferenceStore()
    jobs, writer = Jobs(registry), guarded(preferences, registry)

    async def work(text: str) -> None:
        taken.set()
        await go_on.wait()
        await writer.set(USER, "allergy", text)

    await preferences.set(USER, "contact", "发消息")
    jobs.put(USER, "对芝麻过敏", work)
    steps = ["a job waits in the queue, and a consumer takes it"]
    running = asyncio.create_task(jobs.run())
    await asyncio.wait_for(taken.wait(), 10)
    told = registry if judged else None
    forgetting = asyncio.create_task(forget_user(USER, stores=Stores(preferences=preferences), tombstones=told))
    await asyncio.wait({forgetting}, timeout=0.2)
    done = "has ended" if forgetting.done() else "waits"
    steps.append(
        f"forget {done}: {len(await preferences.all(USER))} entries left, {await registry.under_way(USER)} job under "
        f"way, a new write is {await _new_write(registry)}"
    )
    go_on.set()
    receipt = await asyncio.wait_for(forgetting, 10)
    steps.append(f"the job goes on: {await _ended(running)}")
    found = sum(line.left or 0 for line in receipt.lines)
    steps.append(f"the receipt: {receipt.erased} erased, {found} found")
    back = len(await preferences.all(USER))
    return Overtaken((*steps, f"a hunt finds {back}"), receipt.ok, back)


async def _new_write(registry: InMemoryTombstones) -> str:
    try:
        await registry.end(await registry.begin(USER))
    except Forgotten:
        return "refused"
    return "let in"


async def _ended(task: asyncio.Task[Any]) -> str:
    try:
        done = await asyncio.wait_for(task, 10)
    except Forgotten as refused:
        return f"refused ({refused})"
    return "dropped" if done is False else "stored"
