"""The built-in model's sentences, in both languages, and how it recognises them when they come back in a prompt."""

from __future__ import annotations

import re
from typing import Literal

from tri_memory.agent.sentences import split

Language = Literal["en", "zh"]

NOT_FOUND: dict[Language, str] = {
    "en": "I don't find that in what I was given.",
    "zh": "我在给我的内容里没有找到。",
}
NOTED: dict[Language, str] = {"en": "All right.", "zh": "好的。"}
PLACES: dict[Language, dict[str, str]] = {
    "en": {
        "user": "You said in this conversation: “{}”",
        "assistant": "I said in this conversation: “{}”",
        "preferences": "Your preferences say: “{}”",
        "episodes": "An earlier conversation ({day}) says: “{}”",
        "facts": "A record ({day}) says: “{}”",
        "summary": "The summary of this conversation says: “{}”",
        "system": "My instructions say: “{}”",
    },
    "zh": {
        "user": "你在这次对话里说过：“{}”",
        "assistant": "我在这次对话里说过：“{}”",
        "preferences": "你的偏好里写着：“{}”",
        "episodes": "更早的一次对话（{day}）里写着：“{}”",
        "facts": "一条记录（{day}）里写着：“{}”",
        "summary": "这次对话的摘要里写着：“{}”",
        "system": "给我的说明里写着：“{}”",
    },
}

_LEADS = [
    re.escape(template.removesuffix("{}”")).replace(re.escape("{day}"), r"[-\d]*")
    for places in PLACES.values()
    for template in places.values()
]
_QUOTED = re.compile(f"^(?:{'|'.join(_LEADS)})(.*)”$")
_REFUSED = re.compile(
    r"\b(?:I|we) (?:do not|don['’]t|did not|didn['’]t|could not|couldn['’]t|can['’]t|cannot|am not able to) "
    r"(?:know|find|have|see|recall|remember|answer|help)\b"
    r"|我?(?:不知道|不清楚|不记得|没有?找到|没有?记录|无法(?:回答|确定)|没有(?:这|相关|关于))",
    re.IGNORECASE,
)


def quote(text: str, place: str, day: str, language: Language) -> str:
    """One line: where it stood, and what stood there."""
    return PLACES[language][place].replace("{day}", day).replace("{}", text)


def without_frame(reply: str) -> str:
    """What an assistant's message says about the world: its own quotations unwrapped, refusals and "All right" gone."""
    told = []
    for line in reply.splitlines():
        quoted = _QUOTED.match(line)
        if quoted:
            told.append(quoted[1])
        elif line not in NOTED.values():
            told += [sentence for sentence in split(line) if not _REFUSED.search(sentence)]
    return "\n".join(told)


def is_own(reply: str) -> bool:
    """Whether a reply is the built-in model's: nothing but quotations, "not found" and "all right"."""
    lines = reply.splitlines()
    return bool(lines) and all(
        _QUOTED.match(line) or line in NOTED.values() or line in NOT_FOUND.values() for line in lines
    )
