"""The small summariser of exercise 03-3, explaining what is wrong with a call."""

from __future__ import annotations

from collections.abc import Sequence

from tri_memory.contracts import ChatTurn
from tri_memory.lab.chapters.ch03.planted import SmallSummariser
from tri_memory.lab.exercises.kit import Wrong
from tri_memory.summary import is_summary


class WatchedSummariser(SmallSummariser):
    """Takes at most `cap` turns a call; an ill-formed call is Wrong."""

    def __call__(self, turns: Sequence[ChatTurn]) -> str:
        turns = list(turns)
        if not turns:
            raise Wrong("One call got no turns at all: an empty piece costs money, too.")
        if len(turns) > self.cap:
            raise Wrong(
                f"One call got {len(turns)} turns, and the cap is {self.cap}. A carried summary takes a place, too."
            )
        if any(turn.role == "system" and not is_summary(turn) for turn in turns):
            raise Wrong("A carried summary needs its prefix, or it isn't known as one: use summary_turn(text).")
        return super().__call__(turns)
