"""Chapter 00: which layer, what fits into a prompt, and an answer that changes because the store did."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any

from tri_memory.agent.chat import Chat
from tri_memory.blocking_calls import run
from tri_memory.contracts import Recollection, shown
from tri_memory.lab.chapters.ch00 import filling, placing
from tri_memory.lab.chapters.ch00.paper import Note, WatchedEpisodes, all_turns, itself, new_chat, notes
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test
from tri_memory.session.tokens import estimate_tokens


@exercise(
    "00-1",
    "Which layer?",
    dots=1,
    minutes=3,
    hints=(
        "Ask of each sentence: when will it be needed again? In two turns, in every visit, or when it comes up?",
        "Needed within the visit: session. True of the person, and needed without being asked for: preferences. "
        "Something that happened, needed when somebody comes back to it: episodes.",
        "There are two of each. A habit and an allergy are about the person; a date and a breakdown happened.",
    ),
)
def which_layer(placed: dict[str, Any], rng: random.Random) -> None:
    if not isinstance(placed, dict):
        raise Wrong(f"`placed` should be a dictionary from letter to layer; it is {shown(placed)}.")
    open_letters = [letter for letter in placing.SAID if placed.get(letter, ...) is ...]
    if len(open_letters) == len(placing.SAID):
        raise NotImplementedError
    if open_letters:
        raise Wrong(f"Still open: {', '.join(open_letters)}.")
    mistakes = []
    for letter, said in placing.SAID.items():
        found = placing.layer(letter, placed[letter])
        if found != said.layer:
            mistakes.append(f"{letter}, not {found}: {said.why_not[found]}")
    if mistakes:
        raise Wrong("\n".join(mistakes))


Fill = Callable[[str, list[Recollection], int], list[Recollection]]


@exercise(
    "00-2",
    "Fill the prompt",
    dots=2,
    minutes=8,
    hints=(
        "The question is sent, too. What is left of the budget when it is paid for?",
        "Go through sorted(memories, key=lambda memory: memory.score, reverse=True) and keep account of what is left.",
        "if estimate_tokens(memory.summary) <= left: take it and pay for it. No break: a shorter one may still fit.",
    ),
)
def fill_the_prompt(fill: Fill, rng: random.Random) -> None:
    cases = []
    for _ in range(40):
        question, memories = rng.choice(filling.QUESTIONS), filling.memories_for(rng)
        costs = [estimate_tokens(memory.summary) for memory in memories]
        some = sum(rng.sample(costs, rng.randrange(1, len(costs))))
        budget = estimate_tokens(question) + some - rng.choice((0, 0, 0, 3))
        given = list(memories)
        found = fill(question, given, budget)
        if given != memories:
            raise Wrong("It changes the list that it was given; sorted(…) gives a new one, .sort() doesn't.")
        if not isinstance(found, list) or not all(isinstance(memory, Recollection) for memory in found):
            raise Wrong(f"It should return a list of the memories themselves; it returned {shown(found)}.")
        cases.append(filling.Case(question, memories, budget, found))
    if not all(case.right() for case in cases):
        raise Wrong(filling.explained(cases))


PutBack = Callable[[Chat, list[tuple[datetime, str]]], Awaitable[None]]


@exercise(
    "00-3",
    "Change what it knows, not what it is",
    dots=3,
    minutes=12,
    hints=(
        "The question comes in a new session, and only the note that it is about should be in the prompt. Which layer "
        "is that?",
        "Layer 3 takes an EpisodicRecord: user_id, session_id (another one for each note), summary, embedding, "
        "created_at. The user is chat.user_id, and vectors come from chat.embedder.encode([text])[0].",
        "For number, (day, text) in enumerate(notes): await chat.episodes.remember(EpisodicRecord(chat.user_id, "
        "f'paper-{number}', text, chat.embedder.encode([text])[0], day)).",
    ),
)
def put_back(function: PutBack, rng: random.Random) -> None:
    run(_bounded(_new_session(function, rng)))


async def _bounded(work: Awaitable[None]) -> None:
    try:
        await asyncio.wait_for(work, 20)
    except TimeoutError:
        raise Wrong("It was still running after 20 s. Nine short notes take a moment.") from None


async def _new_session(function: PutBack, rng: random.Random) -> None:
    chat, episodes = new_chat(f"gwen-{rng.randrange(1000)}")
    before = itself(chat)
    paper = notes(rng)
    result = function(chat, [(note.day, note.text) for note in paper])
    if not asyncio.iscoroutine(result):
        raise Wrong("It should be `async def`: the stores' methods are awaited.")
    await result
    if itself(chat) != before:
        raise Wrong("It changes the chat itself. Model, system text and all stay; only what is stored may change.")
    await chat.new()
    for note in rng.sample(paper, 4):
        await _ask(chat, episodes, note)


async def _ask(chat: Chat, episodes: WatchedEpisodes, note: Note) -> None:
    try:
        answer = await chat.say(note.question)
    except ValueError as error:
        raise Wrong(
            f"Recall fails: {error}. Vectors of two embedders can't be compared; this chat's own is chat.embedder."
        ) from None
    kept = await chat.preferences.all(chat.user_id)  # type: ignore[union-attr]
    if len(kept) > 3 or sum(len(value) for value in kept.values()) > 300:
        raise Wrong(
            f"It answers, but {len(kept)} notes now stand in every prompt as preferences, whatever the question is. "
            "With a thousand notes there is no room for it."
        )
    if not episodes.written:
        if any("PN-" in turn.content for turn in await all_turns(chat)):
            raise Wrong("The notes are in a session, and that one is over. A new session's window begins empty.")
        raise Wrong("Nothing is stored that a new session could find.")
    if any(record.user_id != chat.user_id for record in episodes.written):
        raise Wrong(
            f"The notes are remembered for {episodes.written[0].user_id!r}, and {chat.user_id!r} is asking. "
            "Memory belongs to a user: chat.user_id."
        )
    if any(record.summary.count("PN-") > 2 for record in episodes.written):
        raise Wrong("Several notes in one episode come back together or not at all. One episode for each note.")
    if len({record.session_id for record in episodes.written}) < len(episodes.written):
        raise Wrong("Notes with the same session id replace each other: one session, one episode, here the last note.")
    if note.code not in answer:
        in_prompt = any(note.code in section.text for section in chat.last_sections)
        raise Wrong(
            f"{note.question} The answer was {shown(answer, 120)}; {note.code} "
            + (
                "stands in the prompt."
                if in_prompt
                else "was not recalled: does each note have the vector of its text?"
            )
        )
    if f"{note.day:%Y-%m-%d}" not in answer:
        raise Wrong(
            f"The number is right, the day is not: the note is of {note.day:%Y-%m-%d}, the answer says "
            f"{shown(answer, 80)}. created_at is when it happened, not when you typed it in."
        )


self_test(
    "00",
    Question(
        "00-q1",
        "You ask a hosted model a follow-up question, and it knows what you meant. Where was your earlier message?",
        (
            Option(
                "In the model: it learned from the conversation.",
                "Its weights don't change while it answers. The next customer gets the same model.",
            ),
            Option(
                "In the prompt of this very call.",
                "Somebody sent it again: your program, or the provider's server on your behalf.",
                right=True,
            ),
            Option(
                "In the connection, which was still open.",
                "Close it and open another one with the same prompt: same answer. The connection holds nothing.",
            ),
        ),
    ),
    Question(
        "00-q2",
        "The window holds 20 turns. Gwen comes back after a month, in a new session. What does the window hold?",
        (
            Option("The last 20 turns of last month.", "They belong to another session id. A window never crosses it."),
            Option(
                "Her question, and nothing else.",
                "A new session begins empty; layers 2 and 3 fill the gap.",
                right=True,
            ),
            Option(
                "A summary of last month.",
                "A summary turn belongs to its session, too. Episodes cross sessions, and they are recalled.",
            ),
        ),
    ),
    Question(
        "00-q3",
        "Why not put every old conversation into every prompt, and be done?",
        (
            Option(
                "A model refuses text that it has seen before.",
                "It sees everything for the first time. Repetition costs money, that is all.",
            ),
            Option(
                "Each token is paid for in each call, and the room for them ends.",
                "And the fuller the prompt, the easier it is to quote the wrong thing: see the right-hand plot.",
                right=True,
            ),
            Option(
                "It is not possible: prompts hold 20 turns.", "Prompts hold tokens, thousands of them. 20 is a choice."
            ),
        ),
    ),
    Question(
        "00-q4",
        "A fact stands in the prompt, and the answer doesn't have it. Who failed?",
        (
            Option(
                "The memory.", "It did its part: the fact was there. Look at the outline in the plot, not at the bar."
            ),
            Option(
                "The model.",
                "A better model lifts the bar up to the outline in the plot, and never above it.",
                right=True,
            ),
            Option("Neither, models are random.", "The built-in one isn't: the same prompt gives the same answer."),
        ),
    ),
    Question(
        "00-q5",
        "With no memory at all the agent never says anything false. Why is that no reason to leave memory out?",
        model_answer="It never says anything true about the user either: it is honest because it is empty. With "
        "memory there is something near every question, and this model quotes what is near. The cure is not to "
        "forget but to judge what deserves the prompt (notebook 10) and to let the model say no.",
    ),
)
