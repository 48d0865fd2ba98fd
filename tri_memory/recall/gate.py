"""Which memories go into the prompt: a verdict and its reason for each, by a threshold for the cosine.

What the gate does not do: look at the age weight, which it only shows, or at a fused rank score, which is no cosine.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from tri_memory.contracts import as_utc, require_count, require_text, shown
from tri_memory.recall.calibration import Threshold, require_cosine

Verdict = Literal["in", "out"]


class OtherEmbedderWarning(UserWarning):
    """A threshold found with one embedder is used for the cosines of another."""


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
        object.__setattr__(self, "cosine", require_cosine("the cosine", self.cosine))
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


def _told_apart(one: float, other: float) -> tuple[str, str]:
    """Both with two decimals, or with as many as it takes to see which is larger."""
    for digits in range(2, 18):
        texts = f"{one:.{digits}f}", f"{other:.{digits}f}"
        if texts[0] != texts[1]:
            break
    return texts if one != other else (f"{one:.2f}", f"{other:.2f}")
