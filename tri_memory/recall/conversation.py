"""An index over the turns of conversations: the words and the meaning of a turn, each with those of its neighbours.

    score(question, turn) = minmax(BM25) + 0.5 * minmax(cosine) + 0.3 * [the question names the speaker] + extras
    extras = 0.05 * ln(1 + words of the turn) - 0.05 * [the turn ends in a question]
             + 0.1 * [the question asks when, and the turn names a time]

What is asked for often stands next door. So counts of words and unit vectors are smoothed by the triangle kernel: a
turn gets 1 - d/4 of each turn of its own session at distance d < 4; how rare a word is (df) is counted in single turns.
minmax goes over all turns: 0 the lowest, 1 the highest, 0 for all if equal. BM25 is that of Robertson and Zaragoza
(2009). Kernel and weights were tuned on two conversations of LoCoMo (Maharana et al. 2024), small talk in English.
It can't tell an answer from what only sounds like it, join two facts, notice that nothing was said (a turn always comes
first), give scores that compare between questions, or find one Chinese character inside a longer run by its words
(`LexicalIndex` can). It doesn't change; 100,000 turns of 512 dimensions take 1.4 GB to index, beside their vectors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tri_memory.contracts import require_count, require_text, shown
from tri_memory.recall.cosine import as_unit
from tri_memory.recall.lexical import tokens
from tri_memory.recall.stop_words import CHINESE, ENGLISH

KERNEL, K1, B = 4, 1.2, 0.75  # the distance in turns at which a neighbour counts for nothing; BM25
_BLOCK = 4_096  # rows multiplied at a time; a matrix product could give equal rows scores that differ
_NOISE = 1e-6  # what float32 leaves of equal cosines, which minmax would blow up
_Near = tuple[float, NDArray[np.intp]]
_STOP = frozenset(stem for word in ENGLISH for stem in tokens(word))
_NAME = r"(?<!{0}){{}}(?!{0})".format(r"[^\W\u3040-\u30ff\u3400-\u9fff]")  # ends where a word ends, Chinese apart
_ASKS = re.compile(r"[?？][\s\"'”’)）]*(?:\[[^][]*\]\s*)*$")  # a note in brackets, such as a picture's, may follow
_WHEN = re.compile(r"(?i)\s*when\b|.*(?:什么时[候间]|何时|哪[天年月]|几[号点月])")
_TIME = re.compile(
    r"(?i)\b(?:yesterday|today|tomorrow|tonight|last|next|ago|recently|weekend|morning|days?|weeks?|months?|years?"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september"
    r"|october|november|december|(?:19|20)\d\d)\b|[昨今明前后]天|[今明去前]年|[上下这]个?(?:周|月|星期|礼拜)"
    r"|周[一二三四五六日末]|星期|礼拜|最近|刚才|[\d一二三四五六七八九十][年月日号天点]"
)


@dataclass(frozen=True, slots=True)
class Said:
    """One turn. `session` parts the conversations; `day` is any text whose words should be found ("8 May, 2023")."""

    speaker: str
    text: str
    session: str | int
    day: str = ""

    def __post_init__(self) -> None:
        require_text("speaker", self.speaker)
        for name, value in (("text", self.text), ("day", self.day)):
            if not isinstance(value, str):
                raise ValueError(f"{name} must be a string; got {shown(value)}")


class Weights(NamedTuple):
    """What each part is worth beside the words, which are worth 1."""

    meaning: float = 0.5
    speaker: float = 0.3
    length: float = 0.05
    asking: float = 0.05
    when: float = 0.1


FULL = Weights()
PLAIN = Weights(length=0, asking=0, when=0)


class Found(NamedTuple):
    """A turn by its row, and the parts that its score is the sum of: `words` in [0, 1], the others times weight."""

    row: int
    score: float
    words: float
    meaning: float
    named: float
    extras: float


class ConversationIndex:
    """`said[i]` has the vector `vectors[i]`; a row of zeros, as a blank text gives it, has no meaning of its own.

    `vectors` (n, d) are brought to length 1; the weights were tuned for those of "Speaker: text". Sessions may be
    interleaved. Raises ValueError for what is no Said, naming its row, for another shape, for NaN and infinity.
    """

    def __init__(self, said: Sequence[Said], vectors: ArrayLike, weights: Weights = FULL) -> None:
        for row, each in enumerate(said):
            if not isinstance(each, Said):
                raise ValueError(f"said[{row}] must be a Said; got {shown(each)}")
        rows = np.asarray(vectors)
        if rows.ndim != 2 or len(rows) != len(said) or not rows.shape[1]:
            raise ValueError(f"vectors must have the shape ({len(said)}, d), a row for each turn; got {rows.shape}")
        near = list(_neighbours([each.session for each in said]))
        self._vectors = _unit(_smooth(_unit(rows), near))
        docs = [_words(f"{each.speaker}: {each.text}") for each in said]
        self._index([doc + _words(each.day) for doc, each in zip(docs, said, strict=True)], near)
        names, self._speaker = _numbered([each.speaker.strip() for each in said])
        self._names = [re.compile(_NAME.format(re.escape(name))) for name in names]
        asks, self._dated = (np.array([bool(cue.search(each.text)) for each in said], bool) for cue in (_ASKS, _TIME))
        self._extras = weights.length * np.log1p([len(doc) for doc in docs]) - weights.asking * asks
        self._weights = weights

    def __len__(self) -> int:
        return len(self._vectors)

    def rank(self, question: str, vector: ArrayLike, k: int) -> list[Found]:
        """The `k` turns that fit best, best first, equal scores in order of row; `vector` (d,) is the question's.

        With no known word in the question and a zero vector, nothing is found. Raises ValueError for k < 1, a question
        that is no string, and a vector of another shape.
        """
        require_count("k", k, least=1)
        if not isinstance(question, str):
            raise ValueError(f"question must be a string; got {shown(question)}")
        known = [self._vocabulary[word] for word in _words(question) if word in self._vocabulary]
        unit = as_unit(vector, self._vectors.shape[1], zero_ok=True)
        if not len(self) or not (known or unit.any()):
            return []
        words = _minmax(self._bm25(known))
        meaning = self._weights.meaning * _minmax(self._cosines(unit))
        named = self._weights.speaker * np.array([bool(name.search(question)) for name in self._names])[self._speaker]
        extras = self._extras + self._weights.when * (self._dated & bool(_WHEN.match(question)))
        scores = words + meaning + named + extras
        best = np.argsort(-scores, kind="stable")[:k]
        parts = np.stack([scores, words, meaning, named, extras])[:, best].T.tolist()
        return [Found(row, *part) for row, part in zip(best.tolist(), parts, strict=True)]

    def _index(self, docs: list[list[str]], near: list[_Near]) -> None:
        """Smoothed and weighed counts, by term: rows and weights of term t from starts[t] to starts[t + 1]."""
        size = len(docs)
        self._vocabulary, term = _numbered(word for doc in docs for word in doc)
        row = np.array([row for row, doc in enumerate(docs) for _ in doc], np.intp)
        df = np.bincount(np.unique(term * size + row) // max(size, 1))
        idf = np.log(1 + (size - df + 0.5) / (df + 0.5))
        keys = np.concatenate([term * (size + 1) + neighbour[row] for _, neighbour in near])
        unique, place = np.unique(keys, return_inverse=True)  # a count for each term and row that it reaches
        tf = np.bincount(place, weights=np.repeat([weight for weight, _ in near], len(term)))
        terms, rows = np.divmod(unique, size + 1)
        terms, self._rows, tf = (each[rows < size] for each in (terms, rows, tf))
        length = np.bincount(self._rows, weights=tf, minlength=size)
        norm = K1 * (1 - B + B * length * size / max(tf.sum(), 1))
        self._bm = idf[terms] * tf * (K1 + 1) / (tf + norm[self._rows])
        self._starts = np.searchsorted(terms, np.arange(len(self._vocabulary) + 1))

    def _bm25(self, known: list[int]) -> NDArray[np.float64]:
        scores = np.zeros(len(self))
        for part in (slice(self._starts[term], self._starts[term + 1]) for term in known):
            scores[self._rows[part]] += self._bm[part]
        return scores

    def _cosines(self, unit: NDArray[np.float32]) -> NDArray[np.float64]:
        blocks = (self._vectors[start : start + _BLOCK] for start in range(0, len(self), _BLOCK))
        return np.concatenate([(block * unit).sum(axis=1) for block in blocks]).astype(np.float64)


def _words(text: str) -> list[str]:
    return [word for word in tokens(CHINESE.sub(" ", text)) if word not in _STOP]


def _numbered(items: Iterable[Any]) -> tuple[dict[Any, int], NDArray[np.intp]]:
    """A number for each distinct item, in order of appearance, and the numbers of all items."""
    number: dict[Any, int] = {}
    return number, np.array([number.setdefault(item, len(number)) for item in items], np.intp)


def _neighbours(sessions: Iterable[str | int]) -> Iterator[_Near]:
    """For each distance d within the kernel, before and behind: 1 - d/4, and each row's neighbour there (n: none)."""
    _, group = _numbered(sessions)
    order = np.argsort(group, kind="stable")
    groups = np.pad(group[order], KERNEL, constant_values=-1)
    rows = np.pad(order, KERNEL, constant_values=len(order))
    for d in range(1 - KERNEL, KERNEL):
        moved = slice(KERNEL + d, KERNEL + d + len(order))
        neighbour = np.empty_like(order)
        neighbour[order] = np.where(groups[moved] == group[order], rows[moved], len(order))
        yield 1 - abs(d) / KERNEL, neighbour


def _smooth(rows: NDArray[np.float32], near: list[_Near]) -> NDArray[np.float32]:
    padded = np.pad(rows, ((0, 1), (0, 0)))
    out = sum((np.float32(weight) * padded[neighbour] for weight, neighbour in near), np.zeros_like(rows))
    return np.where(np.abs(out).max(axis=1, keepdims=True) > _NOISE, out, 0)  # opposites cancel, but for their rounding


def _minmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    low, spread = scores.min(), np.ptp(scores)
    return (scores - low) / spread if spread > _NOISE else np.zeros_like(scores)


def _unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    return np.array([as_unit(row, zero_ok=True) for row in rows], np.float32).reshape(rows.shape)
