"""Chapter 01: cutting a window, choosing its limit, and keeping two people's sessions apart."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from statistics import mean
from typing import Any

from tri_memory.blocking_calls import run
from tri_memory.contracts import ChatTurn
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test
from tri_memory.session.memory import InMemorySessionStore

SEPARATORS = ("-", ":", "/", "|", "_", ".", ",", "#", "@", " ", "::", "--", "\t", "\n", "\x1f")


@exercise(
    "01-1",
    "Cut a window",
    dots=1,
    minutes=8,
    hints=(
        "Set the system turn aside first, if there is one. What is left over: where does its window begin?",
        "max(0, len(rest) - limit) is a beginning that also works for limit = 0, where rest[-0:] is everything.",
        "While the turn at the beginning has the role 'tool', move the beginning one further.",
    ),
)
def window(cut: Callable[[list[ChatTurn], int], list[ChatTurn]], rng: random.Random) -> None:
    for _ in range(40):
        turns = _conversation(rng)
        limit = rng.choice([0, 1, 2, 3, rng.randrange(len(turns) + 3)])
        head, rest = (turns[:1], turns[1:]) if turns[0].role == "system" else ([], turns)
        expected = rest[max(0, len(rest) - limit) :]
        begin = next((i for i, turn in enumerate(expected) if turn.role != "tool"), len(expected))
        given = list(turns)
        found = cut(given, limit)
        if given != turns:
            raise Wrong("It changes the list it was given. The store still needs those turns: cut a copy.")
        if not isinstance(found, list) or not all(isinstance(turn, ChatTurn) for turn in found):
            raise Wrong(f"It should return a list of turns; it returned {type(found).__name__}.")
        if found != [*head, *expected[begin:]]:
            raise Wrong(_what_is_wrong_with(found, head, rest, expected[begin:], limit))


def _what_is_wrong_with(
    found: list[ChatTurn], head: list[ChatTurn], rest: list[ChatTurn], expected: list[ChatTurn], limit: int
) -> str:
    body = found[len(head) :]
    whole = rest[max(0, len(rest) - limit) :]
    if limit == 0 and len(found) > len(head):
        why = "Limit 0 asks for no turns. In Python -0 is 0, so rest[-0:] is the whole list."
    elif head and found[:1] != head:
        why = "The system turn fell out. It says who the assistant is; it stays, whatever the limit."
    elif body[:1] and body[0].role == "tool" and len(body) < len(whole):
        why = "Two results of one call stood there, and you dropped one. The other opens the window now."
    elif body[:1] and body[0].role == "tool":
        why = "It opens with a tool result whose call was cut off."
    elif head and limit and body == rest[max(0, len(rest) - limit + 1) :]:
        why = "The system turn took one of the places. The limit counts the other turns."
    elif len(body) > limit:
        why = "More turns than the limit. Whoever pays for the prompt relies on it: don't reach back for the call."
    elif body == [turn for turn in expected if turn.role != "tool"]:
        why = "A result whose call is in the window may stay. Only those at the very beginning must go."
    else:
        why = f"Expected {_roles([*head, *expected])}."
    return f"{why} (Of {_roles([*head, *rest])} with limit {limit} you return {_roles(found)}.)"


def _roles(turns: list[ChatTurn]) -> str:
    return f"[{', '.join('call' if t.role == 'assistant' and t.tool_name else t.role for t in turns)}]"


def _conversation(rng: random.Random) -> list[ChatTurn]:
    turns = [ChatTurn("system", "You are a shop's desk.")] if rng.random() < 0.5 else []
    for i in range(rng.randrange(1, 5)):
        turns.append(ChatTurn("user", f"question {i}"))
        results = rng.choice([0, 1, 1, 2])
        if results:
            turns.append(ChatTurn("assistant", f"lookup({i})", "lookup"))
            turns += [ChatTurn("tool", f"result {i}.{k}", "lookup") for k in range(results)]
        turns.append(ChatTurn("assistant", f"answer {i}"))
    return turns


@exercise(
    "01-2",
    "The smallest limit that is enough",
    dots=2,
    minutes=10,
    hints=(
        "Sorted from near to far, the first k distances are covered by a limit as large as the k-th of them.",
        "How many questions are enough? The smallest k with 100 * k >= percent * len(turns_back); no rounding down.",
        "k = -(-percent * len(turns_back) // 100) rounds up; the answer is sorted(turns_back)[k - 1].",
    ),
)
def smallest_limit(choose: Callable[[list[int], int], int], rng: random.Random) -> None:
    for _ in range(40):
        turns_back = [rng.randrange(1, 60) for _ in range(rng.randrange(5, 25))]
        percent = rng.choice([100, 50, rng.randrange(1, 101)])
        need = -(-percent * len(turns_back) // 100)
        expected = sorted(turns_back)[need - 1]
        given = list(turns_back)
        found: Any = choose(given, percent)
        if given != turns_back:
            raise Wrong("It reorders the list it was given; the caller's rows don't match any more. Use sorted().")
        if isinstance(found, bool) or not hasattr(found, "__float__"):
            raise Wrong(f"It should return a number of turns; it returned {found!r}.")
        if found == expected:
            continue
        covered = sum(back <= found for back in turns_back)
        if found == need:
            why = "That is how many questions must be covered. How far back is the last one of these?"
        elif found == mean(turns_back):
            why = "The mean: a few far ones pull it up, and it knows nothing of the percentage."
        elif found == turns_back[need - 1]:
            why = "The right place in the list, but the list isn't sorted by distance."
        elif found not in turns_back:
            why = "No answer stands there: a smaller limit does the same. (Percentiles interpolate between distances.)"
        elif covered < need:
            why = f"Not enough: it covers {covered} of {len(turns_back)}, and {need} are needed. Round up."
        else:
            why = f"It covers enough, but so does {expected}, which costs less."
        raise Wrong(f"{why} (For {percent} % of {turns_back} you return {found!r}.)")


@exercise(
    "01-3",
    "Two people, one store",
    dots=3,
    minutes=15,
    hints=(
        "The store knows one text per session. Make it from both ids, so that no two pairs give the same text.",
        "'ann' + '-' + 'b-c' is 'ann-b' + '-' + 'c'. json.dumps([user_id, session_id]) is safe; json.loads undoes it.",
        "turns_of: of reversed(await store.list_sessions()) keep the rows of this user, and join their get_history.",
    ),
)
def desk(make: Callable[[Any], Any], rng: random.Random) -> None:
    try:
        run(asyncio.wait_for(_use(make, rng), 5))
    except TimeoutError:
        raise Wrong("It was still waiting after 5 s: something is awaited that never comes.") from None


async def _use(make: Callable[[Any], Any], rng: random.Random) -> None:
    await _keeps_it_in_the_store(make)
    number = rng.randrange(10, 99)
    shared = "Both have a session 's1', and they read each other: a session id alone is nobody's."
    longer = "One user id is the beginning of the other. Compare the whole id, not how the key begins."
    await _apart(make, [("ann", "s1"), ("ben", "s1")], shared)
    await _apart(make, [(f"en-shop-{number}", "s1"), (f"en-shop-{number}0", "s1")], longer)
    for sep in SEPARATORS:
        glued = f"These pairs, glued with {sep!r}, are one key, or can't be taken apart again."
        await _apart(make, [("ann", f"b{sep}c"), (f"ann{sep}b", "c")], glued)
    await _refuses_nobody(make(InMemorySessionStore()))


async def _keeps_it_in_the_store(make: Callable[[Any], Any]) -> None:
    store = InMemorySessionStore()
    turns = [ChatTurn("user", f"turn {i}") for i in range(28)]
    writer = make(store)
    for i, turn in enumerate(turns):
        await writer.append("ann", "s2" if i < 25 else "s1", turn)
    found = await make(store).turns_of("ann")
    if found == [] and await writer.turns_of("ann"):
        raise Wrong("A second Desk over the same store finds nothing: what you keep in self dies with the object.")
    if found == turns[25:] + turns[:25]:
        raise Wrong("The newest session comes first. list_sessions() begins with it; a conversation ends with it.")
    if found == turns[5:]:
        raise Wrong("The first 5 turns of a session of 25 are missing: get_window stops at 20, get_history doesn't.")
    if found != turns:
        texts = [turn.content for turn in found] if isinstance(found, list) else found
        raise Wrong(f"Turns 0 to 24 went into one session, then 25 to 27 into another; turns_of returns {texts!r}.")
    if await make(store).turns_of("nobody") != []:
        raise Wrong("turns_of a user who never wrote should be an empty list.")


async def _apart(make: Callable[[Any], Any], pairs: list[tuple[str, str]], why: str) -> None:
    store = InMemorySessionStore()
    for user, session in pairs:
        await make(store).append(user, session, ChatTurn("user", f"a secret of {user}"))
    for user, _ in pairs:
        found = [turn.content for turn in await make(store).turns_of(user)]
        if found != [f"a secret of {user}"]:
            raise Wrong(f"{why} (Of the sessions {pairs}, {user!r} gets {found!r}.)")


async def _refuses_nobody(desk: Any) -> None:
    for blank in ("", "  "):
        for call, given in ((desk.append, ("s1", ChatTurn("user", "hello"))), (desk.turns_of, ())):
            try:
                await call(blank, *given)
            except ValueError:
                continue
            raise Wrong(f"The user id {blank!r} is accepted. Everybody who isn't logged in would share one memory.")


self_test(
    "01",
    Question(
        "01-q1",
        "You told a chat model your name two calls ago. Where is it now?",
        (
            Option("In the model, which learned it.", "A call changes no weights. The next one starts from nothing."),
            Option(
                "With the provider.", "Some offer to keep it. They send it again for you, and you pay all the same."
            ),
            Option("Only where your program kept it.", "And it counts only when it is sent again.", right=True),
        ),
    ),
    Question(
        "01-q2",
        "Without a limit, a conversation becomes twice as long. The tokens of all its prompts together become …",
        (
            Option("twice as many", "So does each single prompt at the end. But there are twice as many prompts, too."),
            Option("about four times as many", "Twice as many calls, each on average twice as long.", right=True),
            Option("hardly more: only the new turns are paid", "Every call sends, and pays for, the old turns again."),
        ),
    ),
    Question(
        "01-q3",
        "A user has one conversation at a time, so the user id may serve as the session id?",
        (
            Option("Yes, nobody else sees it.", "True, and still two devices mix, and nothing ever ends."),
            Option("No: phone and laptop mix, and it never ends.", "A session ends; a person goes on.", right=True),
            Option(
                "No: a session id must be hard to guess.", "A login guards a door, not an id. The harm needs no thief."
            ),
        ),
    ),
    Question(
        "01-q4",
        "Your window would open with a tool result, and the endpoint refuses that. What do you do?",
        (
            Option("Reach back for its call.", "Accepted, but longer than the limit: ten results, ten turns more."),
            Option("Send it as a user message.", "Accepted, and a text from outside now speaks as the user."),
            Option("Leave it out.", "Its call is gone; the next turn says what came of it.", right=True),
            Option("Leave all tool results out.", "Then a call in the window has no result, which is refused, too."),
        ),
    ),
    Question(
        "01-q5",
        "A window that covers nearly every back-reference is expensive although back-references are rare. Why?",
        model_answer="Coverage is needed once in a while, the window is paid at every call. A question that reaches "
        "far back needs one turn of a few dozen tokens; the window sends all the turns in between, with every message, "
        "just in case. Layers 2 and 3 keep what matters elsewhere and fetch it when it is asked for.",
    ),
)
