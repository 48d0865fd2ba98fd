"""One user's sessions, found by a pattern that the user's name is a part of."""

from __future__ import annotations

import random
from typing import Any
from urllib.parse import quote

import redis

from tri_memory import ChatTurn, RedisSessionStore
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, prefix
from tri_memory.privacy.guarded import owner_of

PEOPLE = {
    "en": (
        "ann",
        "ann:work",
        "bob",
        "bo?",
        "j.doe@shop.com",
        "[vip] j",
        "ann-marie",
        "*sam*",
        "sam",
        "x",
        "kim",
        "lee",
    ),
    "zh": ("小林", "小林:公司", "王芳", "王?", "li@dian.cn", "[会员]李", "小林林", "*安*", "小安安", "陈", "李", "周"),
}


def clear_user(client: Any, begin: str, user: str) -> int:
    """Delete all sessions of a user; their keys are begin + user + ":" + session."""
    gone = 0
    for key in client.scan_iter(match=f"{begin}{user}:*"):
        gone += client.delete(key)
    return gone


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    pair, others = PEOPLE[language][:2], PEOPLE[language][2:]  # the second begins like the first
    users = [*pair, *rng.sample(others, 3)]
    leaver, url, room = rng.choice(users), servers.redis().url, f"{prefix()}{rng.getrandbits(64):x}:"
    store = RedisSessionStore.from_url(url, prefix=room)
    with redis.Redis.from_url(url, decode_responses=True, socket_timeout=5) as client:
        for user in users:
            client.rpush(f"{room}{user}:s1", "hello")
            await store.append(f"{quote(user, safe='')}/s1", ChatTurn("user", "hello"))
        if how == "broken":
            clear_user(client, room, leaver)
            left = [user for user in users if client.exists(f"{room}{user}:s1")]
        else:
            for row in await store.list_sessions():
                if owner_of(row.session_id) == leaver:
                    await store.clear(row.session_id)
            left = [owner_of(row.session_id) or "" for row in await store.list_sessions()]
        for session in await store.list_sessions():
            await store.clear(session.session_id)
        client.delete(*(f"{room}{user}:s1" for user in users), f"{room}index")
    await store.close()
    wrong = {user for user in users if user != leaver} ^ set(left)
    came = f"clear {leaver!r}; still there: {', '.join(sorted(left))}"
    return Outcome(came, len(wrong), len(users))


EXHIBIT = Exhibit(
    name="globbed",
    reference="langgraph-redis#197",
    kind="Redis",
    title="A name that is a pattern",
    unit="users wrong",
    notebook="05_sessions_in_redis",
    broken=(clear_user,),
    show=show,
    fault="`match` is a glob. In a name, *, ? and [ are wildcards: one user's clearing reaches others, or not "
    "even their own. Without any sign of that kind, `ann:*` still finds the sessions of `ann:work`.",
    ours="An id is a literal part of a key, escaped; who owns a session is read from the id and compared as a whole.",
)
