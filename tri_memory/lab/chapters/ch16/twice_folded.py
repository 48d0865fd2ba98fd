"""Two appends reach the limit while the first summary is being written."""

from __future__ import annotations

import asyncio
import random

from tri_memory import ChatTurn, CountPolicy, InMemorySessionStore
from tri_memory.lab.chapters.ch02.writers import CoverageSummarizer, Summarize
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, person, short
from tri_memory.summary import is_summary, summary_turn

LIMIT, KEEP = 12, 6


async def append(turns: list[ChatTurn], turn: ChatTurn, summarize: Summarize) -> None:
    turns.append(turn)
    if len(turns) > LIMIT:
        old = turns[:-KEEP]
        summary = await summarize(old)
        # Others may have appended meanwhile: take off the old turns, and nothing behind them.
        del turns[: len(old)]
        turns.insert(0, summary_turn(summary))


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    said = list(dict.fromkeys(kit(language).turns_of(person(language, rng))))[:30]
    summarizer = CoverageSummarizer(rng.uniform(0, 0.006))
    gaps = [rng.expovariate(1 / 0.005) for _ in said]
    turns: list[ChatTurn] = []
    store = InMemorySessionStore(policy=CountPolicy(LIMIT, KEEP), summarizer=summarizer)
    async with asyncio.TaskGroup() as senders:
        for turn, gap in zip(said, gaps, strict=True):
            one = append(turns, turn, summarizer) if how == "broken" else store.append("desk", turn)
            senders.create_task(one)
            await asyncio.sleep(gap)
    history = turns if how == "broken" else await store.get_history("desk")
    held = summarizer.stands_for(history)
    lost = [turn for turn in said if turn.content not in held]
    summaries = sum(map(is_summary, history))
    came = (
        f"in the list: {len(history)} turns, of which summaries: {summaries}; summaries paid: {len(summarizer.covered)}"
    )
    return Outcome(f"{came}; gone: {short(lost[0].content)}" if lost else came, len(lost), len(said))


EXHIBIT = Exhibit(
    name="twice folded",
    reference="nugget/thane-ai-agent#1168",
    kind="session",
    title="A limit that two reach at once",
    unit="turns lost",
    notebook="02_write_from_many_places",
    broken=(append,),
    show=show,
    fault="While the first waits for its summary, the list is still too long, so a second append folds as well."
    " Both take off the same number of turns, but only the first one's are the old ones: the second "
    "throws away a summary and turns that nobody has read.",
    ours="A fold is claimed: one at a time for each session, and it replaces the very turns that it planned.",
    waits=True,
)
