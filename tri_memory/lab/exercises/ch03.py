"""Chapter 03: how many turns to fold, a summariser that keeps what must not be lost, one that takes any length."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

from tri_memory.contracts import ChatTurn, shown
from tri_memory.lab.chapters.ch03 import planted
from tri_memory.lab.chapters.ch03.planted import SmallSummariser
from tri_memory.lab.exercises.ch03_watched import WatchedSummariser
from tri_memory.lab.exercises.kit import Option, Question, Wrong, exercise, self_test
from tri_memory.lab.survival import stands_in
from tri_memory.summary import PREFIXES, summary_turn

Summarise = Callable[[Sequence[ChatTurn]], str]


@exercise(
    "03-1",
    "How many turns to fold",
    dots=1,
    minutes=5,
    hints=(
        "Two questions in a row: is the history longer than compress_after? And if so, how many stay?",
        "keep_recent turns stay, whatever the length is. All others go.",
        "return length - keep_recent if length > compress_after else 0",
    ),
)
def turns_to_fold(function: Callable[[int, int, int], int], rng: random.Random) -> None:
    for _ in range(20):
        keep = rng.randrange(2, 30)
        after = 2 * keep + rng.choice([-1, 1, 2, 5])
        for length in (rng.randrange(0, after), after, after + 1, after + rng.randrange(2, 40)):
            found = function(length, after, keep)
            expected = length - keep if length > after else 0
            if not isinstance(found, int) or isinstance(found, bool):
                raise Wrong(f"It should return a whole number; it returned {shown(found)}.")
            if found != expected:
                case = f"With length {length}, compress_after {after}, keep_recent {keep} you fold {found}"
                raise Wrong(f"{_why_not(found, length, after, keep)} {case}, and {expected} is right.")


def _why_not(found: int, length: int, after: int, keep: int) -> str:
    if length == after:
        return "At exactly compress_after turns nothing happens yet; one more does it."
    if length < after:
        return "A short history is left alone."
    if found == keep:
        return "That is how many turns stay word for word. How many go?"
    if found == after - keep:
        return "A fold leaves keep_recent turns, and may start any number of turns over the line."
    return "All but the newest keep_recent turns go."


LIMITS = {"en": (100, "words"), "zh": (150, "characters")}


@exercise(
    "03-2",
    "A summariser that keeps ids and numbers",
    dots=2,
    minutes=15,
    hints=(
        "What must not be lost goes in first: collect the ids and numbers of all turns, the old summary's too.",
        r"re.findall(r'[A-Za-z0-9]+(?:[-.,:][A-Za-z0-9]+)*', text) finds 'BX-2207', '1,150' and '14:30' whole, also "
        "right behind a Chinese character, where \\b sees no boundary. Keep those with a digit in them.",
        "text = ' '.join(summary_text(t) if is_summary(t) else t.content for t in turns), then the pieces with a "
        "digit, each once (dict.fromkeys keeps the order), joined by spaces.",
    ),
)
def own_summariser(summarise: Summarise, rng: random.Random) -> None:
    for language in ("en", "zh"):
        old: ChatTurn | None = None
        told: list[str] = []
        for fold in range(1, 5):
            new = planted.ids(rng, told)
            span = planted.span(language, new, rng)
            text = summarise([old, *span] if old else span)
            _check_summary(text, language, fold, told, new)
            told += new
            old = summary_turn(text)


def _check_summary(text: object, language: str, fold: int, told: list[str], new: list[str]) -> None:
    if not isinstance(text, str) or not text.strip():
        raise Wrong(f"A summary is text, and not blank; it returned {shown(text)}.")
    most, unit = LIMITS[language]
    length = len(text) if language == "zh" else len(text.split())
    old_lost = [id for id in told if not stands_in(id, text)]
    new_lost = [id for id in new if not stands_in(id, text)]
    if old_lost:
        raise Wrong(
            f"The old summary is part of the span, its first turn. At fold {fold} it held {old_lost[0]}, now gone: "
            "nobody will ever read it again, for the turn that said it was folded before."
        )
    if length > most:
        raise Wrong(
            f"Too long: fold {fold} returned {length} {unit}; at most {most} are allowed, or the prompt grows again."
        )
    if any(prefix.strip() in text.strip()[1:] for prefix in PREFIXES.values()):
        raise Wrong(f"The prefix of the old summary was copied into the new one, once more at each fold (fold {fold}).")
    if new_lost and fold > 1 and len(new_lost) == len(new):
        raise Wrong(
            f"The old summary takes all the room: at fold {fold} {new_lost[0]}, just told, found none. What can be "
            "spared has to make way, in the old summary too."
        )
    if new_lost and any(stands_in(part, text) for part in re.split("[-,:]", new_lost[0])):
        raise Wrong(f"An id was cut in pieces, {new_lost[0]}: it is letters, digits and the signs between them.")
    if new_lost and language == "zh":
        raise Wrong(
            f"Chinese has no spaces: in “订单号{new_lost[0]}，” the id follows a character, which is a letter to a "
            "regular expression, so \\b finds no boundary there."
        )
    if new_lost:
        raise Wrong(
            f"It isn't kept: {new_lost[0]} was told in the turns of fold {fold} and is not in {shown(text, 90)}."
        )


@exercise(
    "03-3",
    "Feed a small summariser in pieces",
    dots=3,
    minutes=20,
    hints=(
        "What a call returned must go into the next call, or its turns are forgotten. Who reads an old summary?",
        "Keep a list `waiting` of turns. While it is longer than cap: summarise its first cap turns and put "
        "summary_turn(text) in their place, at the head.",
        "def fed(turns): waiting = list(turns); while len(waiting) > cap: waiting[:cap] = "
        "[summary_turn(summarise(waiting[:cap]))]; return summarise(waiting). And return fed.",
    ),
)
def fed_in_pieces(feed: Callable[[Summarise, int], Summarise], rng: random.Random) -> None:
    for count in (rng.randrange(1, 4), 60, rng.randrange(20, 90)):
        for old_summary in (False, True):
            cap = rng.randrange(4, 12)
            small = WatchedSummariser(cap)
            fed = feed(small, cap)
            if not callable(fed):
                raise Wrong(f"feed returns a summariser, a function from turns to text; it returned {shown(fed)}.")
            span = [ChatTurn("user", f"turn {i}") for i in range(1, count + 1)]
            if old_summary:
                span.insert(0, summary_turn(small.remember("what was said before", {"the past"})))
            given = list(span)
            text = fed(span)
            if span != given:
                raise Wrong(
                    "It changes the turns it was given; the store needs them as they were. Work on a list of your own."
                )
            _check_cover(small, text, given, cap)


def _check_cover(small: SmallSummariser, text: object, span: Sequence[ChatTurn], cap: int) -> None:
    if not isinstance(text, str):
        raise Wrong(f"The summariser should return text; it returned {shown(text)}.")
    if text not in small.covers:
        if any(part in text for part in small.covers):
            raise Wrong(
                f"The partial summaries are joined into one text: with {len(small.calls)} pieces it is "
                f"{len(small.calls)} summaries long, and the store refuses what is too long."
            )
        raise Wrong(f"That is not what the summariser wrote: {shown(text)}.")
    wanted = small.stands_for(span)
    missing = [turn for turn in sorted(wanted, key=_number) if turn not in small.covers[text]]
    read = set().union(*(small.stands_for(call) for call in small.calls))
    if missing and missing[0] in read:
        raise Wrong(
            f"Read and forgotten: {missing[0]!r} went into an early call, but the last summary doesn't cover it "
            f"({len(span)} turns, cap {cap}). Put each call's text, as summary_turn(text), first in the next call."
        )
    if missing:
        raise Wrong(f"Dropped unread: {len(missing)} turns from {missing[0]!r} on ({len(span)} turns, cap {cap}).")
    enough = max(1, -(-(len(span) - 1) // (cap - 1)))
    if len(small.calls) > 2 * enough + 1:
        raise Wrong(f"{len(small.calls)} calls, where {enough} do ({len(span)} turns, cap {cap}). Fill each one up.")


def _number(content: str) -> int:
    """ "turn 7" -> 7; what an old summary stands for comes first."""
    last = content.rsplit(" ", 1)[-1]
    return int(last) if last.isdigit() else 0


self_test(
    "03",
    Question(
        "03-q1",
        "compress_after is 40, keep_recent 20, and turn 41 arrives. How long is the history after the fold?",
        (
            Option("20", "These are the turns kept word for word. Something stands before them."),
            Option("21", "Twenty turns, and the summary turn at the head.", right=True),
            Option("40", "compress_after says when a fold happens; keep_recent says what is left."),
        ),
    ),
    Question(
        "03-q2",
        "A session has been folded nine times. How many summary turns stand in its history?",
        (
            Option("9", "Then the prompt would grow without end, only more slowly."),
            Option("1", "Each fold condenses the old summary together with the new turns.", right=True),
            Option("2", "The first and the newest? The first is inside the newest, as far as it survived."),
        ),
    ),
    Question(
        "03-q3",
        "You raise keep_recent from 20 to 38 and leave compress_after at 40. What happens?",
        (
            Option(
                "More is kept word for word, and nothing else changes.",
                "Count the folds: from now on one is due every second turn.",
            ),
            Option(
                "Summary calls come ten times as often, and old turns are condensed ten times as often.",
                "The distance between the two numbers sets the rhythm: 2 turns instead of 20.",
                right=True,
            ),
            Option("Folds get rarer, for less has to go.", "Less goes each time, so the line is reached sooner again."),
        ),
    ),
    Question(
        "03-q4",
        "The summariser hangs, on_failure is 'truncate'. What does the caller of append notice?",
        (
            Option(
                "An exception, which it has to catch.", "A failed summary never stops a conversation. append returns."
            ),
            Option(
                "One append takes as long as the time-out; no error. The trace says how many turns were cut.",
                "So somebody has to read the trace: an alarm on 'truncated' is the least.",
                right=True,
            ),
            Option(
                "Nothing at all: the turns wait until the model is back.",
                "That is on_failure='keep', up to a hard cap.",
            ),
        ),
    ),
    Question(
        "03-q5",
        "A customer says in turn 9 that sesame makes her mouth swell. After which turn may that be missing from the "
        "prompt, and where would you keep it instead?",
        model_answer="Never: and a rolling summary can't promise that, since each fold may drop it for something that "
        "looks more important. What must hold for ever is not conversation but knowledge about the user. It belongs in "
        "the preference store (notebook 06), which goes into every prompt as it is and is never summarised.",
    ),
)
