"""How likely is it that somebody asks for a clause later? Its own signs, who said it, and what stands around it.

A logistic regression: `chance` is 1 / (1 + exp(-sum of the weights)).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import regex as re

from tri_memory.contracts import ChatTurn
from tri_memory.session.clauses import Clause, Language, clauses, size
from tri_memory.session.cues import NOTED, REQUEST, SIGNS, signs
from tri_memory.summary import is_summary, summary_text

# Fitted on half of the hand-written users (those with odd numbers) and rounded. "tool:id" is an id in a tool's result;
# weights add up, so that "clock" only takes back a part of what "specific" and "user:number" give a time of day.
WEIGHTS = {
    "always": -1.8,
    "id": 1.1,
    "tool:id": 1.1,
    "specific": 0.7,
    "date": 0.5,
    "clock": -0.4,
    "place": 0.4,
    "contact": 0.4,
    "assistant:measure": 0.8,
    "assistant:promise": 0.6,
    "new value": 1.0,
    "user:number": 0.7,
    "user:day": 0.6,
    "user:health": 0.7,
    "user:wish": 0.4,
    "wish nearby": 0.5,
    "telling": 0.5,
    "telling twice": 0.7,
    "decision": 0.3,
    "order": 0.5,
    "noted": 0.5,
    "first": -0.6,
    "hedge": -0.4,
    "tool": -0.5,
}
CENTRALITY = -4.0  # times the cosine with the centre of all clauses, which is where small talk lies

VALUE = frozenset({"id", "date", "day", "clock", "money", "measure"})
TELLING = frozenset({"wish", "refusal", "order", "change", "decision", "health", "label", "contact"})
BRIEF = {"en": 2, "zh": 3}  # words, characters
ALONE = {"en": 1, "zh": 2}
ENDS = 1_000  # characters at either end of a neighbouring turn that are looked at

_WORD = re.compile(r"[a-z0-9][a-z0-9'’-]{2,}|[\u3400-\u9fff]+")
_EMPTY = re.compile(
    r"the|and|but|for|with|from|that|this|these|those|was|were|are|been|have|has|had|not|you|your|she|her|his|him|they"
    r"|them|their|our|its|what|which|who|when|how|can|will|would|could|should|about|just|very|one|some|any|all|into|out"
    r"|off|get|got|too|did|does|than|then|there|here|well|yes|it's|i'm|i've|i'll|don't|that's"
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A clause that may go into the summary; `place` is its number among the candidates of the span."""

    text: str
    turn: int
    sentence: int
    place: int
    size: int
    signs: frozenset[str]
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Who says a turn, what the turns beside it are about, and whether the answer takes note of it."""

    role: str
    neighbours: frozenset[str] = frozenset()
    noted: bool = False


def chance(candidate: Candidate, extra: float = 0.0) -> float:
    """The estimated chance that somebody asks for it, in (0, 1)."""
    score = WEIGHTS["always"] + extra + sum(WEIGHTS.get(name, 0.0) for name in sorted(candidate.evidence))
    return 1 / (1 + math.exp(-score))


def candidates(span: Sequence[ChatTurn], language: Language) -> list[Candidate]:
    """The clauses of a span in order, the old summary's first.

    Left out are tool calls (their results are in), the assistant's questions, and the brief clauses that show nothing:
    interjections, mostly.
    """
    found: list[Candidate] = []
    for at, turn in enumerate(span):
        if turn.role == "assistant" and turn.tool_name:
            continue
        old = is_summary(turn)
        around = Surroundings("user") if old else surroundings(span, at, language)
        for i, piece in enumerate(clauses(summary_text(turn) if old else turn.content, language)):
            own, length = signs(piece.text, language), size(piece.text, language)
            shown = evidence(piece, own, around, language) | ({"first"} if i == 0 and not old else set())
            if old or not (
                _only_asks(shown) or (length <= BRIEF[language] and _shows_nothing(shown, length <= ALONE[language]))
            ):
                found.append(Candidate(piece.text, at, piece.sentence, len(found), length, own, frozenset(shown)))
    return found


def surroundings(span: Sequence[ChatTurn], at: int, language: Language) -> Surroundings:
    """The turn beside which something stands; only the other speakers' turns count."""
    turn = span[at]
    beside = [span[i] for i in (at - 1, at + 1) if 0 <= i < len(span) and span[i].role != turn.role]
    ends = [f"{t.content[:ENDS]}\n{t.content[-ENDS:]}" for t in beside]
    answer = span[at + 1].content[:ENDS] if turn.role == "user" and at + 1 < len(span) else ""
    terms = frozenset(term for text in ends for term in content_terms(text))
    return Surroundings(turn.role, terms, bool(NOTED[language].search(answer)))


def evidence(piece: Clause, own: frozenset[str], around: Surroundings, language: Language) -> set[str]:
    """The names of everything that speaks for or against a clause; those without a weight don't matter."""
    role = around.role
    found = {role, *own, *(f"{role}:{sign}" for sign in own)}
    if own & VALUE or "number" in own:
        found.add("specific")
    if role == "user" and "change" in own and own & (VALUE | {"number", "name", "place"}):
        found.add("new value")
    telling = len(own & TELLING)
    if telling:
        found.add("telling" if telling == 1 else "telling twice")
    if piece.asks:
        found.add("asks")
    if around.noted:
        found.add("noted")
    if content_terms(piece.text) & around.neighbours:
        found.add("echoed")  # the other one takes it up, or had offered it
    asked_for = REQUEST[language].search(piece.context) is not None
    if role == "user" and "wish" not in own and (asked_for or SIGNS[language]["wish"].search(piece.context)):
        found.add("wish nearby")
        if asked_for or size(piece.context, language) <= 2 * BRIEF[language]:
            found.add("wish in brief")
    return found


def content_terms(text: str) -> frozenset[str]:
    """Words that mean something, of three letters or more; of Chinese text all pairs of neighbouring characters."""
    found: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if word[0] >= "\u3400":
            found.update(word[i : i + 2] for i in range(len(word) - 1))
        elif not _EMPTY.fullmatch(word):
            found.add(word)
    return frozenset(found)


def _only_asks(shown: set[str]) -> bool:
    return "asks" in shown and (
        "assistant" in shown or not shown & {"specific", "wish", "refusal", "health", "place", "wish nearby"}
    )


def _shows_nothing(shown: set[str], alone: bool) -> bool:
    """Whether a brief clause is an interjection, as far as can be seen; `alone`: it is a single word."""
    if shown & (VALUE | {"place"}):
        return False
    return "user" not in shown or not shown & ({"echoed", "wish in brief"} | (set() if alone else TELLING))
