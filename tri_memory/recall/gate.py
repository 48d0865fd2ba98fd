"""Which memories deserve the prompt: a threshold for the cosine, found on labelled pairs; a verdict and its reason.

A threshold belongs to the embedder it was found with, since the same two texts have another cosine in another model.
What the gate does not do: look at the age weight, which it only shows, or at a fused rank score, which is no cosine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tri_memory.contracts import as_utc, require_count, require_text, shown
from tri_memory.embedding import Embedder
from tri_memory.embedding.sentence_transformers import MINILM
from tri_memory.recall.fusion import RankScore

Verdict = Literal["in", "out"]


class OtherEmbedderWarning(UserWarning):
    """A threshold found with one embedder is used for the cosines of another."""


class Pair(NamedTuple):
    """A labelled example: does this text deserve the prompt when this is asked?"""

    query: str
    text: str
    relevant: bool


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """What letting in everything of at least this cosine gives; four arrays float64 (n,), cosines falling.

    Recall rises along the curve to 1.0; precision and F1, their harmonic mean, move both ways.
    """

    cosines: NDArray[np.float64]
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Threshold:
    """The least cosine that is let in, the name of the embedder that it is good for, and the curve it was read from
    (None where somebody set it by hand). Raises TypeError for a rank score, ValueError for what is no cosine."""

    value: float
    embedder: str
    curve: Curve | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _require_cosine("a threshold", self.value))
        require_text("embedder", self.embedder)


def calibrate(pairs: Iterable[Pair], embedder: Embedder, *, precision: float | None = None) -> Threshold:
    """The threshold for this embedder that parts the relevant pairs from the others best; see `threshold_for`.

    Each pair is (query, text, relevant). Raises ValueError for a blank text, naming its pair, and where all pairs are
    of one kind.
    """
    given = [Pair(*pair) for pair in pairs]
    if not given:
        raise ValueError("calibration needs labelled pairs (query, text, relevant); got none")
    queries = np.asarray(embedder.encode([pair.query for pair in given]), np.float64)
    texts = np.asarray(embedder.encode([pair.text for pair in given]), np.float64)
    lengths = np.linalg.norm(queries, axis=1) * np.linalg.norm(texts, axis=1)
    if not lengths.all():
        at = int(np.argmin(lengths))
        raise ValueError(f"pair {at} has a blank text, which has no direction: {shown(tuple(given[at]))}")
    cosines = (queries * texts).sum(axis=1) / lengths
    return threshold_for(cosines, [pair.relevant for pair in given], embedder.name, precision=precision)


def threshold_for(
    cosines: ArrayLike, relevant: Sequence[bool], embedder: str, *, precision: float | None = None
) -> Threshold:
    """The threshold with the best F1, or with `precision` (0 to 1), the one with the highest recall of those that reach
    it; the higher one of equals. It lies midway between the last cosine let in and the first kept out.

    `cosines` has the shape (n,) and is rounded to float32, as `top_k` does. Raises ValueError where one kind of pair is
    missing, and where no threshold reaches the precision, naming the best there is.
    """
    scores = np.asarray(cosines, np.float32).astype(np.float64)
    labels = np.asarray(relevant, bool)
    if scores.ndim != 1 or scores.shape != labels.shape:
        raise ValueError(f"needs a cosine and a label for each pair; got shapes {scores.shape} and {labels.shape}")
    if not np.isfinite(scores).all():
        raise ValueError(f"cosines must be finite; got {shown(scores[~np.isfinite(scores)][0])}")
    if labels.all() or not labels.any():
        raise ValueError(f"calibration needs pairs of both kinds; got {labels.sum()} relevant of {len(labels)}")
    curve = _curve(scores, labels)
    if precision is None:
        best = int(np.argmax(curve.f1))  # the first of equals is the highest threshold
    else:
        reached = curve.precision >= precision
        if not reached.any():
            raise ValueError(
                f"no threshold reaches the precision {shown(precision)} with {embedder}; the best is "
                f"{curve.precision.max():.3f}: ask for that, or label more pairs"
            )
        best = int(np.argmax(np.where(reached, curve.recall, -1.0)))
    below = curve.cosines[min(best + 1, len(curve.cosines) - 1)]
    return Threshold(float(curve.cosines[best] + below) / 2, embedder, curve)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory that was found, with its scores: cosine in [-1, 1], place by BM25 from 1 (None: not found by it), and
    age weight in [0, 1]. Raises TypeError for a rank score in place of the cosine, ValueError for no cosine at all."""

    key: str
    text: str
    created_at: datetime
    cosine: float
    lexical_rank: int | None = None
    age_weight: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "created_at", as_utc("created_at", self.created_at))
        object.__setattr__(self, "cosine", _require_cosine("the cosine", self.cosine))
        if self.lexical_rank is not None:
            require_count("lexical_rank", self.lexical_rank, least=1)
        if not 0 <= self.age_weight <= 1:
            raise ValueError(f"age_weight must be between 0 and 1; got {shown(self.age_weight)}")


