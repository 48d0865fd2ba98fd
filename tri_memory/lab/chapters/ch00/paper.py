"""Exercise 00-3's stage: a desk that kept its notes on paper, and an agent with three empty layers."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from tri_memory.agent.chat import Chat
from tri_memory.clock import ManualClock
from tri_memory.contracts import ChatTurn, EpisodicRecord, SessionStore
from tri_memory.embedding import HashingEmbedder
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.preference.memory import InMemoryPreferenceStore
from tri_memory.session.memory import InMemorySessionStore

PARTS = ("bearing", "shaft seal", "coupling", "drive belt", "impeller", "float switch", "gasket", "fan", "thermostat")
_NOTES = (
    "Fitted a new {part}; its number is {code}.",
    "The {part} was worn out. Put in one with the number {code}.",
    "New {part} at last, number {code}. Quiet again.",
)


class Note(NamedTuple):
    """A note on paper, what may be asked about it, and the number that the answer needs."""

    day: datetime
    text: str
    question: str
    code: str


def notes(rng: random.Random) -> list[Note]:
    """Nine notes of the first months of 2026, each about another part."""
    days = sorted(rng.sample(range(150), len(PARTS)))
    codes = rng.sample(range(1000, 10_000), len(PARTS))
    found = []
    for day, part, code in zip(days, rng.sample(PARTS, len(PARTS)), codes, strict=True):
        written = rng.choice(_NOTES).format(part=part, code=f"PN-{code}")
        when = datetime(2026, 1, 5, 9, tzinfo=UTC) + timedelta(days=day)
        found.append(Note(when, written, f"What number does the new {part} have?", f"PN-{code}"))
    return found


class WatchedEpisodes(InMemoryEpisodicStore):
    """`.written` are the records as they came."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[EpisodicRecord] = []

    async def remember(self, record: EpisodicRecord) -> None:
        await super().remember(record)
        self.written.append(record)


def new_chat(user: str) -> tuple[Chat, WatchedEpisodes]:
    """All three layers, empty. The embedder needs no model and gives 256 numbers a text."""
    clock, episodes = ManualClock(datetime(2026, 7, 1, 9, tzinfo=UTC)), WatchedEpisodes()
    chat = Chat(
        user,
        sessions=InMemorySessionStore(clock=clock),
        preferences=InMemoryPreferenceStore(),
        episodes=episodes,
        embedder=HashingEmbedder(),
        clock=clock,
    )
    return chat, episodes


def itself(chat: Chat) -> tuple[Any, ...]:
    """What the exercise leaves alone: all that a chat is apart from its stores."""
    return chat.model, chat.system, chat.window, chat.rules, chat.embedder


async def all_turns(chat: Chat) -> list[ChatTurn]:
    """Every turn of every session in the chat's session store."""
    store: SessionStore | None = chat.sessions
    if store is None:
        return []
    rows = await store.list_sessions()
    return [turn for row in rows for turn in await store.get_history(row.session_id)]
