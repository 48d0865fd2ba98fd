"""Recall by meaning and by words, behind any episodic store: cosine and BM25, fused by place, weighed by age, gated.

The order comes from places and age, the verdict from the cosine alone. What it does not do: look beyond the `among`
memories that are nearest by cosine, or at what a fused score would be as a similarity, since it is none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from tri_memory.clock import Clock, system_clock
from tri_memory.contracts import EpisodicStore, Recollection, require_count, require_text, shown
from tri_memory.embedding import Embedder
from tri_memory.embedding.texts import is_blank
from tri_memory.recall.decay import age_in_days
from tri_memory.recall.fusion import fuse
from tri_memory.recall.gate import Candidate, Gate, Hit
from tri_memory.recall.lexical import LexicalIndex

Weight = Callable[[float], float]


async def hybrid_recall(
    question: str,
    *,
    user_id: str,
    episodes: EpisodicStore,
    embedder: Embedder,
    k: int = 3,
    gate: Gate | None = None,
    weight: Weight | None = None,
    clock: Clock = system_clock,
    among: int = 1_000,
) -> list[Hit]:
    """The user's memories in fused order, best first, up to the `k`-th that goes in; those that the gate kept out stand
    among them with the reason. [] for a blank question, before anything is embedded.

    The store gives the `among` nearest by cosine, and BM25 ranks these same texts: what lies beyond is not seen, not
    even with the very word asked for. `weight` turns an age in days, by `clock`, into 0 to 1 (`Preset.weight`), and
    multiplies the fused score. Equal scores come in the order of the store. Without a gate all go in.
    Raises ValueError for a question that is no string, counts below 1, a gate for another embedder's cosines, a weight
    outside of 0 to 1, and what the embedder gives that is not one vector; what embedder and store raise goes through.
    """
    require_text("user_id", user_id)
    require_count("k", k, least=1)
    require_count("among", among, least=1)
    if not isinstance(question, str):
        raise ValueError(f"question must be a string; got {shown(question)}")
    if gate is not None and gate.embedder != embedder.name:
        raise ValueError(
            f"the gate judges cosines of {gate.embedder}, and these come from {embedder.name}: "
            f"Gate(threshold, {embedder.name!r})"
        )
    if is_blank(question):
        return []
    nearest = await episodes.recall(await embedded(question, embedder), among, user_id=user_id)
    ranking = await asyncio.to_thread(_by_words, question, [one.summary for one in nearest])
    return list(up_to(k, in_order(nearest, ranking, weight, clock()), gate))


async def embedded(question: str, embedder: Embedder) -> NDArray[np.float32]:
    """In a thread: a model takes long enough to be felt by every other coroutine of the loop."""
    rows = np.asarray(await asyncio.to_thread(embedder.encode, [question]))
    if rows.ndim != 2 or len(rows) != 1:
        raise ValueError(f"the embedder {embedder.name} gave the shape {rows.shape} for one text, not (1, dimensions)")
    vector: NDArray[np.float32] = rows[0]
    return vector


def _by_words(question: str, texts: Sequence[str]) -> list[tuple[int, float]]:
    return LexicalIndex(texts).rank(question, max(1, len(texts)))


def in_order(
    nearest: Sequence[Recollection], by_words: list[tuple[int, float]], weight: Weight | None, now: datetime
) -> list[Candidate]:
    """`nearest` is in order of cosine, so that its places are the first ranking."""
    places = {row: place for place, (row, _) in enumerate(by_words, start=1)}
    scored: list[tuple[float, Candidate]] = []
    for row, fused in fuse([(row, one.score) for row, one in enumerate(nearest)], by_words):
        one = nearest[row]
        age_weight = 1.0 if weight is None else weight(age_in_days(one.created_at, now))
        candidate = Candidate(one.session_id, one.summary, one.created_at, one.score, places.get(row), age_weight)
        scored.append((fused.value * age_weight, candidate))
    return [candidate for _, candidate in sorted(scored, key=lambda pair: -pair[0])]  # stable: equals as fuse had them


def up_to(k: int, candidates: Sequence[Candidate], gate: Gate | None) -> Iterator[Hit]:
    hits = [Hit(each, "in", "no gate") for each in candidates] if gate is None else gate.judge(candidates)
    for hit in hits:
        yield hit
        k -= hit.verdict == "in"
        if not k:
            return
