"""What extraction keeps of the kit's conversations, in characters and on disk, and which answers go with the rest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any
from uuid import uuid4

import pandas as pd
import psycopg

from tri_memory.contracts import ChatTurn
from tri_memory.entity.extract import Entity, extract, saving
from tri_memory.entity.postgres import PostgresUserMemoryStore
from tri_memory.entity.structured import TYPE_OF
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch11.tables import drop
from tri_memory.lab.claims import Outcome

COPIES = 20  # of every person, so that a table has more than a page
_data = cache(datasets.load)


def turns() -> list[ChatTurn]:
    """Every turn of the kit, both languages."""
    return [turn for code in datasets.LANGUAGES for visit in _data(code).sessions for turn in visit.turns]


@cache
def entities_of(user: str) -> tuple[tuple[datasets.Session, Entity], ...]:
    """What each turn of this person's visits names."""
    return tuple((s, e) for s in _data(user[:2]).of(user) for turn in s.turns for e in extract(turn.content))


def answered() -> pd.DataFrame:
    """Per cent of the kit's answerable questions whose facts all stand in what is kept of that person, by kind."""
    rows = []
    for code in datasets.LANGUAGES:
        for each in _data(code).questions:
            if each.facts:
                kept = [entity.text.casefold() for _, entity in entities_of(each.user_id)]
                rows.append((each.kind, all(any(fact.casefold() in one for one in kept) for fact in each.facts)))
    table = pd.DataFrame(rows, columns=["kind", "kept"])
    found = table.groupby("kind").kept.agg(questions="count", answer_kept="sum")
    return found.sort_values("answer_kept", ascending=False)


def lost(most: int = 3) -> list[tuple[str, str]]:
    """Questions of the kit and their answers, of which nothing is kept: (question, answer), a kind each."""
    found: dict[str, tuple[str, str]] = {}
    for code in ("en", "zh"):
        for each in _data(code).questions:
            kept = [entity.text.casefold() for _, entity in entities_of(each.user_id)]
            gone = not any(fact.casefold() in one for fact in each.facts for one in kept)
            if each.facts and gone and each.kind in ("preference", "changed_fact", "assistant_said"):
                found.setdefault(f"{code} {each.kind}", (each.question, each.answer))
    return [found[key] for key in sorted(found)][:: max(1, len(found) // most)][:most]


def needed() -> dict[str, float]:
    """Three ways to say what part of the kit's text is needed later, each in per cent of its characters."""
    total = sum(len(turn.content) for turn in turns())
    facts = gold = 0
    for code in datasets.LANGUAGES:
        said = {visit.session_id: visit.turns for visit in _data(code).sessions}
        asked = _data(code).questions
        facts += sum(len(fact) for each in asked for fact in each.facts)
        places = {place for each in asked for place in each.gold_turns}
        gold += sum(len(said[session][i].content) for session, i in places)
    return {
        "ids and preferences, as extracted": 100 * saving(turns()).share,
        "the words that answer the kit's questions": 100 * facts / total,
        "the turns in which these words stand": 100 * gold / total,
    }


async def on_disk(url: str) -> dict[str, int]:
    """Bytes in Postgres, indexes included, of every turn as it was said and of what is extracted, twenty kits of each:
    `turns`, `records`. Tables of its own, gone at the end."""
    raw, table = (f"lesson_{uuid4().hex}" for _ in range(2))
    try:
        async with await PostgresUserMemoryStore.connect(url, table=table):
            with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
                connection.execute(
                    f"CREATE TABLE {raw} (session text, seq int, turn jsonb, PRIMARY KEY (session, seq))"
                )
                _copy(connection, f"{raw} (session, seq, turn)", _turn_rows())
                _copy(connection, f"{table} (user_id, memory_type, entity_id, content)", _record_rows())
                return {"turns": _size(connection, raw), "records": _size(connection, table)}
    finally:
        drop(url, raw)
        drop(url, table)


def _turn_rows() -> Iterator[tuple[Any, ...]]:
    for copy in range(COPIES):
        for code in datasets.LANGUAGES:
            for visit in _data(code).sessions:
                for seq, turn in enumerate(visit.turns):
                    yield f"{visit.session_id}-{copy}", seq, turn.to_json()


def _record_rows() -> Iterator[tuple[Any, ...]]:
    from tri_memory.entity.content import to_text

    for copy in range(COPIES):
        for user in (user for code in datasets.LANGUAGES for user in _data(code).users()):
            last: dict[tuple[str, str], dict[str, str]] = {}
            for visit, entity in entities_of(user):
                other = "preference" if entity.kind == "PREFERENCE" else "identity"
                kind: str = TYPE_OF.get(entity.kind) or other
                last[kind, entity.value] = {"session_id": visit.session_id, "text": entity.text}
            for (kind, value), content in last.items():
                yield f"{user}-{copy}", kind, value, to_text("content", content)


def _copy(connection: psycopg.Connection[Any], target: str, rows: Iterator[tuple[Any, ...]]) -> None:
    with connection.cursor() as cursor, cursor.copy(f"COPY {target} FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def _size(connection: psycopg.Connection[Any], table: str) -> int:
    row = connection.execute("SELECT pg_total_relation_size(%s::regclass)", [table]).fetchone()
    assert row is not None
    return int(row[0])


def sentence_of_c07(disk: dict[str, int]) -> str:
    parts = "; ".join(f"{name}: {share:.1f} %" for name, share in needed().items())
    found = answered()
    return (
        f"Of the characters, {parts}. On disk, {100 * (1 - disk['records'] / disk['turns']):.0f} % less. With what "
        f"is kept, {found.answer_kept.sum()} of the kit's {found.questions.sum()} answerable questions can be answered."
    )


def verdict_of_c07(disk: dict[str, int]) -> Outcome:
    """What is needed is 0.3 % by no count, and by how much less is stored, 92 %, within a few points or not."""
    if round(min(needed().values()), 1) > 0.3:
        return "fails"
    return "holds" if 0.90 <= 1 - disk["records"] / disk["turns"] <= 0.94 else "depends"


def volume(sessions: int = 2_000, each: int = 5, characters: int = 120) -> pd.DataFrame:
    """MB a day of that many turns by what a turn is stored as: 1 MB is a million bytes."""
    count = sessions * each
    forms = {
        "English text, 1 byte a character": characters,
        "Chinese text in UTF-8, 3 bytes a character": 3 * characters,
        "Chinese text and an embedding of 512 floats": 3 * characters + 4 * 512,
        "what 1.2 GB would leave to a turn": 1.2e9 / count,
    }
    rows = [(name, round(size), size * count / 1e6) for name, size in forms.items()]
    return pd.DataFrame(rows, columns=["a turn as", "bytes", "MB a day"]).set_index("a turn as")


def sentence_of_c08() -> str:
    """The arithmetic of C08."""
    rows = volume()
    mb = rows["MB a day"]
    return (
        f"{mb.iloc[0]:.1f} MB in English, {mb.iloc[1]:.1f} MB in Chinese, {mb.iloc[2]:.0f} MB with an embedding "
        f"a turn. For 1.2 GB a turn would have to be {rows.bytes.iloc[3]:,} bytes, or the sessions 2,000,000."
    )
