"""How many reads hit: the kit's visits, read at every turn of the user, against the TTL and the writes between."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from itertools import pairwise

import pandas as pd

from tri_memory.entity.extract import extract
from tri_memory.lab import datasets

TTLS_S = {"1 s": 1, "10 s": 10, "1 min": 60, "10 min": 600, "1 h": 3_600, "1 day": 86_400, "30 days": 30 * 86_400}
READS = {"once a visit": 1, "three times a visit": 3, "at every turn": None}
SEEDS = (1, 2, 3)
PAUSE_S = 40.0  # between two turns of a user, on average

Event = tuple[float, bool]  # seconds since the first day, whether it is a write


@cache
def _visits(user: str) -> tuple[tuple[float, tuple[bool, ...]], ...]:
    """Of each visit the second it began, and of each of the user's turns whether it names an entity."""
    return tuple(
        (
            (visit.started_at - datasets.FIRST_DAY) / timedelta(seconds=1),
            tuple(bool(extract(turn.content)) for turn in visit.turns if turn.role == "user"),
        )
        for visit in datasets.load(user[:2]).of(user)
    )


def events(user: str, reads: int | None, seed: int, writes: bool = True) -> list[Event]:
    """One person's reads of their records, at most `reads` in a visit, and writes after turns that name an entity.

    The pauses between turns are drawn; the kit says only when a visit began."""
    rng = random.Random(f"hits {user} {seed}")
    found: list[Event] = []
    for at, turns in _visits(user):
        for done, names in enumerate(turns):
            at += rng.expovariate(1 / PAUSE_S)
            if reads is None or done < reads:
                found.append((at, False))
            if writes and names:
                found.append((at + 1, True))
    return sorted(found)


def hit_rate(its: Sequence[Event], ttl_s: float) -> tuple[int, int]:
    """(hits, reads) of an entry that a miss fills, that lives `ttl_s` from then on and goes with a write."""
    hits = reads = 0
    until = float("-inf")
    for at, is_write in its:
        if is_write:
            until = float("-inf")
        elif at < until:
            hits, reads = hits + 1, reads + 1
        else:
            reads, until = reads + 1, at + ttl_s
    return hits, reads


def highest(table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """The most that any TTL up to a day gives, where writes end entries: by how often a visit reads, the least and the
    most per cent that a language and seed gives."""
    its = table[table.writes & (table.ttl_s <= TTLS_S["1 day"])]
    most = its.groupby(["reads", "language", "seed"], sort=False).percent.max().groupby("reads", sort=False)
    low, high = most.min(), most.max()
    return {str(reads): (float(low[reads]), float(high[reads])) for reads in low.index}


def days_between() -> tuple[float, float]:
    """Days from the beginning of a visit to that of the same person's next one: the least, and the median."""
    gaps = []
    for code in datasets.LANGUAGES:
        for user in datasets.load(code).users():
            began = [at for at, _ in _visits(user)]
            gaps += [(after - before) / 86_400 for before, after in pairwise(began)]
    return min(gaps), statistics.median(gaps)


def rates() -> pd.DataFrame:
    """Per cent of the reads that hit: language, reads, writes, ttl_s, seed, percent."""
    rows = []
    for code in datasets.LANGUAGES:
        users = datasets.load(code).users()
        for name, reads in READS.items():
            for writes in (True, False):
                for seed in SEEDS:
                    its = [events(user, reads, seed, writes) for user in users]
                    for ttl_s in TTLS_S.values():
                        counted = [hit_rate(each, ttl_s) for each in its]
                        share = 100 * sum(hits for hits, _ in counted) / sum(reads for _, reads in counted)
                        rows.append((code, name, writes, ttl_s, seed, share))
    return pd.DataFrame(rows, columns=["language", "reads", "writes", "ttl_s", "seed", "percent"])
