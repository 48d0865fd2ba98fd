"""What a service desk measures on the kit's conversations, and what remembering them costs on each engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import numpy as np
import pandas as pd
import psycopg
from psycopg import sql

from tri_memory import EpisodicRecord, InMemoryEpisodicStore, PgVectorEpisodicStore
from tri_memory.contracts import EpisodicStore
from tri_memory.episodic.pgvector_archive import archive_of
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch15.folder import own_folder
from tri_memory.lab.costs import bytes_in_memory, bytes_in_postgres, write_to_recallable
from tri_memory.lab.datasets import Dataset, load
from tri_memory.lab.service import handover_rate, repeat_question_rate, session_depth
from tri_memory.recall.calibration import Threshold

LAGS = 10  # memories written one by one
SURVEY = "group,score\n" + "".join(
    f"{group},{score}\n"
    for group, scores in (("without", "333424353433"), ("with", "434534443545"))
    for score in scores
)


def rates(chats: Mapping[str, Dataset], cosine: float) -> pd.DataFrame:
    """A line a chat; two questions count as the same from this cosine on."""
    threshold = Threshold(cosine, usual().name)
    rows = {
        name: {
            "turns a session": str(session_depth(dataset).mean),
            "asked again": str(repeat_question_rate(dataset, usual(), threshold).rate),
            "handed over": str(handover_rate(dataset).rate),
        }
        for name, dataset in chats.items()
    }
    return pd.DataFrame(rows).T


def answers() -> Path:
    """A survey of 24 made-up answers, as a file in the kernel's own folder."""
    path = own_folder() / "survey.csv"
    path.write_text(SURVEY, encoding="utf-8")
    return path


def records() -> list[EpisodicRecord]:
    """The kit's visits in English as an archive would keep them: the summary and its vector."""
    visits = load("en").sessions
    vectors = usual().encode([visit.summary for visit in visits])
    return [
        EpisodicRecord(visit.user_id, visit.session_id, visit.summary, vector, visit.started_at)
        for visit, vector in zip(visits, vectors, strict=True)
    ]


async def costs(url: str) -> pd.DataFrame:
    """A line an engine: lag in milliseconds and bytes a memory. The table in Postgres goes with this call."""
    kept = records()
    table = f"lesson_{uuid4().hex}"
    lines = [("memory", await _lag(InMemoryEpisodicStore(), kept), await bytes_in_memory(kept))]
    try:
        async with await PgVectorEpisodicStore.connect(url, usual().dimensions, table=table) as store:
            lag = await _lag(store, kept)
            for record in kept:
                await store.remember(record)
            lines.append(("PostgreSQL", lag, bytes_in_postgres(url, table)))
    finally:
        _drop(url, table)
    rows = [(name, *np.percentile(lag, [50, 95]), size) for name, lag, size in lines]
    return pd.DataFrame(rows, columns=["engine", "lag, median (ms)", "lag, 95th (ms)", "bytes a memory"]).set_index(
        "engine"
    )


async def _lag(store: EpisodicStore, kept: list[EpisodicRecord]) -> np.ndarray:
    return await write_to_recallable(store, np.array([record.embedding for record in kept[:LAGS]]))


def _drop(url: str, table: str) -> None:
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        for name in (table, archive_of(table)):
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(name)))
