"""The opening: a read and a write meet, and an old phone number stands in the prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tri_memory.agent.prompt import SYSTEM, Fact, assemble
from tri_memory.clock import system_clock
from tri_memory.lab.chapters.ch12 import place
from tri_memory.lab.chapters.ch12.stage import Actor, Play, play

QUESTIONS = {
    "ann": ("Please call me back. Do you have my number?", "555-0142", "555-0199"),
    "林": ("请回电话给我，我的号码你有吧？", "138-0000-4417", "139-0000-8812"),
}


def user_of(name: str) -> str:
    """That user in this kernel."""
    return f"{place.prefix()}{name}"


async def meet(name: str, actors: Mapping[str, Actor], shared: Mapping[str, Any], order: Sequence[str]) -> pd.DataFrame:
    """Play it, from the old number in Postgres and nothing in Redis; a row a call."""
    user, (_, old, _) = user_of(name), QUESTIONS[name]
    await shared["Redis"].delete(user)
    await shared["Postgres"].write(user, old)
    return as_table(await play(actors, shared, order))


def as_table(played: Play) -> pd.DataFrame:
    """Who called what, and what came back; this kernel's prefix left out."""
    rows = [(call.who, call.what.replace(place.prefix(), ""), call.gave) for call in played.calls]
    return pd.DataFrame(rows, columns=["who", "call", "gives"], index=range(1, len(rows) + 1))


def prompt(name: str, number: str) -> str:
    """What the model is sent of the user, and the question; the system text before it left out."""
    fact = Fact("phone", number, system_clock())
    first, asked = assemble([], question=QUESTIONS[name][0], facts=[fact])
    return f"{first['content'].removeprefix(SYSTEM).strip()}\nuser: {asked['content']}"
