"""Reciprocal rank fusion: one order out of several, whose scores could not be added up.

A row is worth 1 / (k + its place) in each list; what it got in all of them is its rank score. Only places count, so a
BM25 score of 14.2 and a cosine of 0.6 never meet.
Source: Cormack, Clarke and Büttcher (2009), Reciprocal Rank Fusion Outperforms Condorcet and Individual Rank Learning
Methods, SIGIR '09, doi:10.1145/1571941.1572114.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import total_ordering
from operator import itemgetter
from typing import Any

from tri_memory.contracts import require_count, shown


@total_ordering
class RankScore:
    """What fusion gives: good for the order within one fusion, and no similarity.

    Rank scores compare among themselves. Against a number they raise TypeError, since a threshold for cosines says
    nothing about them: with k = 60 a row on top of two lists gets 0.033. `score.value` is for printing.
    """

    __slots__ = ("_value",)  # by hand: a fusion makes thousands, and a frozen dataclass takes twice as long to make

    def __init__(self, value: float) -> None:
        self._value = value

    @property
    def value(self) -> float:
        return self._value

    def __repr__(self) -> str:
        return f"RankScore(value={self._value!r})"

    def __hash__(self) -> int:
        return hash((RankScore, self._value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankScore) and self._value == other._value

    def __lt__(self, other: Any) -> bool:
        if not isinstance(other, RankScore):
            raise TypeError(
                f"{self} is a place in a fused order and cannot be compared with {shown(other)}; "
                "a threshold belongs to the cosine of the same row"
            )
        return self._value < other._value


def fuse(*rankings: Iterable[tuple[int, object]], k: int = 60) -> list[tuple[int, RankScore]]:
    """Every row that is in one of the rankings, as (row, rank score), best first, equal scores in order of row.

    Each ranking is best first, in (row, score) pairs as `top_k`, `LexicalIndex.rank` and `fuse` itself return them; the
    score is not looked at. The order of the rankings doesn't matter. The larger `k`, the less a first place is worth
    more than a tenth. Raises ValueError for k < 0 and for a row that is in one ranking twice.

    >>> [row for row, _ in fuse([(7, 14.2), (3, 9.0)], [(3, 0.6), (5, 0.4)])]
    [3, 7, 5]
    """
    require_count("k", k)
    shares = [_shares(number, list(ranking), k) for number, ranking in enumerate(rankings)]
    rows = sorted(set().union(*shares))
    columns = [[share.get(row, 0.0) for row in rows] for share in shares]
    # fsum rounds once, at the end: the same places give the same score, whichever list each was in.
    scores = map(math.fsum, zip(*columns, strict=True))
    best_first = sorted(zip(rows, scores, strict=True), key=itemgetter(1), reverse=True)  # stable, also in reverse
    return [(row, RankScore(score)) for row, score in best_first]


def _shares(number: int, ranking: list[tuple[int, object]], k: int) -> dict[int, float]:
    """What each row gets for its place in one ranking."""
    shares = {row: 1 / place for place, (row, _) in enumerate(ranking, start=k + 1)}
    if len(shares) < len(ranking):
        counts = Counter(row for row, _ in ranking)
        twice = next(row for row, count in counts.items() if count > 1)
        raise ValueError(f"ranking {number} has row {shown(twice)} twice; a row has one place in a ranking")
    return shares
