"""A model that takes ten turns a call gets the last ten of what is to be folded."""

from __future__ import annotations

import random

from tri_memory import ChatTurn, CountPolicy, InMemorySessionStore
from tri_memory.lab.chapters.ch02.writers import CoverageSummarizer, Summarize
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, person, short
from tri_memory.session.summarizers import in_pieces
from tri_memory.summary import summary_turn

CAP = 10  # turns that the model takes in one call


async def compact(turns: list[ChatTurn], model: Summarize) -> list[ChatTurn]:
    """One summary turn for all but the last ten turns."""
    old, recent = turns[:-10], turns[-10:]
    if not old:
        return turns
    fits = old[-CAP:]  # the model's input is limited
    return [summary_turn(await model(fits)), *recent]


def calls(outcome: Outcome) -> int:
    """How often the model was called, as `show` says it."""
    return int(outcome.came.split("calls of the model: ")[1].split(";")[0])


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    whole = list(dict.fromkeys(kit(language).turns_of(person(language, rng))))
    said = whole[: rng.randrange(12, len(whole))]
    model = CoverageSummarizer(0)
    if how == "broken":
        history = await compact(said, model)
    else:
        policy = CountPolicy(compress_after=len(said) - 1, keep_recent=10)
        store = InMemorySessionStore(policy=policy, summarizer=in_pieces(model, CAP))
        for turn in said:
            await store.append("desk", turn)
        history = await store.get_history("desk")
    held = model.stands_for(history)
    lost = [turn for turn in said if turn.content not in held]
    came = f"{len(said)} turns said, {len(history)} kept, calls of the model: {len(model.covered)}"
    return Outcome(f"{came}; in no summary: {short(lost[0].content)}" if lost else came, len(lost), len(said))


EXHIBIT = Exhibit(
    name="capped",
    reference="blueberrycongee/wuu#142",
    kind="compression",
    title="What the model could not take",
    unit="turns lost",
    notebook="03_compress_by_count",
    broken=(compact,),
    show=show,
    fault="`old[-CAP:]` is what fits, and everything before it is replaced by a summary that has never seen it."
    " With up to 20 turns nothing is wrong.",
    ours="`in_pieces`: as many calls as it takes, each with the summary of all before.",
)
