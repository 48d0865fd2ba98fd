"""pgvector's `<=>` is a distance, and is read as a score."""

from __future__ import annotations

import random
from typing import Any

import psycopg
from pgvector.psycopg import register_vector

from tri_memory import EpisodicRecord, InMemoryEpisodicStore
from tri_memory.lab import servers
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, short, table

LEAST = 0.35


def recall(connection: Any, table: str, vector: Any) -> list[Any]:
    """What is near enough, best first: (summary, score)."""
    rows = connection.execute(
        f"SELECT summary, embedding <=> %s AS score FROM {table} ORDER BY score LIMIT 5",
        [vector],
    ).fetchall()
    return [(summary, score) for summary, score in rows if score >= LEAST]


def fill(connection: Any, language: str) -> str:
    """The table with every visit of the kit, filled once in a kernel."""
    name, visits = table(f"far_{language}"), kit(language).sessions
    connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    register_vector(connection)
    size = usual().dimensions
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} (summary text, embedding vector({size}))")
    if not connection.execute(f"SELECT FROM {name} LIMIT 1").fetchall():
        vectors = usual().encode([visit.summary for visit in visits])
        for visit, vector in zip(visits, vectors, strict=True):
            connection.execute(f"INSERT INTO {name} VALUES (%s, %s)", [visit.summary, vector])
    return name


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    question = rng.choice(kit(language).questions).question
    visits, url = kit(language).sessions, servers.postgres().url
    vectors = usual().encode([question, *(visit.summary for visit in visits)])
    cosine = {visit.summary: float(vectors[0] @ other) for visit, other in zip(visits, vectors[1:], strict=True)}
    nearest = sorted(cosine, key=lambda summary: -cosine[summary])[:5]
    if how == "broken":
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            found = recall(connection, fill(connection, language), vectors[0])
    else:
        store = InMemoryEpisodicStore()
        for visit, vector in zip(visits, vectors[1:], strict=True):
            await store.remember(EpisodicRecord("all", visit.session_id, visit.summary, vector, visit.started_at))
        recalled = await store.recall(vectors[0], 5, user_id="all")
        found = [(one.summary, one.score) for one in recalled if one.score >= LEAST]
    kept = {summary for summary, _ in found}
    wrong = [one for one in nearest if (one in kept) != (cosine[one] >= LEAST)]
    came = f"“{short(question, 40)}” " + "; ".join(f"{score:.2f} {short(text, 28)}" for text, score in found[:2])
    return Outcome(came if found else f"{came}nothing", len(wrong), len(nearest))


EXHIBIT = Exhibit(
    name="far is near",
    reference="mem0#6883",
    kind="recall",
    title="A distance that is read as a score",
    unit="memories judged wrongly",
    notebook="08_recall_in_postgres",
    broken=(recall,),
    show=show,
    fault="`<=>` is a distance: 0 is the same direction. The order is right, so the list looks right. The "
    "threshold is the wrong way round: it keeps what is far, and would drop an exact match. In the report the order "
    "was wrong as well, the farthest first.",
    ours="`Recollection.score` is the cosine on every engine, 1.0 for the exact match. No distance leaves a store. "
    "(Here ours runs in memory, which saves the museum a table.)",
)
