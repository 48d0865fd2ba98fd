"""Chapter 05: key names that share a slot and never collide, a fork on every engine, an index cleaned without harm."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from redis.crc import key_slot

from tri_memory.blocking_calls import run
from tri_memory.contracts import ChatTurn, SessionStore
from tri_memory.lab import servers
from tri_memory.lab.exercises.ch05_index import awaited, hold_against_a_late_append
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test
from tri_memory.session.compression import CountPolicy
from tri_memory.summary import summary_turn

_PIECES = ("a", "b", "{", "}", "%", ":", "*", " ", "meta", "lock", "7B", "7D", "25", "index", "é", "会话", "😀")
_ALWAYS = (
    "maeve",
    "}",
    "{}",
    "a{",
    "a%7B",
    "a}",
    "a%7D",
    "a%257B",
    "a",
    "a:meta",
    "a:lock",
    "index",
    "{a",
    "*",
    "会话",
    "😀",
)


@exercise(
    "05-1",
    "Keys that share a slot and never collide",
    dots=1,
    minutes=10,
    hints=(
        "Redis hashes what stands between the first { and the first } behind it. All three keys need the same text "
        "there, and the text has to be the session's own.",
        "An id may have braces itself. '}' gives 'sess:{}}', and empty braces don't count. So no brace of the id may "
        "get into the key. Dropping them is no way out: 'a{' and 'a' are two sessions.",
        "Write % as %25, { as %7B, } as %7D, in this order (why is % the first?), then f'sess:{{{name}}}' and the same "
        "with ':meta' and ':lock'.",
    ),
)
def key_names(keys: Callable[[str], tuple[str, str, str]], rng: random.Random) -> None:
    drawn = ["".join(rng.choices(_PIECES, k=rng.randrange(1, 6))) for _ in range(200)]
    ids = [text for text in dict.fromkeys([*_ALWAYS, *drawn]) if text.strip()]
    owner: dict[str, str] = {}
    slots = set()
    for session_id in ids:
        names = keys(session_id)
        if not (isinstance(names, tuple | list) and len(names) == 3 and all(isinstance(name, str) for name in names)):
            raise Wrong(f"It should return three texts; for {session_id!r} it returned {names!r}.")
        _one_slot(session_id, names)
        slots.add(key_slot(names[0].encode()))
        for name in names:
            if owner.setdefault(name, session_id) != session_id:
                raise Wrong(
                    f"Two sessions in one key: {owner[name]!r} and {session_id!r} both have {name!r}. "
                    "One would read the other's conversation."
                )
        if len(set(names)) < 3:
            raise Wrong(f"Turns, meta and lock need a key each; {session_id!r} has {names!r}.")
        if tuple(keys(session_id)) != tuple(names):
            raise Wrong(f"Asked twice, {session_id!r} gets two answers. Nobody would find the session again.")
    if len(slots) < len(ids) / 2:
        raise Wrong(
            f"{len(ids)} sessions lie in {len(slots)} slot(s): one node of the cluster would have all the work. "
            "What stands in the braces has to differ from session to session."
        )


def _one_slot(session_id: str, names: Any) -> None:
    slots = sorted({key_slot(name.encode()) for name in names})
    if len(slots) == 1:
        return
    if not all("{" in name and "}" in name for name in names):
        raise Wrong(
            f"The three keys of {session_id!r} lie in slots {slots}. A script may not touch them together. "
            "Put the id into braces: only what they enclose is hashed."
        )
    raise Wrong(
        f"Braces are there, and the keys of {session_id!r} still lie in slots {slots}: {names[0]!r}. "
        "The id brought braces of its own, and the first pair counts, if there is something in it."
    )


@exercise(
    "05-2",
    "Fork a session, on every engine",
    dots=2,
    minutes=15,
    hints=(
        "get_window gives what a prompt needs. A copy needs everything that is kept: get_history.",
        "Look at the target first, and raise before anything is written. Then append one turn after the other: each "
        "await is done before the next begins, so the order is yours and not the network's.",
        "if await store.get_history(target): raise ValueError(…); turns = await store.get_history(source); "
        "for turn in turns: await store.append(target, turn); return len(turns).",
    ),
)
def fork(function: Callable[[SessionStore, str, str], Any], rng: random.Random) -> None:
    run(_on_every_engine(function, rng.randrange(25, 38)))


async def _on_every_engine(function: Callable[[SessionStore, str, str], Any], length: int) -> None:
    stores = servers.every_session_store(policy=CountPolicy(compress_after=40, keep_recent=20))
    try:
        for engine, store in stores.items():
            try:
                await _forks(function, store, length)
            except Wrong as wrong:
                raise Wrong(f"On the engine {engine!r}: {wrong}") from None
    finally:
        for store in stores.values():
            await _left_clean(store)


async def _left_clean(store: SessionStore) -> None:
    for row in await store.list_sessions():
        await store.clear(row.session_id)
    if hasattr(store, "close"):
        await store.close()


async def _forks(function: Callable[[SessionStore, str, str], Any], store: SessionStore, length: int) -> None:
    turns = [summary_turn("Likes tea."), *(ChatTurn("user", f"turn {i}") for i in range(length))]
    for turn in turns:
        await store.append("source", turn)
    copied = await awaited(function, store, "source", "what if")
    found = await store.get_history("what if")
    if await store.get_history("source") != turns:
        raise Wrong("the source is no longer what it was. A fork leaves it alone.")
    if len(found) < len(turns):
        raise Wrong(f"{len(turns)} turns are kept, {len(found)} arrived in the fork. A window is not the history.")
    if found != turns:
        raise Wrong("all turns are there, in another order. Two appends at a time, and the network says who is first.")
    if copied != len(turns):
        raise Wrong(f"it should return how many turns it copied, {len(turns)}; it returned {copied!r}.")
    await store.append("what if", ChatTurn("user", "only here"))
    before = await store.get_history("what if")
    try:
        await awaited(function, store, "source", "what if")
    except ValueError:
        pass
    else:
        raise Wrong("'what if' holds a conversation already, and no ValueError says so.")
    if await store.get_history("what if") != before:
        raise Wrong("it raised ValueError, but only after it had changed the target.")
    if await awaited(function, store, "nobody", "empty") != 0 or await store.get_history("empty"):
        raise Wrong("a source that doesn't exist has no turns: the answer is 0, and nothing is written.")


@exercise(
    "05-3",
    "Clean the index without harming anybody",
    dots=3,
    minutes=20,
    hints=(
        "Between your look and your ZREM somebody may write to the session, and its entry gets a new score. "
        "The question and the removal have to be one step.",
        "One step is a script: client.eval(text, 1, index, *arguments). In Lua, "
        "redis.call('ZSCORE', KEYS[1], member) gives the score as text, or false.",
        "Loop over ARGV in pairs: if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]) or -1) == tonumber(ARGV[i + 1]) "
        "then gone = gone + redis.call('ZREM', KEYS[1], ARGV[i]) end. Texts such as '17' and '17.0' would differ.",
    ),
)
def clean_index(drop: Callable[[Any, str, list[tuple[str, float]]], Any], rng: random.Random) -> None:
    run(hold_against_a_late_append(drop, servers.redis().url, rng))


self_test(
    "05",
    Question(
        "05-q1",
        "Two processes fold by LRANGE, DEL, RPUSH. You put DEL and RPUSH into MULTI … EXEC. What changes?",
        (
            Option(
                "Nothing is lost any more.", "What was pushed since LRANGE is still deleted. Look at the story above."
            ),
            Option(
                "Nobody sees an empty list any more, and turns are lost as before.",
                "The gap between DEL and RPUSH is closed. The gap between reading and DEL is the long one.",
                right=True,
            ),
            Option("Redis refuses it: two commands on one key.", "MULTI takes any commands, on a key or on several."),
        ),
    ),
    Question(
        "05-q2",
        "A user reads her conversation every hour for two days and writes nothing. The TTL is 24 h. What does she see?",
        (
            Option("Everything: she is active.", "To the store only an append is activity."),
            Option(
                "An empty session after 24 h.",
                "Reading renews nothing. If you want another rule, it is a write, with a write's price.",
                right=True,
            ),
            Option("The last 20 turns.", "A TTL ends a key as a whole; only a fold leaves a part."),
        ),
    ),
    Question(
        "05-q3",
        "Why may SCAN with COUNT 100,000 be no better than KEYS?",
        (
            Option(
                "It returns the same keys twice.", "It may, and so it may with a small COUNT. That isn't the point."
            ),
            Option(
                "Between two batches the others get their turn, and such a batch is nearly everything.",
                "COUNT says how much work one call does, and the others wait for as long as that takes.",
                right=True,
            ),
            Option("COUNT limits the reply, not the work.", "It limits the work: so many keys are looked at per call."),
        ),
    ),
    Question(
        "05-q4",
        "The server was killed with kill -9 and no confirmed turn was lost. Why is that no promise for a power cut?",
        model_answer="The append-only file is written before the answer goes out, but into the system's cache. A "
        "killed process leaves that cache intact, a power cut does not. With appendfsync everysec, the default, about "
        "a second of confirmed turns may be gone then. appendfsync always waits for the disk, at every append.",
    ),
)
