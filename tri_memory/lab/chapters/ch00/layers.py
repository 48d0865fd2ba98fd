"""Agents that have all three layers of memory, or only some of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from tri_memory.agent.chat import Chat
from tri_memory.clock import ManualClock
from tri_memory.embedding import Embedder, default_embedder
from tri_memory.episodic.archive import archive
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.lab.chapters.ch00.visits import by_hand, live
from tri_memory.lab.datasets import Session
from tri_memory.preference.memory import InMemoryPreferenceStore
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.summary import Summarizer

LAYERS = ("sessions", "preferences", "episodes")


@dataclass
class Stores:
    """What is remembered of everybody. `agent` opens a conversation over some of the layers, or all."""

    sessions: InMemorySessionStore
    preferences: InMemoryPreferenceStore
    episodes: InMemoryEpisodicStore
    embedder: Embedder
    clock: ManualClock
    summarizer: Summarizer

    @classmethod
    def empty(cls, summarizer: Summarizer) -> Stores:
        """Nothing remembered yet."""
        clock, embedder = ManualClock(), default_embedder()
        sessions = InMemorySessionStore(clock=clock)
        return cls(sessions, InMemoryPreferenceStore(), InMemoryEpisodicStore(), embedder, clock, summarizer)

    def agent(self, user: str, layers: Collection[str] = LAYERS, session_id: str | None = None) -> Chat:
        """A chat that sees only these layers. ValueError for a layer that there is not."""
        unknown = sorted(set(layers) - set(LAYERS))
        if unknown:
            raise ValueError(f"layers are {', '.join(LAYERS)}; got {unknown[0]!r}")
        return Chat(
            user,
            session_id,
            sessions=self.sessions if "sessions" in layers else None,
            preferences=self.preferences if "preferences" in layers else None,
            episodes=self.episodes if "episodes" in layers else None,
            embedder=self.embedder,
            summarizer=self.summarizer,
            clock=self.clock,
        )

    async def archive(self, chat: Chat) -> None:
        """Make an episode of this chat's session, whatever layers the chat itself has."""
        await archive(
            chat.key,
            user_id=chat.user_id,
            sessions=self.sessions,
            episodes=self.episodes,
            embedder=self.embedder,
            summarizer=self.summarizer,
            clock=self.clock,
        )


async def remembered(visits: Sequence[Session]) -> Stores:
    """All three layers after these visits of one user, each ended and archived with the note written by hand."""
    stores = Stores.empty(by_hand(visits))
    await live(stores.agent(visits[0].user_id), visits)
    return stores
