"""When to move up a tier: each limit to the number, what it says, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tri_memory.entity.tiers import Stats, advise

QUIET = Stats(sessions=100, interrupted=15, forgot_me=5, turns=800)  # every limit reached, none passed


def test_a_limit_that_is_reached_is_not_passed():
    assert advise(QUIET).tier == "L1"


@pytest.mark.parametrize(
    ("worse", "why"),
    [
        ({"interrupted": 16}, "16 of 100 sessions broke off (16.0 %), more than 15 %"),
        ({"forgot_me": 6}, 'users said "you forgot me" 6 times, more than 5 a day'),
        ({"turns": 801}, "a session had 8.0 turns on average, more than 8"),
    ],
)
def test_each_limit_alone_moves_up_by_one_and_says_why(worse, why):
    advice = advise(replace(QUIET, **worse))
    assert advice.tier == "L2"
    [reason] = [each for each in advice.reasons if each.startswith(why)]
    assert "would speak for moving" not in reason
    others = [each for each in advice.reasons if each is not reason]
    assert len(others) == 2
    assert all("would speak for moving" in each for each in others)


def test_one_time_is_no_times():
    reasons = advise(Stats(sessions=10, interrupted=0, forgot_me=1, turns=20, tier="L1")).reasons
    assert any('"you forgot me" 1 time;' in reason for reason in reasons)


def test_a_share_just_above_the_limit_counts_however_it_rounds():
    assert advise(Stats(sessions=10**18, interrupted=15 * 10**16, forgot_me=0, turns=0)).tier == "L1"
    assert advise(Stats(sessions=10**18, interrupted=15 * 10**16 + 1, forgot_me=0, turns=0)).tier == "L2"


def test_l3_is_on_paper_and_nothing_is_above_it():
    worse = replace(QUIET, forgot_me=6)
    assert advise(replace(worse, tier="L2")).tier == "L3"
    assert "on paper" in advise(replace(worse, tier="L2")).reasons[-1]
    assert advise(replace(worse, tier="L3")).tier == "L3"
    assert "no tier above" in advise(replace(worse, tier="L3")).reasons[-1]


def test_a_quiet_day_never_moves_back():
    assert [advise(replace(QUIET, tier=tier)).tier for tier in ("L1", "L2", "L3")] == ["L1", "L2", "L3"]


def test_a_day_without_a_session_says_so_and_moves_nothing():
    advice = advise(Stats(0, 0, 0, 0))
    assert advice.tier == "L1"
    assert advice.reasons[0].startswith("0 of 0 sessions")


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"sessions": -1}, "sessions"),
        ({"interrupted": 0.2}, "interrupted"),
        ({"interrupted": 101}, "interrupted"),
        ({"forgot_me": True}, "forgot_me"),
        ({"turns": float("nan")}, "turns"),
        ({"sessions": 0, "interrupted": 0}, "turns"),
        ({"tier": "L4"}, "tier"),
    ],
)
def test_what_no_day_can_have_is_refused_by_name(wrong, name):
    with pytest.raises(ValueError, match=name):
        replace(QUIET, **wrong)
