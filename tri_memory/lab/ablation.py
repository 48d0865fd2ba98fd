"""What each part of the kit's best recall is worth: the same ranking, each time without one of them.

A ranking that loses nothing without a part doesn't need it. "Words and meaning by rank" has the same two scores and no
extras; what it loses beyond them is what scores say and places don't.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tri_memory.lab.history import History
from tri_memory.lab.rankers import Ask, Asked, Ranker, conversation
from tri_memory.recall.conversation import FULL, PLAIN, ConversationIndex, Found, Said
from tri_memory.recall.fusion import fuse

WHOLE = "conversation"


def _rewritten(change: Callable[[int, Said], Said]) -> Ranker:
    """The whole ranking over turns that say something else about themselves."""

    def ranker(history: History) -> Ask:
        said = [change(row, one) for row, one in enumerate(history.said)]
        changed = replace(history, said=said)
        changed.__dict__["vectors"] = history.vectors  # the meaning of a turn is that of what was really said
        return conversation(changed)

    return ranker


def joined_by_rank(history: History) -> Ask:
    """Words and meaning, both with their neighbours, by reciprocal rank; no extras, no speaker."""
    index = ConversationIndex(history.said, history.vectors, PLAIN)

    def ask(asked: Asked) -> list[int]:
        found = index.rank(asked.text, asked.vector, max(1, len(index)))
        return history.memories(row for row, _ in fuse(_by(found, "words"), _by(found, "meaning")))

    return ask


def _by(found: list[Found], part: str) -> list[tuple[int, float]]:
    scored = [(one.row, float(getattr(one, part))) for one in found]
    return sorted((pair for pair in scored if pair[1] > 0), key=lambda pair: (-pair[1], pair[0]))


ABLATIONS: dict[str, Ranker] = {
    WHOLE: conversation,
    "without neighbouring turns": _rewritten(lambda row, one: replace(one, session=row)),
    "without dates": _rewritten(lambda row, one: replace(one, day="")),
    "without meaning": partial(conversation, weights=FULL._replace(meaning=0)),
    "without the speaker's name": partial(conversation, weights=FULL._replace(speaker=0)),
    "without length, asking, when": partial(conversation, weights=PLAIN),
    "words and meaning by rank": joined_by_rank,
}
