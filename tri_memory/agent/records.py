"""A user's record beside a conversation: what they state about a case or a device is kept, and found by its number.

One record for each number, with the last few sentences that name it. What it does not do: understand them, or keep two
conversations of one user from overwriting each other's newest sentence when both name a number at the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from tri_memory.agent.echoes import without_fences
from tri_memory.agent.prompt import Fact
from tri_memory.agent.sentences import asks, split
from tri_memory.clock import Clock
from tri_memory.contracts import ChatTurn
from tri_memory.entity.content import sessions_of
from tri_memory.entity.extract import extract
from tri_memory.entity.records import UserMemory, UserMemoryStore
from tri_memory.entity.structured import TYPE_OF, structured_recall

LONGEST_TEXT = 20_000  # characters that are read of one turn
LONGEST_SENTENCE = 300  # characters; a longer one is an essay or a paste
MOST_SENTENCES = 5  # of a record, the newest
MOST_LISTED = 20
AT_ANY_AGE = timedelta.max.days  # a number was named: what it finds needn't be of the last days


@dataclass(frozen=True, slots=True)
class Records:
    """One user's, in a store; nothing happens where that is None."""

    user_id: str
    store: UserMemoryStore | None
    clock: Clock

    async def keep(self, text: str, session: str) -> None:
        """What `text` states about a case or a device; a sentence that asks, or is kept already, changes nothing."""
        if self.store is None:
            return
        for sentence in split(without_fences(text[:LONGEST_TEXT])):
            if len(sentence) > LONGEST_SENTENCE or asks(sentence):
                continue
            for named in extract(sentence):
                if named.kind in TYPE_OF:
                    await self._add(self.store, named.kind, named.value, sentence, session)

    async def about(self, question: str, window: Sequence[ChatTurn]) -> list[Fact]:
        """The records that the question names, newest first, however old, without what the window says anyhow."""
        if self.store is None:
            return []
        found = await structured_recall(
            question, user_id=self.user_id, memories=self.store, clock=self.clock, days=AT_ANY_AGE
        )
        shown = "\n".join(turn.content for turn in window)
        return [fact for one in found.memories if (fact := _fact(one, shown)).text]

    async def all(self) -> list[Fact]:
        """The newest records."""
        found = [] if self.store is None else await self.store.find(self.user_id, limit=MOST_LISTED)
        return [_fact(one) for one in found]

    async def _add(self, store: UserMemoryStore, kind: str, value: str, sentence: str, session: str) -> None:
        memory_type = TYPE_OF[kind]
        kept = await store.find(self.user_id, memory_type=memory_type, entity_ids=[value], limit=1)
        said = _said(kept[0]) if kept else []
        if sentence not in said:
            sessions = sessions_of(kept[0].content) if kept else []
            named = [*(one for one in sessions if one != session), session]
            content = {"said": [*said, sentence][-MOST_SENTENCES:], "session_ids": named[-MOST_SENTENCES:]}
            await store.put(self.user_id, memory_type, value, content)


def _fact(record: UserMemory, shown: str = "") -> Fact:
    said = [sentence for sentence in _said(record) if sentence not in shown]
    return Fact(f"{record.memory_type} {record.entity_id}", " ".join(said), record.updated_at)


def _said(record: UserMemory) -> list[str]:
    """Another program's record may have a text of its own there; what has none is told as it is."""
    said = record.content.get("said")
    if isinstance(said, list):
        return [str(each) for each in said]
    return [said] if isinstance(said, str) else [f"{key}: {value}" for key, value in record.content.items()]
