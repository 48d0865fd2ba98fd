"""What is remembered about a user, row by row: from when, from which layer, and whether and why the last prompt had it.

Plain rows, for a panel, a page or a data frame. What it does not do: change anything, or show what a store can't list,
such as when a preference was stated.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from tri_memory.agent.budget import LeftOut
from tri_memory.agent.chat import Chat
from tri_memory.agent.prompt import Fact, episode_line, fact_line, preference_line
from tri_memory.contracts import Recollection, require_count
from tri_memory.recall.gate import Hit
from tri_memory.summary import is_summary

MOST = 1_000  # episodes


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """One memory. `layer` is session, preferences, facts or episodes; `since` is aware UTC, or None where the store
    doesn't keep it; `why` says why the last prompt had it or not."""

    layer: str
    what: str
    since: datetime | None
    used: bool
    why: str


async def memory_view(chat: Chat, most: int = MOST) -> list[MemoryRow]:
    """The user's sessions, preferences, records (20 of them) and the facts of the last prompt, and up to `most`
    episodes, the newest first.

    Only this user's, since a chat has no other's. What the stores raise goes through.
    """
    require_count("most", most, least=1)
    known = await chat.remembered(k=most)
    rows = await _sessions(chat)
    rows += [_preference(chat, key, value) for key, value in known.preferences.items()]
    rows += _facts(chat, known.facts)
    newest_first = sorted(known.episodes, key=lambda episode: episode.created_at, reverse=True)
    return rows + [_episode(chat, episode) for episode in newest_first]


async def _sessions(chat: Chat) -> list[MemoryRow]:
    window = chat.last_known.window
    summarised = any(is_summary(turn) for turn in window)
    rows = []
    for row in await chat.list_sessions():
        used = bool(window) and row.session_id == chat.session_id
        if used:
            turns = "1 turn" if len(window) == 1 else f"{len(window)} turns"
            why = f"this conversation: {turns} in the window" + (", a summary among them" if summarised else "")
        elif row.session_id == chat.session_id:
            why = "nothing was asked in this conversation yet"
        else:
            why = "another session; only its episode can be recalled"
        what = f"session {row.session_id}, {row.turns} turns"
        rows.append(MemoryRow("session", what, row.updated_at.astimezone(UTC), used, why))
    out = [one for one in chat.last_left_out if one.layer == "window"]
    return rows + [MemoryRow("session", one.item, None, False, one.reason) for one in out]


def _preference(chat: Chat, key: str, value: str) -> MemoryRow:
    used = chat.last_known.preferences.get(key) == value
    line = preference_line(key, value)
    why = "every preference goes in" if chat.budget is None else "within the budget"
    if not used:
        why = _why_not(chat, line, "stated after the last question")
    return MemoryRow("preferences", f"{key}: {value}", None, used, why)


def _facts(chat: Chat, recorded: list[Fact]) -> list[MemoryRow]:
    used = chat.last_known.facts
    out = [one for one in chat.last_left_out if one.layer == "facts"]
    rows = [_fact(fact, True, "belongs to what was asked") for fact in used]
    rows += [MemoryRow("facts", one.item, None, False, one.reason) for one in out]
    lines_out = {one.item for one in out}
    told = {fact.title for fact in used} | {fact.title for fact in recorded if fact_line(fact) in lines_out}
    why = "not named in what was asked, or said in this conversation" if chat.last_prompt else "nothing was asked yet"
    return rows + [_fact(fact, False, why) for fact in recorded if fact.title not in told]


def _fact(fact: Fact, used: bool, why: str) -> MemoryRow:
    return MemoryRow("facts", f"{fact.title}: {fact.text}", fact.when.astimezone(UTC), used, why)


def _episode(chat: Chat, episode: Recollection) -> MemoryRow:
    used = any(one.session_id == episode.session_id for one in chat.last_known.episodes)
    hit = next((hit for hit in chat.last_known.hits if hit.candidate.key == episode.session_id), None)
    if hit and (used or hit.verdict == "out"):
        why = _found(hit)
    else:
        why = _why_not(chat, episode_line(episode), "not among the nearest to what was asked")
    return MemoryRow("episodes", episode.summary, episode.created_at.astimezone(UTC), used, why)


def _found(hit: Hit) -> str:
    if hit.verdict == "out" or hit.reason != "no gate":
        return hit.reason
    place = hit.candidate.lexical_rank
    words = "" if place is None else f", place {place} by words"
    return f"among the nearest: cosine {hit.candidate.cosine:.2f}{words}"


def _why_not(chat: Chat, line: str, otherwise: str) -> str:
    left: LeftOut | None = next((one for one in chat.last_left_out if one.item == line), None)
    if left:
        return f"left out of the budget: {left.reason}"
    return otherwise if chat.last_prompt else "nothing was asked yet"
