"""A list of what a user likes, with nothing in it twice."""

from __future__ import annotations

import random

from tri_memory import InMemoryPreferenceStore
from tri_memory.entity.extract import extract
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome

SAY = {
    "en": ("I love {}.", "I hate {}.", ("Chinese food", "early calls", "green tea", "long emails", "jazz", "wool")),
    "zh": ("我喜欢{}。", "我讨厌{}。", ("川菜", "早上的电话", "绿茶", "长邮件", "爵士乐", "羊毛")),
}
CHANGES = 0.15  # how likely a taste changes
THINGS = 4


def remember(memories: list[str], statement: str) -> None:
    """Keep what the user likes or dislikes, without repeating it."""
    statement = statement.strip().rstrip(".。").lower()
    if statement not in memories:
        memories.append(statement)


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    love, hate, every = SAY[language]
    things = rng.sample(every, THINGS)
    changed = [thing for thing in things if rng.random() < CHANGES]
    said = [love.format(thing) for thing in things] + [hate.format(thing) for thing in changed]
    memories: list[str] = []
    if how == "broken":
        for statement in said:
            remember(memories, statement)
    else:
        store = InMemoryPreferenceStore()
        for statement in said:
            for one in extract(statement):
                await store.set("ann", one.text.casefold(), one.value)
        memories = list((await store.all("ann")).values())
    two = [thing for thing in things if sum(thing.lower() in memory.lower() for memory in memories) != 1]
    return Outcome("; ".join(memories), len(two), len(things))


EXHIBIT = Exhibit(
    name="both true",
    reference="mem0#5867",
    kind="preferences",
    title="A taste that changed",
    unit="things with two values",
    notebook="06_remember_preferences",
    broken=(remember,),
    show=show,
    set_by_hand=1 - (1 - CHANGES) ** THINGS,
    fault="“love Chinese food” and “hate Chinese food” are two different texts, so both are kept, and the "
    "prompt says both. The memory has no idea what a statement is about.",
    ours="A preference is a row for each user and key, and `extract` says what a statement is about: the newer"
    " replaces.",
)
