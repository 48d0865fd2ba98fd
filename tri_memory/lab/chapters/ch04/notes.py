"""Summaries without a model: the notes that the authors of `data/` wrote by hand, one a visit."""

from __future__ import annotations

from collections.abc import Sequence

from tri_memory.contracts import ChatTurn
from tri_memory.lab.datasets import Dataset
from tri_memory.summary import is_summary, summary_text

MOST_WORDS, MOST_CHARACTERS = 100, 150  # of an English and of a Chinese summary, as for every summariser here


class Notes:
    """A summariser for one person: the notes of the visits in the span, the newest that fit into a summary.

    A visit counts as soon as one of its turns is folded, and as long as its note stands in the summary before.
    """

    def __init__(self, dataset: Dataset, user: str) -> None:
        self.language = dataset.language
        self.notes = [session.summary for session in dataset.of(user)]
        self.visit_of = {
            _spoken(turn): number for number, session in enumerate(dataset.of(user)) for turn in session.turns
        }

    def __call__(self, turns: Sequence[ChatTurn]) -> str:
        visits = {self.visit_of[_spoken(turn)] for turn in turns if not is_summary(turn)}
        earlier = " ".join(summary_text(turn) for turn in turns if is_summary(turn))
        visits |= {number for number, note in enumerate(self.notes) if note in earlier}
        taken: list[str] = []
        for number in sorted(visits, reverse=True):
            longer = [self.notes[number], *taken]
            if self._size(longer) > (MOST_CHARACTERS if self.language == "zh" else MOST_WORDS):
                break
            taken = longer
        return "\n".join(taken)

    def _size(self, notes: Sequence[str]) -> int:
        return sum(map(len, notes)) if self.language == "zh" else sum(len(note.split()) for note in notes)


def _spoken(turn: ChatTurn) -> str:
    """What was said, without the paste beneath it."""
    return turn.content.split("\n\n")[0]
