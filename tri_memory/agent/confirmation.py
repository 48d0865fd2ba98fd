"""What is asked before a memory is used ("I remember that …; is that still right?"), and whether the answer is a yes.

Anything but a clear yes is a no: silence, a question, "maybe", "yes, but", "yeah, right". The whole answer must be one
of the forms below, since a yes that is missed costs a second question, and one that was none costs trust. What it does
not do: understand a yes in other words.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

Language = Literal["en", "zh"]

LONGEST = 200  # characters that a phrase repeats of each memory
LONGEST_YES = 60  # characters; who says more, says something else besides
PHRASES: dict[Language, str] = {
    "en": "I remember that {}; is that still right?",
    "zh": "我记得：{}。现在还是这样吗？",
}
BETWEEN: dict[Language, str] = {"en": "; and that ", "zh": "；"}

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_TRUE = "(?:still )?(?:right|correct|true)"
_FIRM = (  # may also stand behind another yes
    rf"(?:that's|that is|it's|it is|you're|you are) {_TRUE}|correct|of course|please do|go ahead|i agree|i consent"
    r"|it (?:still )?(?:is|does)|i (?:still )?do"
    r"|是的|对的?|没错|正确|当然(?:可以)?|可以的?|没问题|还是(?:这样|的)|同意|确认"
)
_YES = (
    rf"{_FIRM}|yes|yeah|yep|yup|sure|certainly|absolutely|definitely|exactly|right|ok|okay"
    r"|是[啊呀]?|对[啊呀]|好[的啊呀]?|行[啊呀]?|可以[啊呀]|需?要的?|确定|当然[啊啦]"
)
_THANKS_EN = "please|thanks|thank you|thank you very much"
_THANKS_ZH = "谢谢[你您]?|麻烦[你您]?了?|请[说讲]"
_MARK = "[ ,，、.。!;；]"
_FRIENDLY = r"(?:[👍👌✅🙏😊🙂][\ufe0f\U0001f3fb-\U0001f3ff]?){0,3}"
_CLEAR = re.compile(
    rf"(?:嗯{_MARK}{{0,2}})?(?:{_YES})(?:{_MARK}{{1,2}}(?:{_FIRM}))?"
    rf"(?:{_MARK}{{1,2}}(?:{_THANKS_EN})|{_MARK}{{0,2}}(?:{_THANKS_ZH}))?"
    rf" ?(?:[.。]|!{{1,3}}|~)? ?{_FRIENDLY}"
)


def confirmation(*memories: str, language: Language | None = None) -> str:
    """What the user is asked about the memories that are going to be used.

    In `language`, by default Chinese where the first memory has a Chinese character. Each memory on one line, without
    its full stop, the first 200 characters of it. Raises ValueError for no memory and for a blank one.

    >>> confirmation("you wear size 42.")
    'I remember that you wear size 42; is that still right?'
    >>> confirmation("你穿42码", "你对花生过敏")
    '我记得：你穿42码；你对花生过敏。现在还是这样吗？'
    """
    said = [_short(memory) for memory in memories]
    if not said or not all(said):
        raise ValueError(f"a confirmation needs memories that say something; got {memories!r}"[:200])
    if language is None:
        language = "zh" if _HAN.search(said[0]) else "en"
    return PHRASES[language].replace("{}", BETWEEN[language].join(said))


def is_clear_yes(text: object) -> bool:
    """Whether a user's answer is a yes and nothing else, in English or Chinese; False for what is no string.

    Case, full-width forms, a full stop, up to three exclamation marks and a friendly emoji don't matter.

    >>> [is_clear_yes(text) for text in ("Yes, please!", "好的，谢谢", "yes, but not now", "不是", "yes?", "嗯")]
    [True, True, False, False, False, False]
    """
    if not isinstance(text, str) or len(text) > LONGEST_YES or not any(sign.isalpha() for sign in text):
        return False
    return _CLEAR.fullmatch(folded(text)) is not None


def folded(text: str) -> str:
    """On one line, without capitals, full-width forms and curly apostrophes, as a rule for a whole answer reads it."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().replace("’", "'").split())


def _short(memory: str) -> str:
    line = " ".join(memory.split())
    return f"{line[:LONGEST]}…" if len(line) > LONGEST else line.rstrip(".。;；")
