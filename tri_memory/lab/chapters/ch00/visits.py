"""The people of `data/` say their words again, to an agent of ours."""

from __future__ import annotations

from collections.abc import Sequence

from tri_memory.agent.chat import Chat
from tri_memory.agent.models import ChatModel
from tri_memory.agent.prompt import Message
from tri_memory.agent.replies import NOTED
from tri_memory.agent.sentences import is_chinese
from tri_memory.clock import ManualClock
from tri_memory.contracts import ChatTurn
from tri_memory.lab.datasets import Session
from tri_memory.session.extractive import ExtractiveSummarizer
from tri_memory.summary import Summarizer


async def replay(chat: Chat, visit: Session) -> None:
    """The person says each of their turns, and hears what the desk answered on that day.

    The chat goes through all its steps, only the model's words are the recorded ones. A ManualClock is set to the day.
    """
    model = chat.model
    if isinstance(chat.clock, ManualClock):
        chat.clock.set(visit.started_at)
    try:
        for said, answers in exchanges(visit.turns):
            chat.model = _recorded(chat, answers)
            await chat.say(said.content)
    finally:
        chat.model = model


async def live(chat: Chat, visits: Sequence[Session]) -> None:
    """Several visits, each a session of its own, ended before the next; afterwards a new session is open."""
    for visit in visits:
        await replay(chat, visit)
        await chat.new()


def by_hand(visits: Sequence[Session]) -> Summarizer:
    """A summariser that gives the note which a colleague wrote by hand after the visit; for other talk, an extract."""
    notes = {visit.turns[0].content: visit.summary for visit in visits}
    extract = ExtractiveSummarizer()
    return lambda turns: notes.get(turns[0].content) or extract(turns)


def exchanges(turns: Sequence[ChatTurn]) -> list[tuple[ChatTurn, list[ChatTurn]]]:
    """Each user turn with what came back: calls, tool results, the answer; [] where nobody answered.

    >>> exchanges([ChatTurn("user", "hello"), ChatTurn("assistant", "hello!")])[0][1][0].content
    'hello!'
    """
    found: list[tuple[ChatTurn, list[ChatTurn]]] = []
    for turn in turns:
        if turn.role == "user":
            found.append((turn, []))
        elif found:
            found[-1][1].append(turn)
    return found


def _recorded(chat: Chat, answers: Sequence[ChatTurn]) -> ChatModel:
    """A model that calls the tools of that day and says the words of that day; without any, it nods."""

    async def model(messages: Sequence[Message]) -> str:
        if not answers:
            return NOTED["zh" if is_chinese(messages[-1]["content"]) else "en"]
        if chat.sessions is not None:
            for turn in answers[:-1]:
                await chat.sessions.append(chat.key, turn)
        return answers[-1].content

    return model
