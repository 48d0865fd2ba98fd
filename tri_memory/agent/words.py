"""The words that a question is made of, in English and Chinese: which weigh nothing, and what kind of answer they ask
for. Tables only; `matching.py` uses them."""

from __future__ import annotations

import re
from typing import NamedTuple

from tri_memory.recall import stop_words


class Kind(NamedTuple):
    """A question in which `asks` is found wants an answer in which `has` is found."""

    asks: re.Pattern[str]
    has: re.Pattern[str]


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP, STOP_HAN = stop_words.ENGLISH, stop_words.CHINESE

# Words that only say which kind of answer is wanted: "phone number" is about the phone.
GENERIC = _listed("""
    name number day date time place kind code order address colour color long
    名字 号码 时间 地址 颜色 编号 单号 时候
""")

# What one asks about oneself, in the words in which it is kept.
ALIKE = {
    "called": "name",
    "allergy": "allergic",
    "allergies": "allergic",
    "phone": "telephone",
    "bought": "buy",
    "paid": "pay",
    "cost": "price",
    "wore": "wear",
}
# The keys under which `notice` keeps what both languages ask for: one term for both.
IN_ENGLISH = (
    (re.compile("名字|姓名|称呼|我叫什么|怎么称呼我?|我叫|叫我"), " name "),
    (re.compile(r"尺码|鞋码|几码|穿多大|(?<=\d)码"), " size "),
    (re.compile("过敏"), " allergic "),
)

TIME = Kind(
    re.compile(
        r"\bwhen\b|\b(?:what|which) (?:day|date|time|hour|month|night|year)"
        r"|什么时[候间]|几[号点]|哪[天月]|哪[个一几](?:月|天)|时段|钟点|[星礼][期拜]几|何时|日期",
        re.IGNORECASE,
    ),
    re.compile(
        r"\d[月号日点:：]|\d ?[ap]m\b|\d{4}-\d\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
        r"|\b(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
        r"|\b(?:morning|noon|afternoon|evening|night|week|weekend|month|today|yesterday|tomorrow|o.clock)\b"
        r"|\b(?:easter|christmas)\b|[一二三四五六七八九十]月|周[一二三四五六日末]|礼拜|星期|年"
        r"|上午|下午|晚上|早上|中午|今天|明天|昨天",
        re.IGNORECASE,
    ),
)
IDENTIFIER = Kind(
    re.compile(r"\b(?:number|serial|reference|code|order|label|form|id)\b|号", re.IGNORECASE),
    re.compile(r"\d{3}|[A-Z]{1,4}-?\d"),
)
NUMBER = Kind(
    re.compile(
        r"\bhow (?:many|much|long|big|far|old|tall|often|loud)\b"
        r"|\b(?:size|price|cost|budget|pay|paid|score|mark)\b|多[少大久长高]|几|好多|尺[寸码]|上限|价",
        re.IGNORECASE,
    ),
    re.compile(
        r"\d|[一二三四五六七八九十百千两]|\b(?:small|medium|large|fortnight|half|hundred)\b"
        r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty)\b",
        re.IGNORECASE,
    ),
)
KINDS = (TIME, IDENTIFIER, NUMBER)

# A question about what the assistant said or promised.
ABOUT_ASSISTANT = re.compile(
    r"\b(?:did|do|would|have|had) you\b|\byour (?:offer|trick|advice|tip)\b"
    r"|\byou (?:say|said|tell|told|suggest|offer|promise|want|gave|think|recommend|advise)"
    r"|[你您](?:们?说|讲|让|教|们?答应|建议|劝|当时|叮嘱|给我[挑开讲])",
    re.IGNORECASE,
)
