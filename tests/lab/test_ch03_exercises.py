"""Chapter 03: its checkers tell right from wrong."""

from __future__ import annotations

import re

from tests.lab.proof import assert_proved
from tri_memory.contracts import ChatTurn
from tri_memory.lab.chapters.ch03 import baselines
from tri_memory.session.compression import CountPolicy
from tri_memory.summary import is_summary, summary_text, summary_turn


def fold_by_max(length, compress_after, keep_recent):
    return max(0, length - keep_recent) * (length > compress_after)


def fold_by_the_plan(length, compress_after, keep_recent):
    turns = [ChatTurn("user", "hello")] * length
    span = CountPolicy(compress_after, keep_recent).plan(turns, [1] * length)
    return span.stop - span.start


def fold_one_too_early(length, compress_after, keep_recent):
    return length - keep_recent if length >= compress_after else 0


def fold_the_distance(length, compress_after, keep_recent):
    return compress_after - keep_recent if length > compress_after else 0


def fold_what_stays(length, compress_after, keep_recent):
    return keep_recent if length > compress_after else 0


def fold_always(length, compress_after, keep_recent):
    return length - keep_recent


def test_exercise_03_1_is_proved():
    assert_proved(
        "03-1",
        right=[fold_by_max, fold_by_the_plan],
        wrong={
            fold_one_too_early: "At exactly compress_after",
            fold_the_distance: "any number of turns over the line",
            fold_what_stays: "stay word for word",
            fold_always: "left alone",
        },
    )


def told(turns):
    return " ".join(summary_text(turn) if is_summary(turn) else turn.content for turn in turns)


def sentences_then_room(turns):
    """Another way: words with a digit first, cut out of Chinese by hand, then other words as far as they go."""
    kept, spare = [], []
    for word in re.split(r"[^A-Za-z0-9:,.'-]+", told(turns)):
        word = word.strip(",.:'")
        (kept if any(sign.isdigit() for sign in word) else spare).append(word)
    chinese = bool(re.search("[\u4e00-\u9fff]", told(turns)))
    words = list(dict.fromkeys(kept))
    return " ".join(words if chinese else [*words, *spare[: 100 - len(words)]])


def everything(turns):
    return told(turns)


def without_the_old_summary(turns):
    return pieces(" ".join(turn.content for turn in turns if not is_summary(turn)))


def pieces(text):
    found = re.findall(r"[A-Za-z0-9]+(?:[-.,:][A-Za-z0-9]+)*", text)
    return " ".join(dict.fromkeys(piece for piece in found if re.search(r"\d", piece))) or "nothing"


def digits_only(turns):
    return " ".join(re.findall(r"\d+", told(turns)))


def with_word_boundaries(turns):
    return " ".join(dict.fromkeys(re.findall(r"\b[A-Z]+-\d+\b|\b\d+[,:]\d+\b", told(turns)))) or "nothing"


def prefix_and_all(turns):
    return (
        "Summary: "
        + (turns[0].content if is_summary(turns[0]) else "")
        + " "
        + pieces(told(turns[is_summary(turns[0]) :]))
    )


def first_summary_for_ever(turns):
    return summary_text(turns[0]) if is_summary(turns[0]) else pieces(told(turns))


def nothing_at_all(turns):
    return " "


def test_exercise_03_2_is_proved():
    assert_proved(
        "03-2",
        right=[sentences_then_room, lambda turns: pieces(told(turns))],
        wrong={
            everything: "at most 100 are allowed",
            without_the_old_summary: "now gone",
            digits_only: "cut in pieces",
            with_word_boundaries: "no boundary there",
            prefix_and_all: "The prefix of the old summary",
            first_summary_for_ever: "takes all the room",
            baselines.first_sentences: "was told in the turns",
            nothing_at_all: "not blank",
        },
    )


def feed_as_a_loop(summarise, cap):
    def fed(turns):
        text, rest = None, list(turns)
        while rest or text is None:
            head = [] if text is None else [summary_turn(text)]
            room = cap - len(head)
            text, rest = summarise([*head, *rest[:room]]), rest[room:]
        return text

    return fed


def feed_as_a_tree(summarise, cap):
    def fed(turns):
        if len(turns) <= cap:
            return summarise(turns)
        texts = [summarise(turns[i : i + cap]) for i in range(0, len(turns), cap)]
        return fed([summary_turn(text) for text in texts])

    return fed


def feed_the_first(summarise, cap):
    return lambda turns: summarise(turns[:cap])


def feed_all(summarise, cap):
    return lambda turns: summarise(turns)


def feed_and_join(summarise, cap):
    return lambda turns: " ".join(summarise(turns[i : i + cap]) for i in range(0, len(turns), cap))


def feed_without_carrying(summarise, cap):
    return lambda turns: [summarise(turns[i : i + cap]) for i in range(0, len(turns), cap)][-1]


def feed_without_the_prefix(summarise, cap):
    def fed(turns):
        waiting = list(turns)
        while len(waiting) > cap:
            waiting[:cap] = [ChatTurn("system", summarise(waiting[:cap]))]
        return summarise(waiting)

    return fed


def feed_one_by_one(summarise, cap):
    def fed(turns):
        text = summarise(turns[:1])
        for turn in turns[1:]:
            text = summarise([summary_turn(text), turn])
        return text

    return fed


def feed_eating_its_input(summarise, cap):
    def fed(turns):
        while len(turns) > cap:
            turns[:cap] = [summary_turn(summarise(turns[:cap]))]
        return summarise(turns)

    return fed


def test_exercise_03_3_is_proved():
    assert_proved(
        "03-3",
        right=[feed_as_a_loop, feed_as_a_tree],
        wrong={
            feed_the_first: "Dropped unread",
            feed_all: "the cap is",
            feed_and_join: "joined into one text",
            feed_without_carrying: "Read and forgotten",
            feed_without_the_prefix: "needs its prefix",
            feed_one_by_one: "Fill each one up",
            feed_eating_its_input: "changes the turns",
        },
    )
