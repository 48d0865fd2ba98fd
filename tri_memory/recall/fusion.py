"""Reciprocal rank fusion: one order out of several, whose scores could not be added up.

A row is worth 1 / (k + its place) in each list; what it got in all of them is its rank score. Only places count, so a
BM25 score of 14.2 and a cosine of 0.6 never meet.
Source: Cormack, Clarke and Büttcher (2009), Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning
Methods, SIGIR '09, doi:10.1145/1571941.1572114.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from tri_memory.contracts import require_count, shown


@total_ordering
@dataclass(frozen=True, slots=True)
class RankScore:
    """What fusion gives: good for the order within one fusion, and no similarity.

    Rank scores compare among themselves. Against a number they raise TypeError, since a threshold for cosines says
    nothing about them: with k = 60 a row on top of two lists gets 0.033. `score.value` is for printing.
    """

    value: float

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, RankScore):
            raise TypeError(
                f"{self} is a place in a fused order and cannot be compared with {shown(other)}; "
                "a threshold belongs to the cosine of the same row"
            )
        return self.value < other.value


def fuse(*rankings: Iterable[tuple[int, object]], k: int = 60) -> list[tuple[int, RankScore]]:
    """Every row that is in one of the rankings, as (row, rank score), best first, equal scores in order of row.

    Each ranking is best first, in (row, score) pairs as `top_k`, `LexicalIndex.rank` and `fuse` itself return them; the
    score is not looked at. The order of the rankings doesn't matter. The larger `k`, the less a first place is worth
    more than a tenth. Raises ValueError for k < 0 and for a row that is in one ranking twice.

    >>> [row for row, _ in fuse([(7, 14.2), (3, 9.0)], [(3, 0.6), (5, 0.4)])]
    [3, 7, 5]
    """
    require_count("k", k)
    shares: dict[int, list[float]] = {}
    for number, ranking in enumerate(rankings):
        seen: set[int] = set()
        for place, (row, _) in enumerate(ranking, start=1):
            if row in seen:
                raise ValueError(f"ranking {number} has row {shown(row)} twice; a row has one place in a ranking")
            seen.add(row)
            shares.setdefault(row, []).append(1 / (k + place))
    # fsum rounds once, at the end: the same places give the same score, whichever list each was in.
    best_first = sorted((-math.fsum(share), row) for row, share in shares.items())
    return [(row, RankScore(-negative)) for negative, row in best_first]
