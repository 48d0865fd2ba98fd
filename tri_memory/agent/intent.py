"""What a message is about, and what will be needed next, by a table of rules in English and Chinese.

A question about dinner needs the allergy, though it shares no word with it. The table is a teacher's to extend. What it
does not do: understand. Other words than the table's have no intent, and the order of memories stays as it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intent:
    """One row: a message in which `asks` is found has this tag, and needs the memories in which `needs` is found.
    `then` are the tags of what people usually come to next."""

    tag: str
    asks: str
    needs: str
    then: tuple[str, ...] = ()


INTENTS: tuple[Intent, ...] = (
    Intent(
        "size",
        r"\bsizes?\b|\bfit\b|\bwear\b|\btoo (?:big|small|tight|large|loose)\b"
        r"|尺[码寸]|鞋码|几码|多大码|合脚|合身|太[大小紧松]",
        r"\bsize\b|尺码|鞋码",
        then=("return",),
    ),
    Intent(
        "food",
        r"\b(?:eat|food|lunch|dinner|breakfast|snacks?|cook|recipe|restaurant|menu)\b|吃|[早中午晚]饭|[早午晚]餐|点菜|食谱|餐厅",
        r"\ballerg|\b(?:vegetarian|vegan|coeliac|celiac|diabetic|food)\b|过敏|素|糖尿|[吃喝]",
    ),
    Intent(
        "delivery",
        r"\b(?:parcel|deliver\w*|arrive\w*|courier|tracking|shipp\w+)\b|快递|物流|送[到货达]|到货|派送|发货",
        r"\b(?:address|order|delivery)\b|地址|订单|收货",
        then=("return",),
    ),
    Intent(
        "return",
        r"\b(?:return(?:s|ed|ing)?|refund\w*|exchange\w*|send (?:it|them) back)\b|退[货款换]|换货|退掉",
        r"\b(?:order|case|refund|payment)\b|订单|工单|退款|支付",
        then=("delivery", "size"),
    ),
    Intent(
        "repair",
        r"\b(?:broken|broke|repair\w*|fix|warranty|(?:does not|doesn['’]t|won['’]t) (?:work|start|turn on))\b"
        r"|坏了|维修|修[一理好]|保修|故障|开不了机",
        r"\b(?:device|case|warranty|model)\b|设备|型号|工单|保修",
        then=("return",),
    ),
    Intent(
        "choice",
        r"\b(?:recommend\w*|suggest\w*|gift|ideas?|which (?:one|should))\b|推荐|建议|礼物|哪[个款种]好|选哪",
        r"\b(?:likes|dislikes|prefers|allergic)\b|喜欢|过敏",
        then=("size", "delivery"),
    ),
    Intent(
        "greeting", r"^(?:hi|hello|hey|good (?:morning|evening))\b|^(?:你好|您好|早上好|晚上好)", r"\bname\b|名字|称呼"
    ),
)


def tags(text: str, intents: Sequence[Intent] = INTENTS) -> list[str]:
    """The intents of a message, in the order of the table.

    >>> tags("The parcel came, but the boots are too small."), tags("晚饭吃什么？")
    (['size', 'delivery'], ['food'])
    """
    return [intent.tag for intent in intents if re.search(intent.asks, text, re.IGNORECASE)]


def next_tags(text: str, intents: Sequence[Intent] = INTENTS) -> list[str]:
    """What will be asked next, by the table: the intents that follow those of `text`, without these themselves.

    >>> next_tags("Where is my parcel?")
    ['return']
    """
    now = tags(text, intents)
    following = [then for intent in intents if intent.tag in now for then in intent.then]
    return [tag for tag in dict.fromkeys(following) if tag not in now]


def need(memory: str, text: str, intents: Sequence[Intent] = INTENTS) -> int:
    """How much a message needs a memory: 2 now, 1 for what comes next, 0 not by any rule.

    >>> need("nuts: allergic", "What shall I cook for dinner?"), need("size: 42", "I want to return them")
    (2, 1)
    """
    table = {intent.tag: intent for intent in intents}
    for level, found in ((2, tags(text, intents)), (1, next_tags(text, intents))):
        if any(tag in table and re.search(table[tag].needs, memory, re.IGNORECASE) for tag in found):
            return level
    return 0


def by_need(preferences: Mapping[str, str], text: str) -> dict[str, str]:
    """The preferences, best first: what the message needs, then what will be needed next, then the newest."""
    newest_first = reversed(list(preferences.items()))
    return dict(sorted(newest_first, key=lambda pair: -need(f"{pair[0]}: {pair[1]}", text)))
