"""The opening: recall that always brings three, and what the built-in model makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tri_memory import InMemoryEpisodicStore
from tri_memory.agent.builtin import PromptOnlyModel
from tri_memory.agent.prompt import assemble
from tri_memory.contracts import Recollection
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch10.memories import Asked, asked_of, fill, memories_of, users
from tri_memory.recall.cosine import top_k
from tri_memory.recall.fusion import fuse
from tri_memory.recall.lexical import LexicalIndex


async def remembered(people: Iterable[str]) -> InMemoryEpisodicStore:
    """Everything these people said, in one store, under the default embedder."""
    store = InMemoryEpisodicStore()
    for user in people:
        await fill(store, user, usual())
    return store


async def reply(question: str, episodes: Sequence[Recollection]) -> str:
    """The built-in model's answer in a new session whose prompt holds these memories."""
    return await PromptOnlyModel()(assemble([], question=question, episodes=list(episodes)))


def brief(text: str, most: int = 62, around: str = "") -> str:
    """The beginning of a text, on one line; a Chinese character takes the room of two letters.

    Where the sentence with `around` stands further on, half of the room is for it.
    """
    line = " ".join(text.split())
    starts = line.rfind(". ", 0, line.find(around)) + 2
    if around in line[most // 2 :] and starts > 1:
        return f"{brief(line[:starts], most // 2)} {brief(line[starts:], most - most // 2)}"
    kept, room = "", most
    for sign in line:
        room -= 2 if ord(sign) > 0x2E7F else 1
        if room < 0:
            return f"{kept}…"
        kept += sign
    return kept


def places(id: str) -> tuple[Asked, list[int | None]]:
    """A question of the kit, and at which place, from 1, the first answer stands: by cosine, by BM25, fused; None where
    it shares no word with the question."""
    asked = next(each for user in users(id[:2]) for each in asked_of(user) if each.id == id)
    memories = memories_of(asked.user)
    texts = [each.text for each in memories]
    vectors = usual().encode([asked.question, *texts])
    by_cosine, by_words = (
        top_k(vectors[1:], vectors[0], len(texts)),
        LexicalIndex(texts).rank(asked.question, len(texts)),
    )
    fused = [row for row, _ in fuse(by_cosine, by_words)]
    orders = [row for row, _ in by_cosine], [row for row, _ in by_words], fused
    gold = {row for row, each in enumerate(memories) if each.key in asked.gold}
    return asked, [next((place for place, row in enumerate(each, start=1) if row in gold), None) for each in orders]
