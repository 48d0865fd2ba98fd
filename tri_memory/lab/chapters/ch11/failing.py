"""The opening: a user with 200 cases asks about one of them, and the three nearest go into the prompt."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tri_memory.agent.builtin import PromptOnlyModel
from tri_memory.agent.prompt import assemble
from tri_memory.contracts import Recollection
from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch11.cases import NAMED, Case, cases, in_memory, questions
from tri_memory.lab.chapters.ch11.looking import SEEDS, SIZES, USER


@dataclass(frozen=True)
class Failure:
    """A question, the sentence that would answer it, the nearest three by cosine, and the built-in model's answer."""

    question: str
    meant: Case
    nearest: tuple[Recollection, ...]
    place: int
    reply: str


@cache
def user_of(language: str) -> list[Case]:
    """The 200 cases of the experiment's first user, "en" or "zh"."""
    return cases(max(SIZES), SEEDS[0], language)


async def failing(language: str, number: int) -> Failure:
    """The `number`-th question of that user that names an id as it is written; the meant case's place counts from 1."""
    its = user_of(language)
    asked = [one for one in questions(its, SEEDS[0], language) if one.kind == NAMED][number]
    _, episodes = await in_memory(its, USER, usual())
    found = await episodes.recall(usual().encode([asked.question])[0], len(its), user_id=USER)
    place = next(i for i, one in enumerate(found, start=1) if one.session_id == asked.meant)
    reply = await PromptOnlyModel()(assemble([], question=asked.question, episodes=found[:3]))
    meant = next(case for case in its if case.id == asked.meant)
    return Failure(asked.question, meant, tuple(found[:3]), place, reply)
