"""What two processes lose in one list: one bad order step by step, and the count over many."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd
import redis

from tri_memory.lab.chapters.ch05 import processes
from tri_memory.lab.chapters.ch05.writers import TURNS, WRITERS, where


async def losses(
    url: str, prefix: str, seeds: Sequence[int], *, summary_s: float = 0.03, gap_s: float = 0.003
) -> pd.DataFrame:
    """One row a writer and seed: of 120 turns from two processes, how many are lost, how many stored twice, and how
    many summaries were written. `summary_s` and `gap_s` (mean time between two turns of a process) in seconds."""
    prefix = f"{prefix}write:{random.SystemRandom().getrandbits(32):x}:"  # a cell that is run twice begins anew
    runs = [(name, seed) for name in WRITERS for seed in seeds]
    request = {"do": "write", "url": url, "prefix": prefix, "runs": runs, "summary_s": summary_s, "gap_s": gap_s}
    reports = await asyncio.gather(*(processes.errand(request | {"who": who}) for who in "ab"))
    summaries = [sum(pair) for pair in zip(*map(json.loads, reports), strict=True)]
    rows = []
    for (name, seed), written in zip(runs, summaries, strict=True):
        reader = WRITERS[name](url, where(prefix, name, seed), 0)
        stored = Counter(await reader.words())
        await reader.close()
        sent = [f"{who}{i}" for who in "ab" for i in range(TURNS)]
        twice = sum(1 for word in sent if stored[word] > 1)
        rows.append((name, seed, sum(1 for word in sent if not stored[word]), twice, written))
    return pd.DataFrame(rows, columns=["writer", "seed", "lost", "twice", "summaries"])


def loss_table(table: pd.DataFrame) -> pd.DataFrame:
    """Least, median and most of each count, a row a writer."""
    by_writer = table.groupby("writer", sort=False)[["lost", "twice", "summaries"]]
    return by_writer.agg(lambda c: f"{c.min()} to {c.max()}" if c.min() != c.max() else f"{c.min()}")


def step_by_step(raw: redis.Redis, key: str, *, atomic: bool) -> list[tuple[str, list[str]]]:
    """One bad order, command by command: A reads, B pushes, A writes back. What the list holds after each."""
    raw.delete(key)
    raw.rpush(key, "1", "2", "3")
    story = []

    def note(what: str) -> None:
        story.append((what, [str(turn) for turn in raw.lrange(key, 0, -1)]))

    seen: Any = raw.lrange(key, 0, -1)
    note("A reads the list, and summarises 1 and 2")
    raw.rpush(key, "b")
    note("B pushes b, and is told: stored")
    with raw.pipeline(transaction=atomic) as pipe:
        pipe.delete(key)
        pipe.rpush(key, "S", *seen[2:])
        pipe.execute()
    note("A writes back: MULTI, DEL, RPUSH, EXEC" if atomic else "A writes back: DEL, RPUSH")
    raw.delete(key)
    return story
