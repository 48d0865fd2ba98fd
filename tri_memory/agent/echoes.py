"""What memory put into a prompt and a model said again is no news: it must not be stored a second time.

A fence that a model repeats is cut from what the session keeps; a sentence that stood word for word in an injected
memory is cut from what an archive summarises. What it does not do: recognise a memory that the model put in its own
words.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import replace

from tri_memory.agent.prompt import read_data
from tri_memory.agent.sentences import split
from tri_memory.contracts import ChatTurn
from tri_memory.embedding.texts import is_blank
from tri_memory.summary import Summarizer

CUT = "…"  # what is kept of an answer that was nothing but memory
_FENCED = re.compile(r"<memory\b.*?(?:</memory\s*>|$)", re.DOTALL | re.IGNORECASE)
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


def without_echoes(turns: Sequence[ChatTurn], injected: set[str]) -> list[ChatTurn]:
    """The turns, without the sentences of the assistant's that were injected; a turn of nothing else is left out."""
    kept: list[ChatTurn] = []
    for turn in turns:
        if turn.role != "assistant" or not injected:
            kept.append(turn)
            continue
        lines = [[s for s in split(line) if _plain(s) not in injected] for line in turn.content.splitlines()]
        said = "\n".join(" ".join(line) for line in lines if line)
        whole = _plain(turn.content) in injected
        if turn.tool_name or (said and not whole):
            kept.append(turn if whole or _plain(said) == _plain(turn.content) else replace(turn, content=said))
    return kept


def echoless(summarizer: Summarizer, injected: set[str]) -> Summarizer:
    """The summariser, kept from what memory put into the prompts of this session."""

    def summarise(turns: Sequence[ChatTurn]) -> str | Awaitable[str]:
        return summarizer(without_echoes(turns, injected))

    return summarise


def _plain(text: str) -> str:
    """So that the same words are equal, escaped or not, with or without the lead of a line and the mark at its end.

    Without white space, since a line break becomes a space, and nobody who says Chinese again says the space.
    """
    return "".join(read_data(_LEAD.sub("", text.strip())).split()).casefold().rstrip(".!。！")
