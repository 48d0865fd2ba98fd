"""What a user states about themselves, noticed by rule: precise rather than greedy. The table is `notice_rules.py`.

A rule speaks for the beginning of a clause, so that "if I like tea" and "she says I like tea" say nothing about the
user; a sentence that asks is passed over. What it does not do: understand. Other words than the table's are missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import itemgetter

import regex

from tri_memory.agent.notice_rules import RULES, Rule
from tri_memory.agent.sentences import asks, split

LONGEST_TEXT = 20_000  # characters that are read of one turn
LONGEST_SENTENCE = 300  # characters; a longer one is an essay or a paste, not a stated preference

_FENCED = regex.compile(r"<memory\b.*?(?:</memory>|$)", regex.DOTALL | regex.IGNORECASE)
_OPENER = (
    r"(?:hi|hello|hey|well|also|and|but|so|oh|ok|okay|yes|no|actually|btw|by the way|please note|remember|"
    r"just so you know|for the record|"
    r"你好|您好|对了|哦对?|嗯|还有|另外|其实|顺便说一?下|记住|请记住|因为|而且|但是?|不过)"
)
_CLAUSE = rf"(?:^|[,.;:!，。；：！、…—]|\s-|\band\b|\bbut\b|而且|但是?)\s*(?:{_OPENER}\b[\s,，:：]*)*"
_BETWEEN = regex.compile(r"(?:\s*,\s*|\s+)(?:and|or)\s+|\s*[,，、]\s*|[和跟及与]")


def notice(text: str, rules: Iterable[Rule] = RULES) -> list[tuple[str, str]]:
    """The (key, value) pairs that `text` states, in the order in which it states them; [] for none.

    Text that memory itself put into a prompt, between <memory …> and </memory>, states nothing.

    >>> notice("My name is Ann and I'm allergic to nuts. Do I like tea?")
    [('name', 'Ann'), ('nuts', 'allergic')]
    >>> notice("叫我小林就行，我穿42码")
    [('名字', '小林'), ('尺码', '42码')]
    """
    rules = tuple(rules)
    pairs: list[tuple[str, str]] = []
    for sentence in split(_FENCED.sub("\n", text[:LONGEST_TEXT])):
        if len(sentence) <= LONGEST_SENTENCE and not asks(sentence):
            found = sorted((stated for rule in rules for stated in _stated(sentence, rule)), key=itemgetter(0))
            pairs += [pair for _, pair in found if pair not in pairs]
    return pairs


def _stated(sentence: str, rule: Rule) -> Iterator[tuple[int, tuple[str, str]]]:
    for match in _compiled(rule.pattern).finditer(sentence):
        whole = match.groupdict().get("what") or ""
        for what in _BETWEEN.split(whole) if rule.several else [whole]:
            what = what.strip()
            yield match.start(), (rule.key.replace("{what}", what), rule.value.replace("{what}", what))


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> regex.Pattern[str]:
    return regex.compile(f"{_CLAUSE}(?:{pattern})", regex.IGNORECASE)
