"""The built-in model: no network, no key, no knowledge. It answers only by quoting its prompt.

So it shows what memory does. A fact that stands in the prompt is found and quoted with its place; a fact that has
fallen out of the window is not. A sentence is scored by how much of the question it covers, alone, with the rest of its
turn, and with the turn before; by whether it has the number or the time that is asked for; and by who said it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tri_memory.agent import replies
from tri_memory.agent.matching import question, terms
from tri_memory.agent.passages import SPOKEN, Passage, passages
from tri_memory.agent.prompt import Message
from tri_memory.agent.sentences import asks, is_chinese, is_question

# Below it nothing is quoted. Chosen on half of the hand-written users, as are the weights in `score`.
THRESHOLD: dict[replies.Language, float] = {"en": 0.30, "zh": 0.26}
SECOND = 0.40  # a second place is quoted where it has at least this share of the first's score
LONGEST_QUESTION = 2_000  # characters
LONGEST_QUOTE: dict[replies.Language, int] = {"en": 240, "zh": 100}  # characters


class PromptOnlyModel:
    """Finds the answer among the sentences of the messages before the last user message, or says that it is not there.

    A statement is answered with "All right."
    """

    async def __call__(self, messages: Sequence[Message]) -> str:
        """The reply to the last user message; ValueError where there is none."""
        asked_at = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=None)
        if asked_at is None:
            raise ValueError("the messages have no user message to answer")
        asked = messages[asked_at]["content"][:LONGEST_QUESTION]
        language: replies.Language = "zh" if is_chinese(asked) else "en"
        if not is_question(asked):
            return replies.NOTED[language]
        found = candidates([*messages[:asked_at], *messages[asked_at + 1 :]])
        return _reply(found, score(asked, found), language)


def candidates(messages: Sequence[Message]) -> list[Passage]:
    """The passages that may be quoted or lend context; of two equal ones the first, so that a quotation of a
    preference doesn't count as something said in the conversation."""
    told = [
        {**message, "content": replies.without_frame(message["content"])} if message["role"] == "assistant" else message
        for message in messages
    ]
    return list({passage.text: passage for passage in reversed(passages(told))}.values())[::-1]


def score(asked: str, found: Sequence[Passage]) -> NDArray[np.float64]:
    """How well each passage answers, about -0.5 to 1.2; -inf for one that must not be quoted. Shape (len(found),)."""
    own = [terms(passage.text) for passage in found]
    own = [its | _answered(found, own, i) for i, its in enumerate(own)]
    whole: dict[int, set[str]] = {}  # by part
    for passage, its in zip(found, own, strict=True):
        whole.setdefault(passage.part, set()).update(its)
    spoken = {passage.part for passage in found if passage.place in SPOKEN}
    query = question(asked, own)
    last = max(whole, default=0) or 1
    scores = np.full(len(found), -np.inf)
    for i, (passage, its) in enumerate(zip(found, own, strict=True)):
        if asks(passage.text) and not _tells_a_number(passage.text, asked):
            continue
        turn = whole[passage.part]
        before = whole[passage.part - 1] if {passage.part - 1, passage.part} <= spoken else set()
        coverage = 0.5 * query.coverage(its) + 0.3 * query.coverage(turn) + 0.2 * query.coverage(turn | before)
        newest = 0.04 * passage.part / last  # of two that say the same, the later one counts
        wrong_speaker = passage.part in spoken and query.about_assistant != (passage.place == "assistant")
        scores[i] = coverage + query.fit(passage.text) + newest - 0.07 * wrong_speaker - 0.2 * asks(passage.text)
    return scores


def _answered(found: Sequence[Passage], own: Sequence[set[str]], i: int) -> set[str]:
    """The terms of the question that a turn's first sentence answers: "42." means something behind "Which size?"."""
    if i == 0 or found[i].place not in SPOKEN or found[i - 1].part != found[i].part - 1:
        return set()
    return own[i - 1] if found[i - 1].place in SPOKEN and asks(found[i - 1].text) else set()


def _tells_a_number(sentence: str, asked: str) -> bool:
    """A question says something only where it brings a number or id of its own ("can BX-2207 go back?")."""
    return any(any(sign.isdigit() for sign in term) for term in terms(sentence) - terms(asked))


def _reply(found: Sequence[Passage], scores: NDArray[np.float64], language: replies.Language) -> str:
    """The best place and perhaps a second one, each a line; or that there is none."""
    lines: list[str] = []
    used: set[int] = set()
    for i in map(int, np.argsort(-scores, kind="stable")):
        if len(lines) == 2 or scores[i] < max(THRESHOLD[language] if not lines else 0, SECOND * scores.max()):
            break
        span = _around(found, i, LONGEST_QUOTE[language])
        if used.isdisjoint(span):
            used.update(span)
            joint = "" if is_chinese(found[i].text) else " "
            text = joint.join(found[k].text for k in span)
            lines.append(replies.quote(text, found[i].place, found[i].day, language))
    return "\n".join(lines) or replies.NOT_FOUND[language]


def _around(found: Sequence[Passage], at: int, longest: int) -> range:
    """The sentence and its neighbours in the same turn, later ones first, as far as `longest` characters go."""
    start, stop, length = at, at + 1, len(found[at].text)
    while stop < len(found) and found[stop].part == found[at].part and length + len(found[stop].text) <= longest:
        length += len(found[stop].text)
        stop += 1
    while start > 0 and found[start - 1].part == found[at].part and length + len(found[start - 1].text) <= longest:
        start -= 1
        length += len(found[start].text)
    return range(start, stop)
