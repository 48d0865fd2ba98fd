"""What a chat gives its summariser to read, and what it does where the summariser finds nothing worth keeping."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any

from tri_memory.agent.replies import is_own
from tri_memory.contracts import ChatTurn
from tri_memory.embedding import Embedder
from tri_memory.embedding.texts import is_blank
from tri_memory.summary import Summarizer, call_summarizer

OWN_WORDS = 300  # characters of the user's that stand in for a blank summary
TIMEOUT_S = 10.0


def without_replies(summarizer: Summarizer) -> Summarizer:
    """The summariser, kept from what the built-in model says: it only quotes, and a quotation of memory that gets into
    a summary would be remembered again, session after session."""

    def summarise(turns: Sequence[ChatTurn]) -> str | Awaitable[str]:
        return summarizer([turn for turn in turns if not (turn.role == "assistant" and is_own(turn.content))])

    return summarise


def never_blank(summarizer: Summarizer) -> Summarizer:
    """The user's own first words where the summary is blank: a session of "hello" is no failure."""

    async def summarise(turns: Sequence[ChatTurn]) -> Any:
        summary = await call_summarizer(summarizer, turns, timeout_s=TIMEOUT_S)
        if not isinstance(summary, str) or not is_blank(summary):
            return summary
        return " / ".join(turn.content for turn in turns if turn.role == "user")[:OWN_WORDS]

    return summarise


def offline_summarizer(embedder: Embedder) -> Summarizer:
    """The summariser that needs no model."""
    from tri_memory.session.extractive import ExtractiveSummarizer

    return ExtractiveSummarizer(embedder)
