"""Summaries without thought, to beat: the first sentences, and sentences drawn at random."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from tri_memory.agent.sentences import is_chinese, split
from tri_memory.contracts import ChatTurn
from tri_memory.summary import is_summary, summary_text

MOST_WORDS, MOST_CHARACTERS = 100, 150  # of an English and of a Chinese summary


def first_sentences(turns: Sequence[ChatTurn]) -> str:
    """The old summary and then the turns, from the front, as far as there is room."""
    sentences = _sentences(turns)
    return _joined(sentences, _that_fit(sentences, range(len(sentences))))


class RandomSentences:
    """Sentences of the old summary and of the turns, drawn until the room is full, told in their order.

    The same turns and seed give the same summary.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __call__(self, turns: Sequence[ChatTurn]) -> str:
        sentences = _sentences(turns)
        dice = random.Random(f"{self.seed} {sentences}")
        return _joined(sentences, sorted(_that_fit(sentences, dice.sample(range(len(sentences)), len(sentences)))))


def _sentences(turns: Sequence[ChatTurn]) -> list[str]:
    return [s for turn in turns for s in split(summary_text(turn) if is_summary(turn) else turn.content)]


def _that_fit(sentences: Sequence[str], order: Iterable[int]) -> list[int]:
    """Which sentences to take, in this order, passing over those that are too long for the room left."""
    taken: list[int] = []
    chinese = is_chinese("".join(sentences))
    room = MOST_CHARACTERS if chinese else MOST_WORDS
    for i in order:
        length = len(sentences[i]) if chinese else len(sentences[i].split())
        if length <= room:
            taken.append(i)
            room -= length
    return taken


def _joined(sentences: Sequence[str], taken: Sequence[int]) -> str:
    return ("" if is_chinese("".join(sentences)) else " ").join(sentences[i] for i in taken)
