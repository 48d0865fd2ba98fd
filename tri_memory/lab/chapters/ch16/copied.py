"""Old messages are taken out of a copy."""

from __future__ import annotations

import random
from typing import Any

import redis

from tri_memory import ChatTurn, CountPolicy, RedisSessionStore
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, person, prefix

MOST = 20


class History:
    def __init__(self, client: Any, key: str) -> None:
        self.client, self.key = client, key

    @property
    def messages(self) -> list[Any]:
        return [ChatTurn.from_json(text) for text in self.client.lrange(self.key, 0, -1)]

    def add(self, turn: ChatTurn) -> None:
        self.client.rpush(self.key, turn.to_json())
        if len(self.messages) > MOST:
            self.messages.pop(0)


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    said = kit(language).turns_of(person(language, rng))
    said = said[: rng.randrange(5, 36)]
    url, session = servers.redis().url, f"{rng.getrandbits(64):x}"
    store = RedisSessionStore.from_url(url, prefix=prefix(), policy=CountPolicy(MOST, MOST - 1))
    with redis.Redis.from_url(url, decode_responses=True, socket_timeout=5) as client:
        key = f"{prefix()}copy:{session}" if how == "broken" else f"{prefix()}{{{session}}}"
        history = History(client, key)
        for turn in said:
            if how == "broken":
                history.add(turn)
            else:
                await store.append(session, turn)
        length = int(client.llen(key))
        client.delete(key)
    await store.clear(session)
    await store.close()
    return Outcome(f"{len(said)} turns said; LLEN: {length}", max(0, length - MOST), length)


EXHIBIT = Exhibit(
    name="copied",
    reference="langchain#3072",
    kind="Redis",
    title="A list that only seems shorter",
    unit="turns too many",
    notebook="05_sessions_in_redis",
    broken=(History,),
    show=show,
    fault="`messages` reads the list and gives a new one at each call. `pop` shortens that copy, and Redis "
    "keeps every message for ever. Nothing raises, and the prompt grows until it no longer fits.",
    ours="The store removes in Redis itself, by a script, and LLEN says so.",
)
