"""What memory put into a prompt and a model said again is no news: it must not be stored a second time.

A fence that a model repeats is cut from what the session keeps; a sentence that stood word for word in an injected
memory is cut from what an archive summarises, whoever said it again. The user's own words are no echo: what they said
before a prompt had it, and what changes a preference. What it does not do: recognise a memory in other words.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tri_memory.agent.prompt import read_data
from tri_memory.agent.sentences import split
from tri_memory.contracts import ChatTurn
from tri_memory.embedding.texts import is_blank
from tri_memory.summary import Summarizer

CUT = "…"  # what is kept of an answer that was nothing but memory
_FENCED = re.compile(r"<memory\b.*?(?:</memory\s*>|$)", re.DOTALL | re.IGNORECASE)
_PASTED = re.compile(r'<memory name="\w+">(?:[^<]*</memory>)?')  # as a prompt has it: without a "<" in it
_LEAD = re.compile(r"^(?:- |\[\d{4}-\d\d-\d\d\] )+")


def without_fences(answer: str) -> str:
    """The answer without the fences of memory in it; "…" where nothing else was said.

    >>> without_fences('You wear 42. <memory name="preferences">\\n- size: 42\\n</memory>')
    'You wear 42.'
    """
    said = _FENCED.sub("", answer)
    if said == answer:
        return answer
    return CUT if is_blank(said) else said.strip()


def injected_sentences(memories: Iterable[str]) -> set[str]:
    """Of memories, each line and each sentence, as `without_echoes` compares them.

    A prompt has all lines of a memory on one, so that a sentence may run over a line break.
    """
    texts = {text for memory in memories for text in (memory, " ".join(memory.split()))}
    return {_plain(part) for text in texts for part in (text, *split(_LEAD.sub("", text)))} - {""}


def without_echoes(
    turns: Sequence[ChatTurn], injected: AbstractSet[str], own: AbstractSet[str] = frozenset()
) -> list[ChatTurn]:
    """The turns, without the sentences that were injected; a turn of nothing else is left out.

    Of the user's turns the fences go, too, and what is their `own` stays.
    """
    kept: list[ChatTurn] = []
    for turn in turns:
        if turn.role not in ("assistant", "user"):
            kept.append(turn)
            continue
        theirs = turn.role == "user"
        echoes, text = (injected - own, _PASTED.sub("\n", turn.content)) if theirs else (injected, turn.content)
        lines = [[s for s in split(line) if _plain(s) not in echoes] for line in text.splitlines()]
        said = "\n".join(" ".join(line) for line in lines if line)
        whole = _plain(text) in echoes
        if turn.tool_name or (said and not whole):
            kept.append(turn if whole or _plain(said) == _plain(turn.content) else replace(turn, content=said))
    return kept


class Echoes:
    """What memory put into the prompts of one session, and what is its user's own."""

    def __init__(self) -> None:
        self._injected: set[str] = set()
        self._own: set[str] = set()
        self._begun = False

    async def begin(self, history: Callable[[], Awaitable[Sequence[ChatTurn]]]) -> None:
        """Before the first question: what a session that goes on has of the user's turns is their own."""
        if not self._begun:
            for turn in await history():
                if turn.role == "user":
                    self.hear(turn.content, changes=False)
            self._begun = True

    def hear(self, text: str, *, changes: bool) -> None:
        """The user says `text`, before the prompt that answers it. What `changes` something is no echo."""
        parts = injected_sentences([_PASTED.sub("\n", text)])
        self._own |= parts if changes else parts - self._injected

    def inject(self, memories: Iterable[str]) -> None:
        self._injected |= injected_sentences(memories)

    def without(self, turns: Sequence[ChatTurn]) -> list[ChatTurn]:
        return without_echoes(turns, self._injected, self._own)


def echoless(summarizer: Summarizer, echoes: Echoes) -> Summarizer:
    """The summariser, kept from what memory put into the prompts of this session."""

    def summarise(turns: Sequence[ChatTurn]) -> str | Awaitable[str]:
        return summarizer(echoes.without(turns))

    return summarise


def _plain(text: str) -> str:
    """So that the same words are equal, escaped or not, with or without the lead of a line and the mark at its end.

    Without white space, since a line break becomes a space, and nobody who says Chinese again says the space.
    """
    return "".join(read_data(_LEAD.sub("", text.strip())).split()).casefold().rstrip(".!。！")