@dataclass(frozen=True, slots=True)
class Hit:
    """A candidate, whether it goes into the prompt, and why."""

    candidate: Candidate
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Gate:
    """Lets in what has at least the threshold's cosine. `embedder` is the name of the one that the cosines come from.

    Warns (OtherEmbedderWarning) where the threshold was found with another, naming both.
    """

    threshold: Threshold
    embedder: str

    def __post_init__(self) -> None:
        if not isinstance(self.threshold, Threshold):
            raise TypeError(
                f"a threshold belongs to an embedder; got {shown(self.threshold)}: give what calibrate returns, "
                "or Threshold(cosine, embedder.name)"
            )
        require_text("embedder", self.embedder)
        if self.embedder != self.threshold.embedder:
            warnings.warn(
                f"the threshold {self.threshold.value:.3g} was found with {self.threshold.embedder}, the cosines come "
                f"from {self.embedder}: calibrate(pairs, embedder) finds the one for {self.embedder}",
                OtherEmbedderWarning,
                stacklevel=3,
            )

    def judge(self, candidates: Iterable[Candidate]) -> list[Hit]:
        """A hit for each candidate, in their order."""
        return [self._judged(candidate) for candidate in candidates]

    def _judged(self, candidate: Candidate) -> Hit:
        cosine, least = _told_apart(candidate.cosine, self.threshold.value)
        enough = candidate.cosine >= self.threshold.value
        reason = f"cosine {cosine} {'reaches' if enough else 'below'} {least} of {self.threshold.embedder}"
        return Hit(candidate, "in" if enough else "out", reason)


def inject(candidates: Iterable[Candidate], gate: Gate, *, picks: int = 10, newest: int = 3) -> list[Hit]:
    """BM25 picks the first `picks`, the gate keeps those that are near enough, the `newest` of these go in.

    A hit for each candidate, in their order; of equally new ones the better place by BM25 counts as newer.
    Raises ValueError for counts below 1.
    """
    require_count("picks", picks, least=1)
    require_count("newest", newest, least=1)
    hits = [_picked(hit, picks) for hit in gate.judge(candidates)]
    going_in = {id(hit) for hit in _newest_first(hits)[:newest]}
    return [hit if hit.verdict == "out" or id(hit) in going_in else _too_old(hit, newest) for hit in hits]


def written(hits: Iterable[Hit]) -> list[str]:
    """A line `[2026-03-01] text` for each hit that is in, newest first, the day in UTC; not escaped for a prompt."""
    kept = [hit.candidate for hit in _newest_first(list(hits))]
    return [f"[{each.created_at:%Y-%m-%d}] {' '.join(each.text.split())}" for each in kept]


def _picked(hit: Hit, picks: int) -> Hit:
    rank = hit.candidate.lexical_rank
    if rank is None:
        return replace(hit, verdict="out", reason="shares no word with the query, so BM25 did not pick it")
    if rank > picks:
        return replace(hit, verdict="out", reason=f"place {rank} by BM25, of which the first {picks} are picked")
    return hit


def _too_old(hit: Hit, newest: int) -> Hit:
    return replace(hit, verdict="out", reason=f"{hit.reason}, but only the newest {newest} go in")


def _newest_first(hits: Sequence[Hit]) -> list[Hit]:
    """Those that are in."""
    kept = sorted((hit for hit in hits if hit.verdict == "in"), key=lambda hit: hit.candidate.lexical_rank or 0)
    return sorted(kept, key=lambda hit: hit.candidate.created_at, reverse=True)  # stable, also in reverse


def _curve(scores: NDArray[np.float64], labels: NDArray[np.bool_]) -> Curve:
    """A point for each distinct cosine."""
    order = np.argsort(-scores, kind="stable")
    falling, right = scores[order], np.cumsum(labels[order])
    last = np.flatnonzero(np.append(falling[1:] != falling[:-1], True))  # equal cosines are let in together
    hits, let_in = right[last], last + 1
    return Curve(falling[last], hits / let_in, hits / right[-1], 2 * hits / (let_in + right[-1]))


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Both with two decimals, or with as many as it takes to see which is larger."""
    for digits in range(2, 18):
        texts = f"{one:.{digits}f}", f"{other:.{digits}f}"
        if texts[0] != texts[1]:
            break
    return texts if one != other else (f"{one:.2f}", f"{other:.2f}")


def _require_cosine(name: str, value: Any) -> float:
    if isinstance(value, RankScore):
        raise TypeError(f"{name} must be a cosine; {value} is a place in a fused order, which is no similarity")
    if isinstance(value, bool) or not isinstance(value, Real) or not -1.001 <= float(value) <= 1.001:
        raise ValueError(f"{name} must be a cosine between -1 and 1; got {shown(value)}")
    return float(value)


HISTORIC = Threshold(0.65, MINILM)  # set by hand, not calibrated
