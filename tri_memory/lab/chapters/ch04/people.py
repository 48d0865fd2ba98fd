"""The two people of this chapter, one for each language, each as written and with pasted logs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from tri_memory.contracts import ChatTurn
from tri_memory.lab import datasets
from tri_memory.lab.chapters.ch04.bills import facts_of
from tri_memory.lab.chapters.ch04.notes import Notes
from tri_memory.lab.chapters.ch04.pastes import with_pastes

# Who, and the first seed whose logs all fit into a window of 4,096: a paste larger than the window has its own lesson.
PEOPLE = {"English": ("en-device-01", 2), "Chinese": ("zh-device-02", 1)}
NAMES = [f"{language}, {variant}" for variant in ("with logs", "as written") for language in PEOPLE]

# What the facts of the Chinese conversation say.
IN_ENGLISH = {
    "7K2-40931": "the pump's serial number",
    "底座记得重新找平": "remember to level the base anew",
    "DN65": "the size that came",
    "左耳听不清": "hears badly on the left ear, so never phone",
    "2000": "hours to the next service",
    "2月14号": "14 February",
    "八月底": "end of August",
    "机封我只要原厂的": "seals from the maker only",
    "劳保鞋": "safety shoes",
    "八点到十一点": "from eight to eleven",
    "6号厂房": "hall 6",
    "移动冷风机": "mobile air cooler",
    "先借您用一个礼拜": "on loan for a week",
}


@dataclass(frozen=True)
class Talk:
    """A conversation: its turns, the gold facts in it, and a summariser with the author's notes about that person."""

    turns: list[ChatTurn]
    facts: list[str]
    notes: Notes


@lru_cache
def talk(name: str) -> Talk:
    """ "English, with logs", "Chinese, as written" and so on: one of NAMES."""
    language, variant = name.split(", ")
    user, seed = PEOPLE[language]
    data = datasets.load(user[:2])
    turns = with_pastes(data, user, seed=seed) if variant == "with logs" else data.turns_of(user)
    return Talk(turns, facts_of(data, user), Notes(data, user))
