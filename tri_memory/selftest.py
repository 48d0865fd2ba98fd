"""All three layers, tried end to end with what the package itself brings: offline, in seconds."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

from tri_memory.agent.chat import Chat
from tri_memory.agent.replies import NOT_FOUND
from tri_memory.blocking_calls import run
from tri_memory.clock import ManualClock, system_clock
from tri_memory.contracts import ChatTurn, EpisodicRecord
from tri_memory.doctor import Check
from tri_memory.embedding import default_embedder
from tri_memory.episodic.memory import InMemoryEpisodicStore
from tri_memory.preference.memory import InMemoryPreferenceStore
from tri_memory.session import folding
from tri_memory.session.compression import CountPolicy, TokenWatermark
from tri_memory.session.extractive import ExtractiveSummarizer
from tri_memory.session.memory import InMemorySessionStore
from tri_memory.summary import is_summary


def checks() -> Iterator[Check]:
    """Every check, each made when it is asked for, also in a notebook's cell. What a check raises is its FAIL."""
    for name, check in CHECKS.items():
        try:
            detail = run(check())
        except Exception as error:
            yield Check(name, "FAIL", f"{type(error).__name__}: {error}")
        else:
            yield Check(name, "OK", detail)


async def window() -> str:
    sessions = InMemorySessionStore()
    await _fill(sessions, 30)
    kept = [turn.content for turn in await sessions.get_window("s", 3)]
    _must_be("the window", kept, ["turn 27", "turn 28", "turn 29"])
    return "the last 3 of 30 turns"


async def by_count() -> str:
    read: list[ChatTurn] = []
    sessions = InMemorySessionStore(policy=CountPolicy(40, 20), summarizer=_reading(read))
    await _fill(sessions, 41)
    history = await sessions.get_history("s")
    _must_be("turns after the fold", len(history), 21)
    _must_be("a summary at the head", is_summary(history[0]), True)
    _must_be("turns that the summariser read", len(read), 21)
    return "41 turns -> 1 summary + 20"


async def by_tokens() -> str:
    read: list[ChatTurn] = []
    policy = TokenWatermark(400)
    sessions = InMemorySessionStore(policy=policy, summarizer=_reading(read))
    await _fill(sessions, 200, " 你好 hello" * 3)
    history = await sessions.get_history("s")
    weight = sum(map(policy.weigh, history))
    _must_be("a summary at the head", is_summary(history[0]), True)
    _must_be(f"{weight} tokens at most {policy.high_line}", weight <= policy.high_line, True)
    new = [turn for turn in read if not is_summary(turn)]
    _must_be("turns read or kept", len(new) + len(history) - 1, 200)
    return f"200 turns -> {weight} tokens of {policy.context_tokens}, none lost"


async def degradation() -> str:
    def broken(turns: Sequence[ChatTurn]) -> str:
        raise RuntimeError("no summary today")

    sessions = InMemorySessionStore(policy=CountPolicy(40, 20), summarizer=broken)
    folding.log.disabled, heard = True, folding.log.disabled  # the warning is what is being tested
    try:
        await _fill(sessions, 41)
    finally:
        folding.log.disabled = heard
    _must_be("turns after the cut", len(await sessions.get_history("s")), 20)
    _must_be("the trace", sessions.trace[-1].outcome, "truncated")
    return "a failing summariser: cut to 20, and traced"


async def preference() -> str:
    preferences = InMemoryPreferenceStore()
    await preferences.set("ann", "food", "Chinese")
    await preferences.set("ann", " food ", "Italian\u200b")
    _must_be("a blank value is kept", await preferences.set("ann", "tea", " "), False)
    _must_be("preferences", await preferences.all("ann"), {"food": "Italian"})
    _must_be("another user's", await preferences.all("bob"), {})
    return "the newer value, tidied"


async def recall() -> str:
    embedder, episodes = default_embedder(), InMemoryEpisodicStore()
    summaries = ["Ann returned her hiking boots.", "安妮给空调换了滤网。", "Ann's violin lesson moved to Monday."]
    for number, vector in enumerate(embedder.encode(summaries)):
        await episodes.remember(EpisodicRecord("ann", f"s{number}", summaries[number], vector, system_clock()))
    for question, wanted in (("Which shoes did she send back?", "s0"), ("空调修得怎么样了？", "s1")):
        found = await episodes.recall(embedder.encode([question])[0], 1, user_id="ann")
        _must_be(question, [episode.session_id for episode in found], [wanted])
    _must_be("another user's", await episodes.recall(embedder.encode(["boots"])[0], user_id="bob"), [])
    return "the right one of 3, in English and Chinese"


async def conversation() -> str:
    chat = _chat("ann")
    await chat.say("My name is Ann and I wear size 42.")
    await chat.say("My parcel BX-2207 is missing.")
    await chat.new()
    _must_contain(await chat.say("What is my name?"), "Ann")
    _must_contain(await chat.say("Which parcel was missing?"), "BX-2207")
    stranger = Chat(
        "bob",
        sessions=chat.sessions,
        preferences=chat.preferences,
        episodes=chat.episodes,
        embedder=chat.embedder,
    )
    _must_be("what a stranger hears", await stranger.say("Which parcel was missing?"), NOT_FOUND["en"])
    gone = await chat.forget()
    _must_be("layers with something to forget", [count > 0 for count in gone.values()], [True] * 3)
    _must_be("after forgetting", await chat.say("What is my name?"), NOT_FOUND["en"])
    return "remembers across sessions, keeps users apart, forgets"


CHECKS: dict[str, Callable[[], Coroutine[Any, Any, str]]] = {
    "layer 1: window": window,
    "layer 1: compression by count": by_count,
    "layer 1: compression by tokens": by_tokens,
    "layer 1: degradation": degradation,
    "layer 2: preferences": preference,
    "layer 3: recall": recall,
    "chat over all three": conversation,
}


def _chat(user: str) -> Chat:
    embedder = default_embedder()
    return Chat(
        user,
        sessions=InMemorySessionStore(),
        preferences=InMemoryPreferenceStore(),
        episodes=InMemoryEpisodicStore(),
        embedder=embedder,
        summarizer=ExtractiveSummarizer(embedder),
        clock=ManualClock(),
    )


async def _fill(sessions: InMemorySessionStore, turns: int, more: str = "") -> None:
    for number in range(turns):
        await sessions.append("s", ChatTurn("assistant" if number % 2 else "user", f"turn {number}{more}"))


def _reading(read: list[ChatTurn]) -> Callable[[Sequence[ChatTurn]], str]:
    """A summariser that notes what it was given."""

    def summarise(turns: Sequence[ChatTurn]) -> str:
        read.extend(turns)
        return f"{len(read)} turns so far"

    return summarise


def _must_be(what: str, got: object, wanted: object) -> None:
    if got != wanted:
        raise AssertionError(f"{what}: got {got!r}, not {wanted!r}")


def _must_contain(text: str, part: str) -> None:
    if part not in text:
        raise AssertionError(f"{part!r} is not in {text!r}")
