"""Material for the exercises: conversations with planted ids, and a summariser that takes few turns and counts them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tri_memory.contracts import ChatTurn
from tri_memory.summary import is_summary, summary_text

SMALL_TALK = {
    "en": (
        "Thanks for getting back to me so quickly, I was not sure anybody would read this on a Sunday evening",
        "No trouble at all, we are happy to help and there is always somebody here who looks after the desk",
        "My neighbour says the same about hers, so I suppose it is quite normal for that sort of thing to happen",
    ),
    "zh": (
        "不好意思这么晚还打扰你们，我也是下班以后刚到家才想起来这件事情",
        "没关系的，我们这边一直有人值班，您有什么问题随时都可以跟我们讲",
        "隔壁邻居家里那台也是这个样子，我想这种情况大概都是难免的吧",
    ),
}
TOLD = {
    "en": (", the order is {}, in case you need it", ", that makes {} in all", ", write down {} for me, please"),
    "zh": ("，订单号{}，您记一下", "，一共是{}块", "，麻烦备注{}，谢谢"),
}


def ids(rng: random.Random, told: Sequence[str]) -> list[str]:
    """An order id, an amount and a time, none of them in `told`."""
    while True:
        found = [
            f"{rng.choice('BHKRT')}{rng.choice('LNXZ')}-{rng.randrange(1000, 9999)}",
            f"{rng.randrange(1, 9)},{rng.randrange(100, 999)}",
            f"{rng.randrange(10, 23)}:{rng.randrange(10, 59)}",
        ]
        if not set(found) & set(told):
            return found


def span(language: str, planted: Sequence[str], rng: random.Random) -> list[ChatTurn]:
    """Twelve turns of small talk, three of which tell one of the three `planted` each."""
    texts = [rng.choice(SMALL_TALK[language]) for _ in range(12)]
    places = rng.sample(range(2, 11), len(planted))
    for place, id, sentence in zip(places, planted, TOLD[language], strict=True):
        texts[place] += sentence.format(id)
    return [ChatTurn("user" if i % 2 == 0 else "assistant", text) for i, text in enumerate(texts)]


class SmallSummariser:
    """Takes at most `cap` turns a call, keeps the calls, and knows which contents each of its texts stands for."""

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.covers: dict[str, set[str]] = {}
        self.calls: list[list[ChatTurn]] = []

    def __call__(self, turns: Sequence[ChatTurn]) -> str:
        if len(turns) > self.cap:
            raise ValueError(f"{len(turns)} turns, and the cap is {self.cap}")
        self.calls.append(list(turns))
        return self.remember(f"summary number {len(self.calls)}", self.stands_for(turns))

    def remember(self, text: str, covers: set[str]) -> str:
        """`text`, from now on known to stand for `covers`."""
        self.covers[text] = covers
        return text

    def stands_for(self, turns: Sequence[ChatTurn]) -> set[str]:
        """The contents that these turns hold, literally or through a summary."""
        held = {turn.content for turn in turns if not is_summary(turn)}
        return held.union(*(self.covers.get(summary_text(turn), set()) for turn in turns if is_summary(turn)))
