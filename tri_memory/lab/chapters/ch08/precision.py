"""Two bytes a number against four: what a row weighs in the server, and what recall loses (claim C05)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import psycopg
from numpy.typing import NDArray
from pgvector import HalfVector, Vector

from tri_memory.lab.chapters.ch08.people import People
from tri_memory.lab.chapters.ch08.plain import connect
from tri_memory.lab.claims import Outcome

K = 10
KINDS = {"single": ("vector", Vector), "half": ("halfvec", HalfVector)}


def compare(url: str, people: People, seeds: Sequence[int], queries: int = 12) -> pd.DataFrame:
    """A row a kind and seed: bytes of an embedding and of a row, recall@10 against float64, the largest error of a
    score. Compared exactly, over all rows, without any index, so that only the precision differs.
    """
    found = []
    with connect(url) as connection:
        for name, (kind, make) in KINDS.items():
            weight = _fill(connection, kind, make, people.vectors)
            for seed in seeds:
                recall, error = _against_float64(connection, kind, make, people, seed, queries)
                found.append((name, seed, *weight, recall, error))
    return pd.DataFrame(found, columns=["kind", "seed", "bytes", "row_bytes", "recall", "error"])


def _fill(connection: psycopg.Connection, kind: str, make: type, vectors: NDArray[np.float32]) -> tuple[int, float]:
    """A table of this connection alone, gone with it. Bytes of one embedding; bytes of the table, a row."""
    connection.execute(f"CREATE TEMP TABLE precise_{kind} (row int, embedding {kind}({vectors.shape[1]}))")
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY precise_{kind} FROM STDIN (FORMAT BINARY)") as rows,
    ):
        rows.set_types(["int4", kind])
        for i, vector in enumerate(vectors):
            rows.write_row((i, make(vector)))
    weight = connection.execute(
        f"SELECT max(pg_column_size(embedding)), pg_table_size('precise_{kind}')::float / count(*) FROM precise_{kind}"
    ).fetchone()
    assert weight is not None
    return weight[0], weight[1]


def _against_float64(
    connection: psycopg.Connection, kind: str, make: type, people: People, seed: int, queries: int
) -> tuple[float, float]:
    statement = f"SELECT row, 1 - (embedding <=> %s) FROM precise_{kind} ORDER BY embedding <=> %s LIMIT {K}"
    rows = people.vectors.astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    random = np.random.default_rng(seed)
    recalls, error = [], 0.0
    every = np.concatenate(list(people.asked.values()))
    for query in every[random.choice(len(every), queries, replace=False)]:
        wide = query.astype(np.float64)
        scores = rows @ (wide / np.linalg.norm(wide))
        best = set(np.argsort(-scores, kind="stable")[:K].tolist())
        found = connection.execute(statement, [make(query), make(query)]).fetchall()
        recalls.append(len(best & {row for row, _ in found}) / K)
        error = max(error, *(abs(score - scores[row]) for row, score in found))
    return float(np.mean(recalls)), error


def verdict(measured: pd.DataFrame) -> Outcome:
    """It holds where half precision misses less than one row in two hundred that single precision finds."""
    recall = measured.groupby("kind").recall.mean()
    return "holds" if recall["single"] - recall["half"] < 0.005 else "fails"


def sentence(measured: pd.DataFrame) -> str:
    """What `compare` found about claim C05."""
    by = measured.groupby("kind")
    low, high, row = by.recall.min(), by.recall.max(), by.row_bytes.first()
    return (
        f"recall@{K} against float64 is {low['half']:.3f} to {high['half']:.3f} with half precision and "
        f"{low['single']:.3f} to {high['single']:.3f} with single, over {measured.seed.nunique()} seeds; a row takes "
        f"{row['half']:,.0f} bytes instead of {row['single']:,.0f}"
    )
