"""BM25: which texts share the rarest words with a query. English by stems, Chinese by characters and pairs.

No dictionary and no list of stop words: a pair of characters needs no word boundary, and a word that stands everywhere
weighs next to nothing. What it can't do: see that two different words mean the same.
Sources: Robertson and Zaragoza (2009), The Probabilistic Relevance Framework: BM25 and Beyond, in the variant of Lucene
as bm25s computes it (Lù 2024, arXiv:2407.03618); Porter's English stemmer from the Snowball project.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

import bm25s
import numpy as np
import regex
from bm25s.tokenization import Tokenized
from snowballstemmer.english_stemmer import EnglishStemmer

from tri_memory.contracts import require_count, shown

_UNSPACED = r"[\p{Han}\p{Hiragana}\p{Katakana}ー]"
_SIGN = rf"[[\p{{L}}\p{{M}}\p{{Nd}}]--{_UNSPACED}]"  # of a word, a number or an id
_END = rf"(?![-_./']?{_SIGN})"
_GROUPS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d+"  # 1,299.50 and 3.5: a unit may follow, as in 3.5kg
_PIECE = regex.compile(
    rf"(?V1)(?P<unspaced>{_UNSPACED}+)"
    rf"|(?P<number>(?:{_GROUPS})(?=\p{{L}}{{0,4}}{_END})|\d+{_END})"
    rf"|{_SIGN}+(?:[-_./']{_SIGN}+)*"
)
_RUN = regex.compile(rf"(?V1){_UNSPACED}{{2,}}")
_WORD = regex.compile(r"(?V1)[\p{L}\p{M}]+(?:'[\p{L}\p{M}]+)*|\p{Nd}+")
_DIGIT = regex.compile(r"\p{Nd}")
_LONGEST_WORD = 64  # characters; what is longer is no word of English, and the stemmer would take its time


def tokens(text: str) -> list[str]:
    """What of a text is counted, in order, with repetitions.

    Full-width forms and capitals are folded (NFKC, case folding). Chinese and Japanese give each pair of neighbouring
    characters, and the character itself where it stands alone; English gives stems; an id is kept whole and in parts;
    a number loses the commas of its thousands. Raises ValueError for what is not a string.

    >>> tokens("成语接龙 ok")
    ['成语', '语接', '接龙', 'ok']
    >>> tokens("Returned the ＢＸ-2207 for 1,299.50")
    ['return', 'the', 'bx-2207', 'bx', '2207', 'for', '1299.50']
    """
    if not isinstance(text, str):
        raise ValueError(f"a text must be a string; got {shown(text)}")
    return list(_tokens(_folded(text)))


class LexicalIndex:
    """BM25 over `texts`, whose place in the sequence is their row. It doesn't change: for other texts, make another.

    What counts is `tokens`, and in Chinese each character besides its pairs: 猫 is in 我的猫, and is no pair of it.
    Raises ValueError for a single string and for an item that is no string, naming its row.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        if isinstance(texts, str | bytes):
            raise ValueError(f"texts must be a list of strings; got the single text {shown(texts)}")
        self._vocabulary: dict[str, int] = {}
        rows = [self._numbered(row, text) for row, text in enumerate(texts)]
        self._size = len(rows)
        self._bm25 = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
        if self._vocabulary:
            self._bm25.index(Tokenized(rows, self._vocabulary), create_empty_token=False, show_progress=False)

    def __len__(self) -> int:
        return self._size

    def rank(self, query: str, k: int) -> list[tuple[int, float]]:
        """The `k` rows that match best, as (row, BM25 score), best first, equal scores in order of row.

        A score is above 0 and has no upper end; it can be compared within one query only. A row that shares nothing
        with the query is not among them, so an empty query gives []. Raises ValueError for k < 1.
        """
        require_count("k", k, least=1)
        known = [self._vocabulary[term] for term in terms(query) if term in self._vocabulary]
        if not known:
            return []
        scores = self._bm25.get_scores_from_ids(known)
        rows = np.flatnonzero(scores > 0)
        if len(rows) > k:
            rows = rows[scores[rows] >= np.partition(scores[rows], -k)[-k]]
        best = rows[np.argsort(-scores[rows], kind="stable")][:k]
        return list(zip(best.tolist(), scores[best].tolist(), strict=True))

    def _numbered(self, row: int, text: str) -> list[int]:
        if not isinstance(text, str):
            raise ValueError(f"texts[{row}] must be a string; got {shown(text)}")
        number = self._vocabulary.setdefault
        return [number(term, len(self._vocabulary)) for term in terms(text)]


def terms(text: str) -> Iterator[str]:
    """The tokens of a text, and the characters of its pairs."""
    yield from tokens(text)
    for run in _RUN.findall(_folded(text)):
        yield from run


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded).replace("’", "'")  # case folding can undo what NFKC composed


def _tokens(text: str) -> Iterator[str]:
    for match in _PIECE.finditer(text):
        piece = match.group()
        if match["unspaced"]:
            yield from (piece[i : i + 2] for i in range(max(1, len(piece) - 1)))
        elif match["number"]:
            yield piece.replace(",", "")
        else:
            yield from _words(piece) if len(piece) <= _LONGEST_WORD else _words.__wrapped__(piece)  # not kept


@lru_cache(maxsize=1 << 16)
def _words(piece: str) -> tuple[str, ...]:
    """The stems of a word or of words joined by signs; with a digit in it, it is an id and comes first itself."""
    parts = tuple(map(_stem, _WORD.findall(piece)))
    return (piece, *parts) if _DIGIT.search(piece) else parts


def _stem(word: str) -> str:
    # A stemmer keeps the word in itself while it works, so that threads must not share one.
    return str(EnglishStemmer().stemWord(word)) if len(word) <= _LONGEST_WORD else word
