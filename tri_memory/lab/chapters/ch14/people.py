"""The kit's people at their fifth visit: what each layer of memory can offer to a question asked at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tri_memory.agent.budget import SHARES, Filled, fill
from tri_memory.agent.builtin import PromptOnlyModel
from tri_memory.agent.intent import by_need
from tri_memory.agent.prompt import Fact
from tri_memory.agent.sentences import split
from tri_memory.contracts import ChatTurn, Recollection
from tri_memory.entity.extract import extract
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch06.asking import a_row_a_key
from tri_memory.lab.chapters.ch06.keys import KEYS
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch10.memories import ANSWERED, Asked, asked_of, memories_of, users
from tri_memory.lab.survival import stands_in
from tri_memory.recall.cosine import top_k
from tri_memory.recall.fusion import fuse
from tri_memory.recall.lexical import LexicalIndex

LANGUAGES = {"en": "English", "zh": "Chinese"}
THIS_VISIT, PREFERENCE, AN_ID, EARLIER = "this visit", "a preference", "an id", "an earlier visit"
PLACES = (THIS_VISIT, PREFERENCE, AN_ID, EARLIER)
THINGS = ("CASE_ID", "DEVICE_ID")
_data = cache(datasets.load)


@dataclass(frozen=True)
class Offer:
    """What `fill` is given for one question: each layer whole, best first, the window oldest first."""

    asked: Asked
    window: tuple[ChatTurn, ...]
    preferences: dict[str, str]
    episodes: tuple[Recollection, ...]
    facts: tuple[Fact, ...]

    def filled(self, budget: int, shares: Mapping[str, float] = SHARES) -> Filled:
        known: dict[str, Any] = {"preferences": self.preferences, "episodes": self.episodes, "facts": self.facts}
        return fill(self.window, budget=budget, shares=shares, **known)


@cache
def offer(id: str) -> Offer:
    """For a question of the kit: the last visit as the window, what a colleague noted as preferences (06), the
    exchanges of the four visits before as episodes in fused order (10), and every id with its sentence as a fact."""
    asked = next(each for user in users(id[:2]) for each in asked_of(user) if each.id == id)
    data = _data(id[:2])
    visits = data.of(asked.user)
    window = (*visits[-1].turns, ChatTurn("user", asked.question))
    told = a_row_a_key(data, asked.user, len(visits)).preferences
    earlier = [each for each in memories_of(asked.user) if not each.key.startswith(f"{visits[-1].session_id}/")]
    episodes = [Recollection(each.key, each.text, 1.0, each.at) for each in earlier]
    facts = facts_of(asked.user)
    return Offer(
        asked,
        window,
        by_need(told, asked.question),
        tuple(episodes[row] for row in _order(asked.question, tuple(each.text for each in earlier))),
        tuple(facts[row] for row in _order(asked.question, tuple(f"{each.title}: {each.text}" for each in facts))),
    )


def _order(question: str, texts: tuple[str, ...]) -> list[int]:
    if not texts:
        return []
    index, vectors = _index(texts)
    by_cosine = top_k(vectors, usual().encode([question])[0], len(texts))
    return [row for row, _ in fuse(by_cosine, index.rank(question, len(texts)))]


@cache
def _index(texts: tuple[str, ...]) -> tuple[LexicalIndex, NDArray[np.float32]]:
    return LexicalIndex(texts), usual().encode(texts)


@cache
def facts_of(user: str) -> tuple[Fact, ...]:
    """Each id that a rule finds in the visits before the last, with the sentence that named it last."""
    found: dict[str, Fact] = {}
    for visit in _data(user[:2]).of(user)[:-1]:
        for turn in visit.turns:
            for sentence in split(turn.content):
                for one in extract(sentence):
                    if one.kind in THINGS:
                        found[one.value] = Fact(one.value, sentence, visit.started_at)
    return tuple(found.values())


def in_prompt(filled: Filled, facts: Sequence[str]) -> bool:
    """Whether all that the answer takes stands in the prompt, the question itself left out."""
    return said(facts, "\n".join(message["content"] for message in filled.messages[:-1]))


def said(facts: Sequence[str], text: str) -> bool:
    """Whether a text says all that an answer takes."""
    return all(stands_in(fact, text) for fact in facts)


async def reply(filled: Filled) -> str:
    """The built-in model's answer."""
    return await PromptOnlyModel()(filled.messages)


@cache
def answered(language: str) -> tuple[str, ...]:
    """The ids of the answerable questions of every second person of "en" or "zh": six people, two of each trade."""
    return tuple(each.id for user in users(language)[::2] for each in asked_of(user) if each.kind == ANSWERED)


def counted() -> dict[str, int]:
    """How many of the questions have their answer in each place."""
    counts = Counter(stands(offer(id).asked) for language in LANGUAGES for id in answered(language))
    return {place: counts[place] for place in PLACES}


def stands(asked: Asked) -> str:
    """Where its answer is to be found: one of `PLACES`."""
    visits = _data(asked.user[:2]).of(asked.user)
    if any(key.startswith(f"{visits[-1].session_id}/") for key in asked.gold):
        return THIS_VISIT
    if asked.id in KEYS:
        return PREFERENCE
    return AN_ID if asked.about == "exact_id" else EARLIER
