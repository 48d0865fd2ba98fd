"""Turns cut into clauses, the pieces that an extractive summary is made of, in Chinese and in English.

A clause keeps its words to the letter; only fillers at its two ends go ("Oh, and by the way, … please", "对了，…吧").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import regex as re

Language = Literal["zh", "en"]

READ_FIRST, READ_LAST = 8_000, 2_000  # characters of one turn; what lies between, in a longer one, is not read
LONGEST_CONTEXT = 400  # characters; a longer "sentence" is a list or a log, and would be searched once for each clause
LONGEST = {"zh": 60, "en": 120}  # characters of one clause; a longer one is cut

_CJK = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_SPACES = re.compile(r"[^\S\n]*\0[\s\0]*|[^\S\n]{2,}")
_LATIN_WORD = re.compile(r"[A-Za-z]+")

_SENTENCE = {
    "en": re.compile(
        r"(?<!\b(?:Mr|Mrs|Ms|Dr|St|No|vs|Prof|Jr|Sr|e\.g|i\.e|a\.m|p\.m)\.)(?<=[.!?…;][\"')\]”’]?)\s+|\n+|\s*[|｜]\s*"
    ),
    "zh": re.compile(r"(?<=[。！？!?；;…~～][”」』）]?)(?![。！？!?；;…~～”」』）])|\n+|\s*[|｜]\s*"),
}
_CLAUSE = {
    "en": re.compile(
        r"[,;:—–()]\s+|\s+[-–—(]\s*"
        r"|\s+(?=(?:but|so|because|since|although|though|while|unless|until|otherwise|which|who|when|where|whereas)\s)"
        r"|\s+(?=(?:and|or|then)\s+"
        r"(?:I|we|he|she|it|they|you|there|that|this|the|my|your|our|if|please|don't|do not|never"
        r"|said|got|put|take|keep|leave|make|give|bring|wear|use|went|came|was|is|are|has|had|did)\b)",
        re.IGNORECASE,
    ),
    "zh": re.compile(r"[，,：:—]+|\s+(?=[\u3400-\u9fff])|(?<=[\u3400-\u9fff])\s+"),
}
_HEAD = {
    "en": re.compile(
        r"(?:oh|ah|er|um|hm+|well|right|ok|okay|so|and|but|also|then|yes|yeah|yep|no(?=[,.!])|nope|hi|hello|hey|hiya"
        r"|hallo|morning|evening|afternoon|good (?:morning|evening|afternoon)|sure|great|lovely|perfect|fine|thanks"
        r"|thank you|sorry|actually|anyway|honestly|really|again(?=,)|now(?=,| then)|too|done|gladly|agreed|because"
        r"|since|which|though|although|while|by the way|to be honest|I think|I guess|I suppose|I mean|you know|I'd say"
        r"|one more thing|before I forget|mind you)(?=[\s,.:;!?]|$)"
        r"|(?:I|we|it|that|there|he|she|they|this|you)['’](?:m|ve|re|s|d|ll)\s+(?!(?:not|no|to)\b)",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"那么|那就|那|[嗯哦噢啊哎诶唉哈哟]+|好[的呀嘞啊]|行[啊吧]|对了|还有|另外|然后|其实|说实话|请问|麻烦[你您]?|[你您]好呀?|在吗"
        r"|顺便(?:提个意见|说一句|问一下)?|就是|反正|不过|但是|可是|所以|因为|而且|再说|我?跟[你您]说(?:一声|个事|件事)?"
        r"|我想问一下|谢谢|多谢|辛苦了?|抱歉|不好意思|而|(?:我们?|[你您它])(?![的们家])(?=.{3})|(?:[就也还才都又再]|建议)(?=.{3})"
    ),
}
_TAIL = {
    "en": re.compile(
        r"\b(?:please(?: remember)?|thanks|thank you|though|by the way|I think|I suppose|mind"
        r"|too|as well|really|then|anyway|you know"
        r"|ta|cheers|ha(?:ha)*|lol)$",
        re.IGNORECASE,
    ),
    "zh": re.compile(r"(?:[吧呢啊哈呗啦哦嘛呀哟嘞噢]|谢谢|辛苦了|一下|就[行好]|再?试试|看看|的话)$"),
}
_EDGES = " \t\r\n\"'“”‘’,;:.!?*-–—、，。！？；：…~～"
_ASKS = re.compile(r"[?？][”\"'’」)）]?\s*$|[吗么][。]?\s*$")


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a turn; `sentence` numbers the sentences of the turn from 0, `context` is the whole sentence, or
    the untrimmed clause where that is very long."""

    text: str
    sentence: int
    context: str

    @property
    def asks(self) -> bool:
        return bool(_ASKS.search(self.context))


def language_of(text: str) -> Language:
    """Chinese where it has at least as many Chinese characters as Latin words."""
    chinese = len(_CJK.findall(text))
    return "zh" if chinese and chinese >= len(_LATIN_WORD.findall(text)) else "en"


def size(text: str, language: Language) -> int:
    """What a text costs: its characters in Chinese, its words in English.

    Among English words a Chinese character counts as a word, and an endless word as one for every 16 characters.
    """
    if language == "zh":
        return len(text)
    return sum(max(1, -(-len(word) // 16), len(_CJK.findall(word))) for word in text.split())


def ends(text: str) -> list[str]:
    """What is read of one turn: all of it, or both ends of a long one; runs of spaces and NULs become one space."""
    parts = [text] if len(text) <= READ_FIRST + READ_LAST else [text[:READ_FIRST], text[-READ_LAST:]]
    return [_SPACES.sub(" ", part) for part in parts]


def clauses(text: str, language: Language) -> list[Clause]:
    """The clauses of one turn in order; none of a text without letters or digits."""
    found = []
    split = _SENTENCE[language].split("\n".join(ends(text)))
    sentences = [sentence for sentence in split if sentence and not sentence.isspace()]
    for number, sentence in enumerate(sentences):
        for part in _CLAUSE[language].split(sentence):
            trimmed = trim(part, language)
            if trimmed:
                context = sentence if len(sentence) <= LONGEST_CONTEXT else part[:LONGEST_CONTEXT]
                found.append(Clause(trimmed, number, context))
    return found


def trim(part: str, language: Language) -> str:
    """A clause without the fillers and signs at its two ends, and not longer than LONGEST."""
    part = part.strip(_EDGES)
    if len(part) > LONGEST[language]:
        part = part[: LONGEST[language]]
        part = part.rsplit(None, 1)[0] if language == "en" else part
    while filler := _HEAD[language].match(part) or _TAIL[language].search(part):
        start, stop = filler.span()
        part = (part[stop:] if start == 0 else part[:start]).strip(_EDGES)
    return part if any(sign.isalnum() for sign in part) else ""
