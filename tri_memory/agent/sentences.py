"""Where a sentence ends, whether it asks something, and which of the two languages it is in. Rules, no model."""

from __future__ import annotations

import re

_END = re.compile(
    r"(?<=[。！？!?；])(?![。！？!?；”’」』）)\"'])\s*"  # Chinese needs no space behind the mark
    r"|(?<=[。！？!?；][”’」』）)\"'])(?![”’」』）)\"'])\s*"
    r"|(?<=[.…])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bMr\.)(?<!\bMrs\.)(?<!\bMs\.)(?<!\bDr\.)(?<!\bSt\.)(?<!\bNo\.)\s+"
    r"|[\r\n\v\f\x85\u2028\u2029]+"
)
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN_WORD = re.compile(r"[A-Za-z]{2,}")
_MARK = re.compile(r"[?？][”’」』）)\"'\s]*$")
_OPENING = r"(?:(?:and|but|so|oh|ok|okay|well|hi|hello|hey|please|sorry)[,\s]+)*"
_AUXILIARY = r"(?:is|are|am|was|were|do|does|did|can|could|will|would|should|shall|have|has|had|may|must)"
_ASKS_EN = re.compile(
    rf"^{_OPENING}(?:"
    rf"(?:what|which|who|whose|whom|when|where|why|how)(?:['’](?:s|re|d)\b|\s+{_AUXILIARY}\b)"
    r"|(?:what|which|whose)\s+\w+\s+(?:is|are|am|was|were|do|does|did|can|should|have|has)\b"
    r"|how\s+(?:much|many|long|old|big|often|far|late|soon)\b"
    r"|(?:do|did|have)\s+(?:i|you|we|they|he|she)\b"
    r"|(?:is|are|am|was|were|does|can|could|will|would|should|shall|has|must)(?:n['’]t)?"
    r"\s+(?:i|you|we|he|she|they|it|my|your|our|there|this|that|these|those|anyone|someone)\b"
    r"|(?:remind|tell)\s+(?:me|us)\b(?!\s+(?:at|every|on|in)\b))",
    re.IGNORECASE,
)
_ASKS_ZH = re.compile(
    r"(?:吗|来着|了没有?|[行好能对]不[行好能对]?|^.{1,6}呢)[。!！~～…\s]*$"
    r"|什么(?!都|也|的[。！!]|事都)|多少(?!有些|都|也)|为什么|为啥|是啥|干啥|几多|好多钱|怎么(?!都|也|样都)"
    r"|哪(?:里|儿|个|位|种|款|样|天|些|家|几|一|是)(?!都|也)|谁(?!都|也|知道)|几(?:点|号|月|岁|楼|度|栋)(?!都)"
    r"|是不是|有没有|能不能|可不可以|记不记得|多[大久长高](?=[。！!]?$|[，,])|(?:告诉|报|发|念)(?:给)?我(?:一下|听)?[。！!]*$"
)


def split(text: str) -> list[str]:
    """The sentences of a text in order, trimmed; blank ones are left out.

    >>> split("我叫小林。穿42码！ I wear 3.5 by the way. Fine?")
    ['我叫小林。', '穿42码！', 'I wear 3.5 by the way.', 'Fine?']
    """
    return [part.strip() for part in _END.split(text) if part and part.strip()]


def is_question(text: str) -> bool:
    """Whether one of the sentences asks something, with or without a question mark.

    >>> is_question("what's my size"), is_question("我叫什么"), is_question("I wear 42.")
    (True, True, False)
    """
    return any(asks(sentence) for sentence in split(text))


def asks(sentence: str) -> bool:
    """`is_question` for a single sentence."""
    if _MARK.search(sentence) or _ASKS_EN.search(sentence):
        return True
    return is_chinese(sentence) and bool(_ASKS_ZH.search(sentence))


def is_chinese(text: str) -> bool:
    """Whether a reply should be in Chinese: more Chinese characters than words in Latin letters."""
    return len(_HAN.findall(text)) > len(_LATIN_WORD.findall(text))
