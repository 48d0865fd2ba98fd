"""How good a ranking is, and how sure one can be of the mean of it.

`ranked` is what was found, best first; `gold` is what would have answered. Every measure lies in [0, 1].
Sources: Järvelin and Kekäläinen (2002), Cumulated gain-based evaluation of IR techniques, for nDCG; Davison and Hinkley
(1997), Bootstrap Methods and their Application, section 3.8, for resampling in two stages.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from tri_memory.contracts import require_count, shown

SAMPLES = 2_000


def recall_any(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """1.0 where at least one of the gold is among the first k, else 0.0."""
    return float(any(one in gold for one in _first(ranked, gold, k)))


def recall_all(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """1.0 where all of the gold are among the first k, else 0.0; a question that joins two facts needs both."""
    return float(set(gold) <= set(_first(ranked, gold, k)))


def reciprocal_rank(ranked: Sequence[Hashable], gold: Collection[Hashable]) -> float:
    """1 / the place of the first of the gold, 0.0 where none was found; its mean over questions is the MRR."""
    _first(ranked, gold, 1)
    return next((1 / place for place, one in enumerate(ranked, start=1) if one in gold), 0.0)


def ndcg(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> float:
    """Gains of 1 discounted by log2(1 + place) over the first k, divided by what the best order would have got."""
    gained = sum(1 / math.log2(1 + i) for i, one in enumerate(_first(ranked, gold, k), start=1) if one in gold)
    return gained / sum(1 / math.log2(1 + i) for i in range(1, min(k, len(set(gold))) + 1))


def _first(ranked: Sequence[Hashable], gold: Collection[Hashable], k: int) -> Sequence[Hashable]:
    require_count("k", k, least=1)
    if not gold:
        raise ValueError("a question without gold has no recall; count how often it is admitted instead")
    if len(set(ranked)) < len(ranked):
        raise ValueError(f"the ranking {shown(list(ranked))} holds something twice, which would count twice")
    return ranked[:k]


class Interval(NamedTuple):
    """A mean of `n` values, and where 95 % of the bootstrap samples have theirs."""

    mean: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]" if self.n else "–"


def interval(values: ArrayLike, groups: Sequence[Hashable] | None = None, *, seed: int = 0) -> Interval:
    """The mean of `values` (n,) with its 95 % bootstrap interval; of no values all NaN.

    Questions about one person resemble each other, so with `groups` (n,), the person of each value, the people are
    drawn first and then as many questions of each as there are. Of few people it is still too narrow: in simulations
    with 20 questions each it held the truth in 82 to 86 of 100 runs with two people, in 90 to 92 with
    five, in 95 with twelve.
    Raises ValueError for NaN and infinity, and where `groups` has another length.
    """
    numbers = np.asarray(values, np.float64)
    if numbers.ndim != 1 or (groups is not None and len(groups) != len(numbers)):
        size = "none" if groups is None else f"{len(groups)}"
        raise ValueError(f"needs values of shape (n,) and n groups; got shape {numbers.shape} and {size}")
    if not np.isfinite(numbers).all():
        first = int(np.argmin(np.isfinite(numbers)))
        name = "NaN" if np.isnan(numbers[first]) else str(numbers[first])
        raise ValueError(f"value {first} is {name}; leave out what was not measured")
    if not len(numbers):
        return Interval(math.nan, math.nan, math.nan, 0)
    means = _resampled(_by_group(numbers, groups), np.random.default_rng(seed))
    low, high = np.percentile(means, [2.5, 97.5])
    return Interval(float(numbers.mean()), float(low), float(high), len(numbers))


def _by_group(numbers: np.ndarray, groups: Sequence[Hashable] | None) -> list[np.ndarray]:
    if groups is None:
        return [numbers]
    rows: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    return [numbers[own] for own in rows.values()]


def _resampled(groups: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """(SAMPLES,) means, each of as many groups as there are, drawn with replacement and resampled within."""
    chosen = rng.integers(len(groups), size=(SAMPLES, len(groups)))
    sums = np.zeros(chosen.shape)
    for number, own in enumerate(groups):
        times = chosen == number
        sums[times] = own[rng.integers(len(own), size=(int(times.sum()), len(own)))].sum(axis=1)
    sizes = np.array([len(own) for own in groups])
    means: np.ndarray = sums.sum(axis=1) / sizes[chosen].sum(axis=1)
    return means
