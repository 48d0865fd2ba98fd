"""What a recall costs beside the least that numpy can do: one matrix product and one partition."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np

from benchmarks.timing import Row, paired
from tri_memory import EpisodicRecord, InMemoryEpisodicStore

DIMENSIONS, K = 512, 3


def rows() -> Iterator[Row]:
    for count in (10_000, 100_000):
        yield _beside_numpy(count)


def _beside_numpy(count: int) -> Row:
    rng = np.random.default_rng(5)
    matrix = rng.standard_normal((count, DIMENSIONS), dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    query = matrix[7] + 0.1 * matrix[9]
    query /= np.linalg.norm(query)
    store = InMemoryEpisodicStore()
    loop = asyncio.new_event_loop()

    async def fill() -> None:
        now = datetime(2026, 3, 1, tzinfo=UTC)
        for i, row in enumerate(matrix):
            await store.remember(EpisodicRecord("u", f"s{i}", "x", row, now))

    loop.run_until_complete(fill())

    def ours() -> object:
        return loop.run_until_complete(store.recall(query, K, user_id="u"))

    def bare() -> object:
        scores = matrix @ query
        best = np.argpartition(scores, -K)[-K:]
        return best[np.argsort(-scores[best])]

    row = paired(f"top-{K} of {count:,} x {DIMENSIONS}, memory", ours, "bare numpy", bare, rounds=41, goal=1.25)
    loop.close()
    return row
