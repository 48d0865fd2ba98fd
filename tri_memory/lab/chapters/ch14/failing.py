"""The opening: everything goes into the prompt, the model has a limit, and somebody cuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import pandas as pd

from tri_memory.agent.builtin import PromptOnlyModel
from tri_memory.agent.prompt import Message
from tri_memory.lab.chapters.ch14.people import PLACES, Offer, answered, offer, said, stands
from tri_memory.session.tokens import estimate_tokens

LIMIT = 1_024
BUDGETED = "one budget"
BY_DATE, RANKED = "by date", "ranked"


class Line(NamedTuple):
    """A line of a prompt, the role of its message, and its price."""

    role: str
    text: str
    tokens: int


@dataclass(frozen=True)
class Cut:
    """A prompt that somebody made fit."""

    messages: tuple[Message, ...]
    tokens: int


def everything(its: Offer) -> Offer:
    """Nothing chosen, nothing ranked: memories as they happened."""
    return replace(its, episodes=tuple(sorted(its.episodes, key=lambda each: each.created_at)))


def whole(its: Offer, ranked: bool = False) -> tuple[list[Line], Line]:
    """All lines of a prompt that has everything, and the question; episodes by date, or the best at the edges."""
    messages = (its if ranked else everything(its)).filled(10**9).messages
    lines = [
        Line(message["role"], text, estimate_tokens(f"{text}\n"))
        for message in messages
        for text in message["content"].split("\n")
    ]
    return lines[:-1], lines[-1]


def keep_the_end(costs: Sequence[int], room: int) -> set[int]:
    """As a server does that drops what came first."""
    return _beginning(range(len(costs) - 1, -1, -1), costs, room)


def keep_both_ends(costs: Sequence[int], room: int) -> set[int]:
    """As a server does that cuts the middle out: half of the room for each end."""
    front = _beginning(range(len(costs)), costs, room // 2)
    return front | _beginning(range(len(costs) - 1, -1, -1), costs, room - sum(costs[i] for i in front))


def keep_the_beginning(costs: Sequence[int], room: int) -> set[int]:
    """As an application does that fills the prompt from the top until it is full."""
    return _beginning(range(len(costs)), costs, room)


def _beginning(places: Sequence[int], costs: Sequence[int], room: int) -> set[int]:
    kept: set[int] = set()
    for place in places:
        room -= costs[place]
        if room < 0:
            break
        kept.add(place)
    return kept


CUTS: dict[str, Callable[[Sequence[int], int], set[int]]] = {
    "cut off in front": keep_the_end,
    "cut out of the middle": keep_both_ends,
    "filled from the top": keep_the_beginning,
}


def cut(its: Offer, way: str, limit: int = LIMIT, *, ranked: bool = False) -> Cut:
    """The prompt with everything, made fit in this way, or chosen by one budget. The question always stays."""
    if way == BUDGETED:
        filled = its.filled(limit)
        return Cut(tuple(filled.messages), filled.tokens)
    lines, question = whole(its, ranked)
    kept = CUTS[way]([line.tokens for line in lines], limit - question.tokens)
    messages: list[Message] = []
    for place in sorted(kept):
        role, text, _ = lines[place]
        if messages and messages[-1]["role"] == role:
            messages[-1] = {"role": role, "content": f"{messages[-1]['content']}\n{text}"}
        else:
            messages.append({"role": role, "content": text})
    return Cut((*messages, {"role": "user", "content": question.text}), sum(lines[i].tokens for i in kept))


async def reply(its: Offer, way: str, limit: int = LIMIT) -> str:
    """What the built-in model answers to such a prompt."""
    return await PromptOnlyModel()(cut(its, way, limit).messages)


@cache
def still_in(limit: int = LIMIT) -> pd.DataFrame:
    """In per cent, for all answerable questions of the kit: whether the answer is in the prompt, a row a way and order
    of the episodes, a column for where it is to be found."""
    rows = []
    settings = [(way, order) for order in (BY_DATE, RANKED) for way in CUTS] + [(BUDGETED, RANKED)]
    for id in answered("en") + answered("zh"):
        its = offer(id)
        for way, order in settings:
            messages = cut(its, way, limit, ranked=order == RANKED).messages[:-1]
            text = "\n".join(message["content"] for message in messages)
            rows.append((way, order, stands(its.asked), 100.0 * said(its.asked.facts, text)))
    table = pd.DataFrame(rows, columns=["way", "episodes", "where", "in"])
    return table.pivot_table(index=["episodes", "way"], columns="where", values="in", sort=False)[list(PLACES)]
