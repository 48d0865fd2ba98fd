"""Which ids and preferences a text names, by rule: the names are kept, all other text can be dropped.

The rules are tables, `extract_rules.py` and `preference_rules.py`. What they do not do: understand. An id of a shape
that no rule has is missed, and a shape that looks like an id, such as an unknown product's name, is taken for one, with
a low confidence.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tri_memory.contracts import ChatTurn
from tri_memory.entity.extract_rules import RULES
from tri_memory.entity.rule import Kind, Rule, require_confidence, require_kind

LONGEST_FOLD = 4  # characters; what stands for more (\ufdfa for 18) is no part of an id, and would swell the text
# Invisible, and copied along with an id: zero-width signs, soft hyphens, marks of direction and of an emoji's look.
_INVISIBLE = {"\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\ufe0e", "\ufe0f", "\u200e", "\u200f"} | {
    chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
_HYPHENS = dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\uff0d\ufe63", "-")
_INJECTED = re.compile(r"<memory\b.*?(?:</memory>|\Z)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Entity:
    """What a text names. `start` and `end` are positions in that text, in characters: `text == whole[start:end]`.

    `value` is the normalised text: two ways to write an id give the same one. `confidence` is in (0, 1]: a rank among
    rules, set by hand, no probability. ValueError for a kind, a span or a confidence that can't be; the message doesn't
    hold the text, since an id may be sensitive.
    """

    kind: Kind
    text: str
    value: str
    start: int
    end: int
    confidence: float

    def __post_init__(self) -> None:
        require_kind(self.kind)
        require_confidence(self.confidence)
        if not 0 <= self.start < self.end or self.end - self.start != len(self.text):
            raise ValueError(
                f"start and end must span the {len(self.text)} characters of text; got {self.start} and {self.end}"
            )


@dataclass(frozen=True, slots=True)
class Saving:
    """What is left of some turns when only entities are kept: characters as they were written, each mention counted."""

    kept_characters: int
    all_characters: int
    entities: int
    turns: int

    @property
    def share(self) -> float:
        """Kept of all, 0 to 1; 0 where there was no text."""
        return self.kept_characters / self.all_characters if self.all_characters else 0.0


def extract(text: str, rules: Iterable[Rule] = RULES) -> list[Entity]:
    """The entities of `text` in order of place, no two overlapping: of two, the surer, the longer, the earlier stays.

    Full-width forms, hyphens of any kind and invisible signs are read as what they look like. What memory itself put
    into a prompt, between <memory …> and </memory>, names nothing. The time grows with the text's length and not
    faster, as long as every rule's repeats are bounded, as those of `RULES` are.

    >>> [(e.kind, e.value) for e in extract("Order #bx 2207 came without the pump, serial ＫＷ-448120.")]
    [('CASE_ID', 'BX-2207'), ('DEVICE_ID', 'KW-448120')]
    >>> [(e.kind, e.value) for e in extract("订单号BX2207还没到")]
    [('CASE_ID', 'BX-2207')]
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a string; got a {type(text).__name__}")
    folded, origin = _fold(text)
    folded = _INJECTED.sub(lambda match: "\n" * len(match[0]), folded)
    found = []
    for rule in rules:
        for match in _compiled(rule.pattern).finditer(folded):
            first, after = match.span("what")
            if first < after:
                start, end = origin(first), origin(after - 1) + 1
                value = rule.value_of(match["what"])
                found.append(Entity(rule.kind, text[start:end], value, start, end, rule.confidence))
    return without_overlaps(found)


def without_overlaps(entities: Iterable[Entity]) -> list[Entity]:
    """Of entities of one text, such as those of a pipeline and those of the rules, the ones that stand, in order."""
    ranked = sorted(entities, key=lambda e: (-e.confidence, e.start - e.end, e.start))
    taken = bytearray(max((entity.end for entity in ranked), default=0))
    kept = []
    for entity in ranked:
        if not any(taken[entity.start : entity.end]):
            taken[entity.start : entity.end] = b"\1" * (entity.end - entity.start)
            kept.append(entity)
    return sorted(kept, key=lambda e: e.start)


def saving(turns: Iterable[ChatTurn | str], extractor: Callable[[str], Sequence[Entity]] = extract) -> Saving:
    """How much of the turns' text is kept when only their entities are."""
    texts = [turn.content if isinstance(turn, ChatTurn) else turn for turn in turns]
    found = [entity for text in texts for entity in extractor(text)]
    return Saving(sum(len(e.text) for e in found), sum(map(len, texts)), len(found), len(texts))


def _fold(text: str) -> tuple[str, Callable[[int], int]]:
    """The text as the rules read it, and where in `text` each of its characters comes from."""
    if text.isascii():
        return text, int
    parts = [_folded(character) for character in text]
    folded = "".join(parts)
    if all(map(len, parts)) and len(folded) == len(text):
        return folded, int
    places = [place for place, part in enumerate(parts) for _ in part]
    return folded, places.__getitem__


@lru_cache(maxsize=1 << 16)
def _folded(character: str) -> str:
    if character in _INVISIBLE:
        return ""
    folded = _HYPHENS.get(character) or unicodedata.normalize("NFKC", character)
    return folded if len(folded) <= LONGEST_FOLD else character


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII | re.IGNORECASE)
