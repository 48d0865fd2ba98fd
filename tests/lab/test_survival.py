"""What survives a fold is counted right, and the offline summariser keeps as much as it promises."""

from __future__ import annotations

import pytest

from tri_memory import ChatTurn, CountPolicy
from tri_memory.lab.datasets import load
from tri_memory.lab.survival import by_folds, replay, shares, stands_in, survival
from tri_memory.session.extractive import ExtractiveSummarizer
from tri_memory.session.summarizers import scripted
from tri_memory.summary import is_summary


@pytest.mark.parametrize(
    ("fact", "text", "there"),
    [
        ("41", "size 41, please", True),
        ("41", "4,150 or 141 or BX-4107", False),
        ("latex", "Latex makes me itch", True),
        ("twelve cards", "twelve\n cards", True),
        ("对芝麻过敏", "我对芝麻过敏，吃一点嘴就肿", True),
        ("B2", "the B21 bus", False),
    ],
)
def test_a_fact_stands_where_the_same_words_stand_and_not_inside_a_longer_one(fact, text, there):
    assert stands_in(fact, text) is there


async def test_replay_stops_after_each_fold_and_folds_where_the_policy_says():
    turns = [ChatTurn("user", f"turn {i}") for i in range(60)]
    snapshots = await replay(turns, scripted("one", "two", "three"), CountPolicy(20, 10), folds=3)
    assert [(s.seen, s.summary, len(s.kept)) for s in snapshots] == [
        (21, "one", 10),
        (31, "two", 10),
        (41, "three", 10),
    ]


async def test_without_a_summary_only_the_kept_turns_count_and_with_all_of_the_text_everything_survives():
    english = load("en")
    nothing = shares(await survival(english, scripted(" "), CountPolicy()))
    assert nothing.history == nothing.truncated
    assert nothing.summary == 0

    def everything(turns: tuple[ChatTurn, ...]) -> str:
        return "\n".join(turn.content for turn in turns if not is_summary(turn))

    all_of_it = shares(await survival(english, lambda turns: everything(turns)[:1_990], CountPolicy(20, 10)))
    assert all_of_it.history > nothing.truncated


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("folds", "policy", "at_least"), [(1, CountPolicy(), 0.80), (4, CountPolicy(27, 20), 0.60)])
async def test_the_offline_summariser_keeps_four_facts_of_five_after_one_fold_and_three_of_five_after_four(
    language, folds, policy, at_least
):
    """The newest 20 turns are kept, as by default; four folds of the default one need more turns than there are."""
    found = shares(await survival(load(language), ExtractiveSummarizer(), policy, folds=folds))
    assert found.facts > 50
    assert found.history >= at_least
    assert found.history >= found.truncated + 0.2
    assert found.summary >= 0.4


async def test_the_facts_of_the_first_fold_never_come_back_once_they_are_gone():
    found = await by_folds(load("en"), ExtractiveSummarizer(), CountPolicy(20, 10), most=3)
    kept = [{(f.question_id, f.fact) for f in found[folds] if f.in_summary} for folds in (1, 2, 3)]
    assert kept[0] >= kept[1] >= kept[2]
