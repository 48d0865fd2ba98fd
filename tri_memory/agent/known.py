"""What memory contributes to one prompt, and how the earlier sessions that belong to a question are found."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tri_memory.agent.budget import LeftOut, fill
from tri_memory.agent.intent import by_need
from tri_memory.agent.prompt import Fact
from tri_memory.agent.word_counts import WordCounts
from tri_memory.clock import Clock
from tri_memory.contracts import ChatTurn, EpisodicStore, Recollection
from tri_memory.embedding import Embedder
from tri_memory.episodic.hybrid import embedded, in_order, up_to
from tri_memory.recall.gate import Candidate, Gate, Hit

AMONG = 1_000  # nearest by cosine, of which BM25 ranks the words

Facts = Callable[[str], Awaitable[Sequence[Fact]]]  # the question -> the records that belong to it, best first


@dataclass(frozen=True, slots=True)
class Known:
    """What memory contributed to a prompt, or knows of a user. `hits` are all episodes that were judged, and why."""

    window: list[ChatTurn] = field(default_factory=list)
    preferences: dict[str, str] = field(default_factory=dict)
    episodes: list[Recollection] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    hits: list[Hit] = field(default_factory=list)

    def remembered(self) -> dict[str, Any]:
        """As `assemble`, `sections` and `fill` take it, beside the window."""
        return {"preferences": self.preferences, "episodes": self.episodes, "facts": self.facts}

    def injected(self) -> list[str]:
        """The texts of the memories, as they were remembered."""
        stated = [f"{key}: {value}" for key, value in self.preferences.items()]
        recorded = [text for fact in self.facts for text in (f"{fact.title}: {fact.text}", fact.text)]
        return [*stated, *recorded, *(episode.summary for episode in self.episodes)]


def within(known: Known, budget: int | None, system: str) -> tuple[Known, list[LeftOut]]:
    """What of it goes in, in the order of the prompt, and what not. The window's last turn is the question, and of the
    preferences those count as best that it needs."""
    if budget is None:
        return known, []
    best_first = known.remembered() | {"preferences": by_need(known.preferences, known.window[-1].content)}
    filled = fill(known.window, budget=budget, system=system, **best_first)
    kept = Known(filled.window, filled.preferences, filled.episodes, filled.facts, known.hits)
    return kept, filled.left_out


@dataclass(frozen=True, slots=True)
class Past:
    """One user's episodes, none without store and embedder. The session `but` is left out, since its turns are in the
    window."""

    user_id: str
    episodes: EpisodicStore | None
    embedder: Embedder | None
    but: str

    async def nearest(self, text: str, k: int) -> list[Recollection]:
        """The `k` nearest by cosine."""
        if self.episodes is None or self.embedder is None:
            return []
        embedding = await embedded(text, self.embedder)
        found = await self.episodes.recall(embedding, k + 1, user_id=self.user_id)
        return [episode for episode in found if episode.session_id != self.but][:k]

    async def hits(
        self, question: str, k: int, *, words: WordCounts | None, gate: Gate | None, clock: Clock
    ) -> list[Hit]:
        """Best first, up to the `k`-th that the gate lets in: by cosine, or with `words` by cosine and BM25, fused as
        in `episodic/hybrid.py`. `words` keeps what the texts count from one question to the next."""
        if words is None:
            nearest = await self.nearest(question, k)
            return list(up_to(k, [Candidate(e.session_id, e.summary, e.created_at, e.score) for e in nearest], gate))
        found = await self.nearest(question, AMONG)
        ranking = await asyncio.to_thread(words.rank, question, [one.summary for one in found])
        return list(up_to(k, in_order(found, ranking, None, clock()), gate))


def let_in(hits: Sequence[Hit]) -> list[Recollection]:
    kept = [hit.candidate for hit in hits if hit.verdict == "in"]
    return [Recollection(one.key, one.text, one.cosine, one.created_at) for one in kept]


def require_embedder(episodes: EpisodicStore | None, embedder: Embedder | None, gate: Gate | None) -> None:
    """ValueError for episodes or a gate without an embedder, and for a gate that judges another one's cosines."""
    if episodes is not None and embedder is None:
        raise ValueError("episodes are recalled by meaning: pass an embedder, for instance default_embedder()")
    if gate is not None and (episodes is None or embedder is None):
        raise ValueError("a gate judges episodes: pass episodes and embedder with it")
    if gate is not None and embedder is not None and gate.embedder != embedder.name:
        raise ValueError(
            f"the gate judges cosines of {gate.embedder}, and this chat's come from {embedder.name}: "
            f"Gate(threshold, {embedder.name!r})"
        )
