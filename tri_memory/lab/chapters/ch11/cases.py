"""One user's cases, as many as wanted and nearly alike, and questions about them whose right answer is known."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from tri_memory import InMemoryEpisodicStore
from tri_memory.contracts import EpisodicRecord, EpisodicStore
from tri_memory.embedding import Embedder
from tri_memory.entity.memory import InMemoryUserMemoryStore
from tri_memory.entity.records import UserMemoryStore
from tri_memory.lab.datasets import FIRST_DAY

NUMBERS = range(2_000, 3_000)  # BX-2000 to BX-2999: one shop's ids, of which a user has some
NAMED, RESPELT, UNKNOWN = "as it is written", "other spelling", "spelling without a rule"
TYPO, NO_ID, FOREIGN = "one digit wrong", "like last time", "another user's id"
KINDS = (NAMED, RESPELT, UNKNOWN, TYPO, NO_ID, FOREIGN)

_THINGS = {
    "en": ("boots", "jacket", "tent", "stove", "rucksack", "poles"),
    "zh": ("靴子", "冲锋衣", "帐篷", "炉头", "背包", "登山杖"),
}
_FAULTS = {
    "en": ("a seam is open", "the zip jams", "the colour is wrong", "it came too late", "a part is missing"),
    "zh": ("开线了", "拉链卡住", "颜色不对", "送晚了", "少了零件"),
}
_TEXT = {
    "en": "Return {id}: {thing}, {fault}. Agreed: a refund of {euros} euros.",
    "zh": "退货单{id}：{thing}，{fault}。说好退款{euros}元。",
}
_ASKED = {"en": "What was agreed on {id}?", "zh": "{id}当时说好退多少？"}
_LAST_TIME = {
    "en": "The {thing} again, {fault}, like last time. What was agreed?",
    "zh": "又是{thing}，跟上次一样{fault}。当时说好退多少？",
}


@dataclass(frozen=True)
class Case:
    """A return: its id, the sentence that was kept, what was agreed, and when."""

    id: str
    text: str
    thing: str
    fault: str
    euros: int
    at: datetime


@dataclass(frozen=True)
class Asked:
    """A question and the id of the case that it means; None where this user has no such case."""

    kind: str
    question: str
    meant: str | None


def cases(count: int, seed: int, language: str) -> list[Case]:
    """`count` cases of one user, oldest first, an hour apart; a longer list begins with the shorter one."""
    rng = random.Random(f"cases {seed} {language}")
    numbers = rng.sample(NUMBERS, len(NUMBERS))
    made = []
    for i, number in enumerate(numbers[:count]):
        words = {"thing": rng.choice(_THINGS[language]), "fault": rng.choice(_FAULTS[language])}
        id, euros = f"BX-{number}", rng.randrange(5, 400)
        text = _TEXT[language].format(id=id, euros=euros, **words)
        made.append(Case(id, text, **words, euros=euros, at=FIRST_DAY + timedelta(hours=i)))
    return made


def questions(its: list[Case], seed: int, language: str, each: int = 10) -> list[Asked]:
    """`each` questions of every kind about these cases. In a typo one digit is another one."""
    rng = random.Random(f"questions {seed} {language} {len(its)}")
    known, found = {case.id for case in its}, []
    foreign = [f"BX-{number}" for number in NUMBERS if f"BX-{number}" not in known]
    for case in [rng.choice(its) for _ in range(each)]:
        ask = _ASKED[language].format
        last = max((c for c in its if (c.thing, c.fault) == (case.thing, case.fault)), key=lambda c: c.at)
        found += [
            Asked(NAMED, ask(id=case.id), case.id),
            Asked(RESPELT, ask(id=rng.choice(spellings(case.id))), case.id),
            Asked(UNKNOWN, ask(id=case.id.lower().replace("-", " ")), case.id),
            Asked(TYPO, ask(id=slip(case.id, rng)), case.id),
            Asked(NO_ID, _LAST_TIME[language].format(thing=case.thing, fault=case.fault), last.id),
            Asked(FOREIGN, ask(id=rng.choice(foreign)), None),
        ]
    return found


def spellings(id: str) -> list[str]:
    """Other ways to write it that the rules know: no hyphen, a space, small letters, full width, an en dash."""
    wide = id.translate({code: code + 0xFEE0 for code in range(0x21, 0x7F)})
    return [f"order #{id.lower().replace('-', ' ')}", f"订单号{id.replace('-', '')}", wide, id.replace("-", "\u2013")]


def slip(id: str, rng: random.Random) -> str:
    """The id with one of its last three digits changed."""
    place = rng.randrange(len(id) - 3, len(id))
    return id[:place] + rng.choice([d for d in "0123456789" if d != id[place]]) + id[place + 1 :]


async def kept(
    its: list[Case], user: str, embedder: Embedder, memories: UserMemoryStore, episodes: EpisodicStore
) -> None:
    """Each case twice: as a record under its id, and as an episode under its embedding."""
    for case, vector in zip(its, embedder.encode([case.text for case in its]), strict=True):
        await memories.put(user, "case", case.id, {"text": case.text, "euros": case.euros}, began_at=case.at)
        await episodes.remember(EpisodicRecord(user, case.id, case.text, vector, case.at))


async def in_memory(its: list[Case], user: str, embedder: Embedder) -> tuple[UserMemoryStore, EpisodicStore]:
    """New stores with these cases."""
    memories, episodes = InMemoryUserMemoryStore(), InMemoryEpisodicStore()
    await kept(its, user, embedder, memories, episodes)
    return memories, episodes
