"""A window that begins between a tool's call and its result."""

from __future__ import annotations

import random

from tri_memory import ChatTurn
from tri_memory.lab.chapters.ch16.room import Exhibit, How, Outcome, kit, person, short
from tri_memory.session import compression

LAST = 8


def window(turns: list[ChatTurn], last: int = LAST) -> list[ChatTurn]:
    """The system turn, and the last turns of the conversation."""
    head = [turn for turn in turns[:1] if turn.role == "system"]
    return head + turns[len(head) :][-last:]


async def show(how: How, language: str, rng: random.Random) -> Outcome:
    turns = kit(language).turns_of(person(language, rng))
    turns = turns[: rng.randrange(LAST + 1, len(turns) + 1)]
    sent = window(turns) if how == "broken" else compression.window(turns, LAST)
    results = [i for i, turn in enumerate(sent) if turn.role == "tool"]
    orphans = [i for i in results if not any(turn.tool_name == sent[i].tool_name for turn in sent[:i])]
    came = f"{len(sent)} turns, the first from {sent[0].role}: {short(sent[0].content)}"
    return Outcome(came, len(orphans), len(results))


EXHIBIT = Exhibit(
    name="parted",
    reference="letta#2605",
    kind="compression",
    title="A result without its call",
    unit="tool results without a call",
    notebook="03_compress_by_count",
    broken=(window,),
    show=show,
    fault="The cut is a number, and does not look where it falls. Where it falls between a call and its result,"
    " the prompt begins with a tool that nobody called. Endpoints refuse that, in one conversation out of"
    " many.",
    ours="`window` never opens with a result whose call was cut off, and a fold never parts the two.",
)
