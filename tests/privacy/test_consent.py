"""Anything but a clear yes, to this question, in this conversation, is no."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.agent.confirmation import is_clear_yes
from tri_memory.clock import ManualClock
from tri_memory.privacy.consent import Consent

HERE = {"user_id": "ann", "session_id": "s1"}
CASE = "case MC-3061"


def agreed(clock=None) -> Consent:
    consent = Consent(clock=clock) if clock else Consent()
    assert consent.answer("yes", consent.ask(CASE, **HERE), **HERE)
    return consent


@pytest.mark.parametrize("text", ["yes", "Yes, please!", "可以", "是的，谢谢", "Go ahead"])
def test_a_clear_yes_allows_this_subject_in_this_session_to_this_user_and_nothing_else(text):
    consent = Consent()
    assert not consent.allows(CASE, **HERE)
    assert consent.answer(text, consent.ask(CASE, **HERE), **HERE)

    assert consent.allows(CASE, **HERE)
    assert not consent.allows("case MC-3062", **HERE)
    assert not consent.allows(CASE, user_id="ann", session_id="s2")
    assert not consent.allows(CASE, user_id="bob", session_id="s1")


@pytest.mark.parametrize("text", ["", "maybe", "yes?", "yes but not now", "no", "不", "嗯", "yes no", None, 1, "why?"])
def test_what_is_not_clear_is_no_and_is_not_asked_again(text):
    consent = Consent()
    assert not consent.answer(text, consent.ask(CASE, **HERE), **HERE)

    assert not consent.allows(CASE, **HERE)
    assert consent.ask(CASE, **HERE) is None
    assert consent.ask("  case   MC-3061 ", **HERE) is None


@given(st.text(max_size=80))
def test_whatever_is_said_allows_only_what_is_a_clear_yes(text):
    consent = Consent()
    consent.answer(text, consent.ask(CASE, **HERE), **HERE)

    assert consent.allows(CASE, **HERE) == is_clear_yes(text)


def test_a_yes_to_another_question_is_no_yes_to_this_one():
    consent = Consent()
    first = consent.ask(CASE, **HERE)
    second = consent.ask("the old address", **HERE)

    assert not consent.answer("yes", first, **HERE)  # it was not the last one asked
    assert not consent.answer("yes", second, **HERE)  # and one answer is for one question
    assert not consent.allows(CASE, **HERE)
    assert not consent.allows("the old address", **HERE)


def test_a_yes_that_comes_after_something_else_was_said_is_none():
    consent = Consent()
    question = consent.ask(CASE, **HERE)
    consent.hear("What about my refund?", **HERE)

    assert not consent.answer("yes", question, **HERE)


def test_a_question_of_another_session_or_consent_is_not_answered_here():
    consent, other = Consent(), Consent()
    consent.ask("something", **HERE)
    there = consent.ask(CASE, user_id="ann", session_id="s2")
    other.ask("x", **HERE)

    assert not consent.answer("yes", there, **HERE)
    assert not consent.answer("yes", other.ask(CASE, **HERE), **HERE)


@pytest.mark.parametrize("text", ["no", "No, don't use that", "不要", "别用了", "Stop.", "Don’t", "NEVER"])
def test_a_no_takes_back_every_yes_of_the_session(text):
    consent = agreed()
    assert consent.answer("yes", consent.ask("the old address", **HERE), **HERE)
    consent.hear(text, **HERE)

    assert not consent.allows(CASE, **HERE)
    assert not consent.allows("the old address", **HERE)
    assert consent.ask(CASE, **HERE) is None


@pytest.mark.parametrize("text", ["nobody came", "thanks", "I know", "a note", "", None])
def test_other_words_take_nothing_back(text):
    consent = agreed()
    consent.hear(text, **HERE)

    assert consent.allows(CASE, **HERE)


def test_a_subject_can_be_revoked_alone_also_while_its_question_waits():
    consent = agreed()
    question = consent.ask("the old address", **HERE)
    consent.revoke("the old address", **HERE)
    assert not consent.answer("yes", question, **HERE)
    assert consent.allows(CASE, **HERE)

    consent.revoke(CASE, **HERE)
    assert not consent.allows(CASE, **HERE)


def test_a_yes_ends_with_its_session_and_then_the_question_may_be_asked_again():
    consent = agreed()
    consent.end(**HERE)

    assert not consent.allows(CASE, **HERE)
    assert consent.ask(CASE, **HERE) is not None


def test_a_yes_expires_with_a_session_that_nobody_goes_on_with():
    clock = ManualClock()
    consent = agreed(clock)
    clock.advance(hours=23)
    consent.hear("and then?", **HERE)
    clock.advance(hours=23)
    assert consent.allows(CASE, **HERE)
    clock.advance(hours=1)

    assert not consent.allows(CASE, **HERE)


async def test_forgetting_drops_what_was_agreed_and_another_users_stays():
    consent = agreed()
    there = {"user_id": "bob", "session_id": "s1"}
    consent.answer("yes", consent.ask(CASE, **there), **there)

    assert await consent.find("ann", "MC-3061") == 1
    assert await consent.forget("ann") == 1
    assert await consent.find("ann", "") == 0
    assert (consent.allows(CASE, **HERE), consent.allows(CASE, **there)) == (False, True)


@pytest.mark.parametrize(
    ("subject", "text"),
    [(CASE, "Do you want the details of case MC-3061?"), ("工单 MC-3061", "需要我说出工单 MC-3061的详情吗？")],
)
def test_the_question_is_in_the_subjects_language(subject, text):
    assert Consent().ask(subject, **HERE).text == text


@pytest.mark.parametrize("missing", [{"user_id": "", "session_id": "s"}, {"user_id": "ann", "session_id": " "}])
def test_no_user_or_no_session_is_refused(missing):
    with pytest.raises(ValueError, match="must be a non-blank string"):
        Consent().ask(CASE, **missing)
    with pytest.raises(ValueError, match="must be a non-blank string"):
        Consent().allows(CASE, **missing)
