"""A summary that is still being written when its user is forgotten."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tri_memory import ChatTurn, InMemoryEpisodicStore, InMemorySessionStore
from tri_memory.embedding.hashing import HashingEmbedder
from tri_memory.entity.records import Forgotten
from tri_memory.episodic.archive import archive
from tri_memory.lab.chapters.ch02.writers import Summarize
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, short
from tri_memory.privacy.forget import Stores, forget_user
from tri_memory.privacy.guarded import guarded
from tri_memory.privacy.tombstones import InMemoryTombstones

Memory = dict[str, list[str]]
SAVE_S = 0.008
WITHIN = 8  # saves: how long after the beginning of one the request may come


async def save(memory: Memory, user: str, turns: list[ChatTurn], model: Summarize) -> None:
    summary = await model(turns)
    memory.setdefault(user, []).append(summary)


async def forget(memory: Memory, user: str) -> bool:
    memory.pop(user, None)
    return user not in memory


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    visit = rng.choice(kit(language).sessions)
    after_s = rng.uniform(0, WITHIN * SAVE_S)  # the request comes some time after the save began

    async def model(turns: Sequence[ChatTurn]) -> str:
        await asyncio.sleep(SAVE_S)
        return visit.summary

    if how == "broken":
        memory: Memory = {}
        saving = asyncio.create_task(save(memory, visit.user_id, list(visit.turns), model))
        await asyncio.sleep(after_s)
        gone = await forget(memory, visit.user_id)
        await saving
        left = memory.get(visit.user_id, [])
    else:
        left, gone = await _ours(visit.user_id, visit.turns, model, after_s)
    told = "“gone”" if gone else "“not gone”"
    came = f"forget said {told}; afterwards there {'is: ' + short(left[0]) if left else 'is nothing'}"
    return Outcome(came, len(left), 1)


async def _ours(user: str, turns: Sequence[ChatTurn], model: Summarize, after_s: float) -> tuple[list[str], bool]:
    embedder, tombstones = HashingEmbedder(), InMemoryTombstones()
    sessions, episodes = InMemorySessionStore(), InMemoryEpisodicStore()
    behind, before = guarded(episodes, tombstones), guarded(sessions, tombstones)
    key = f"{user}/s1"
    for turn in turns:
        await before.append(key, turn)
    given: dict[str, Any] = {"sessions": before, "episodes": behind, "embedder": embedder, "summarizer": model}
    saving = asyncio.create_task(archive(key, user_id=user, **given))
    await asyncio.sleep(after_s)
    stores = Stores(sessions=sessions, episodes=episodes, dimensions=embedder.dimensions)
    receipt = await forget_user(user, stores=stores, tombstones=tombstones)
    with suppress(Forgotten):
        await saving
    found = await episodes.recall(embedder.encode(["?"])[0], 3, user_id=user)
    return [one.summary for one in found], receipt.ok


EXHIBIT = Exhibit(
    name="late save",
    reference="crewAI#7290",
    kind="privacy",
    title="Forgotten, and saved a moment later",
    unit="memories that came back",
    notebook="13_let_me_forget",
    broken=(save, forget),
    show=show,
    fault="`save` waits for its model. If `forget` comes meanwhile, it deletes, looks, finds nothing, and says "
    "so. Then the summary is ready, and is stored.",
    ours="A registry of the forgotten: a write that began before the request is waited for, undone or refused.",
    waits=True,
    set_by_hand=1 / WITHIN,
)
