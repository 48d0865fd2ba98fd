"""What people's reactions say about the memories in the prompt, and weights that learn from it.

A button says it outright. The next message says it by the way: who asks on found the memory relevant, who changes the
subject did not, who corrects says that it was wrong. Rewards add up to a weight for each memory, or for each layer,
which multiplies its score. `Chat` does not use them: a guess from the next message is wrong too often to bend what
everybody is told, so who wants weights says where. What it does not do: know which of the memories in a prompt deserved
the praise. All of them get it, and only many turns tell them apart.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, get_args

from tri_memory.agent.intent import tags
from tri_memory.agent.matching import terms
from tri_memory.agent.sentences import is_question
from tri_memory.contracts import require_count, shown

Signal = Literal["helpful", "unhelpful", "relevant", "irrelevant", "wrong"]
# What is said outright counts 0.2, as a correction does; what is only inferred counts half.
REWARDS: Mapping[str, float] = MappingProxyType(
    {"helpful": 0.2, "unhelpful": -0.2, "relevant": 0.1, "irrelevant": -0.1, "wrong": -0.2}
)
LEAST, MOST = 0.2, 2.0  # of a weight: nothing is silenced for good, and nothing drowns the score

_CORRECTION = re.compile(
    r"^(?:no|nope|wrong)\b(?!,? (?:thanks|thank you|problem|worries))|\b(?:that|this|it)(?:['’]s| is| was) "
    r"(?:wrong|not (?:right|true|correct|what)|incorrect|out ?dated|(?:the|my) old)\b"
    r"|\byou(?:['’]re| are) (?:wrong|mistaken)\b|\bnot any ?(?:more|longer)\b|\bno longer\b|\bi never said\b"
    r"|不对(?!吗)|错了|[记弄搞说]错|^不是|那是(?:以前|过去|旧|老)|已经不|早就?不|不再|我没说过",
    re.IGNORECASE,
)
_POINTING = re.compile(
    r"\b(?:it|its|that|this|those|these|they|them|one)\b|它|那[个些]|这[个些]|^那|呢[？?]?$", re.IGNORECASE
)


def implicit(asked: str, then: str, memories: Iterable[str] = ()) -> Signal | None:
    """What the message `then` says about the memories that were in the prompt when `asked` was answered; None for
    nothing, as thanks or a new statement do.

    >>> implicit("Which size do I wear?", "And is that size in stock?", ["size: 42"])
    'relevant'
    >>> implicit("Which size do I wear?", "No, that was my old size."), implicit("我穿几码？", "明天会下雨吗？")
    ('wrong', 'irrelevant')
    """
    if _CORRECTION.search(then.strip()):
        return "wrong"
    if not is_question(then):
        return None
    subject = terms(asked).union(*map(terms, memories))
    same = terms(then) & subject or set(tags(then)) & set(tags(asked)) or _POINTING.search(then)
    return "relevant" if same else "irrelevant"


class Weights:
    """A weight for each key (a memory, or a layer), 1.0 until something is learned, always within 0.2 to 2.0.

    `explore` is how often, 0 to 1, the last place of a choice goes to one that would not have been chosen: who never
    tries can't learn that a memory was better than its score. The same seed makes the same choices.
    """

    def __init__(self, *, explore: float = 0.0, seed: int = 0) -> None:
        if isinstance(explore, bool) or not isinstance(explore, int | float) or not 0 <= explore <= 1:
            raise ValueError(f"explore must be between 0 and 1; got {shown(explore)}")
        self._explore = explore
        self._random = random.Random(seed)
        self._weights: dict[str, float] = {}

    def of(self, key: str) -> float:
        return self._weights.get(key, 1.0)

    def learn(self, keys: Iterable[str], signal: Signal) -> None:
        """Add the signal's reward to each key, once. Raises ValueError for an unknown signal and a single string."""
        if signal not in REWARDS:
            raise ValueError(f"signal must be one of {', '.join(get_args(Signal))}; got {shown(signal)}")
        if isinstance(keys, str):
            raise ValueError(f"keys must be several keys; got the string {shown(keys)}: write [key]")
        for key in set(keys):
            self._weights[key] = min(MOST, max(LEAST, self.of(key) + REWARDS[signal]))

    def choose(self, scores: Mapping[str, float], k: int) -> list[str]:
        """The `k` keys of the highest score times weight, best first, equals in the order given.

        Raises ValueError for k < 1 and for a score that is negative or no number: a weight would turn its order round.
        """
        require_count("k", k, least=1)
        for key, score in scores.items():
            if not 0 <= score < float("inf"):
                raise ValueError(f"the score of {shown(key)} must be a number of at least 0; got {shown(score)}")
        ranked = sorted(scores, key=lambda key: -scores[key] * self.of(key))
        chosen, others = ranked[:k], ranked[k:]
        if others and self._explore and self._random.random() < self._explore:
            chosen[-1] = self._random.choice(others)
        return chosen

    def forget(self, keys: Iterable[str] | None = None) -> None:
        """Unlearn these keys, or everything."""
        for key in list(self._weights) if keys is None else keys:
            self._weights.pop(key, None)
