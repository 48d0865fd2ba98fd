"""A prompt, taken apart into sentences that know where they stood: the reading half of the built-in model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tri_memory.agent.prompt import SYSTEM, Message, read_data
from tri_memory.agent.sentences import split

LONGEST_MESSAGE = 20_000  # characters of one message that are read
LONGEST_SENTENCE = 400  # characters; a longer one becomes several
MOST_OF_ONE = 200  # passages of one message that are read, so that a long one does not push out the others
MOST_PASSAGES = 2_000  # of a longer prompt, the last ones are read

SPOKEN = ("user", "assistant")
_FENCE = re.compile(
    r'^<memory name="(preferences|episodes|facts|summary)">\n(.*?)\n</memory>$', re.DOTALL | re.MULTILINE
)
_DATED = re.compile(r"^\[(\d{4}-\d\d-\d\d)\] ")


@dataclass(frozen=True, slots=True)
class Passage:
    """One sentence. `part` counts the message, preference, episode or fact it belongs to, in order of the prompt."""

    text: str
    place: str  # user, assistant, preferences, episodes, facts, summary, system
    part: int
    day: str = ""  # of an episode or a fact: "2026-03-01"


def passages(messages: Sequence[Message]) -> list[Passage]:
    """Every sentence of the prompt but the kit's own system text, in order."""
    found: list[Passage] = []
    for part, (text, place, day) in enumerate(_parts(messages)):
        pieces = [piece for sentence in split(text[:LONGEST_MESSAGE]) for piece in _pieces(sentence)]
        found += [Passage(piece, place, part, day) for piece in pieces[:MOST_OF_ONE]]
    return found[-MOST_PASSAGES:]


def _pieces(sentence: str) -> list[str]:
    return [sentence[i : i + LONGEST_SENTENCE] for i in range(0, len(sentence), LONGEST_SENTENCE)]


def _parts(messages: Sequence[Message]) -> Iterator[tuple[str, str, str]]:
    for message in messages:
        role, content = message["role"], message["content"]
        if role == "system":
            yield from _system_parts(content)
        else:
            yield content, role, ""


def _system_parts(content: str) -> Iterator[tuple[str, str, str]]:
    """The fences first taken out, then what is left of the system text."""
    for name, body in _FENCE.findall(content):
        for line in body.splitlines():
            dated = _DATED.match(line)
            yield read_data(_DATED.sub("", line).removeprefix("- ")), name, dated[1] if dated else ""
    yield _FENCE.sub("", content).replace(SYSTEM, ""), "system", ""
