"""The records refuse what no engine could keep, and say which field and which value."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory import ChatTurn, EpisodicRecord, ManualClock, system_clock
from tri_memory.contracts import ROLES, as_utc, require_count

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]))


@given(st.sampled_from(sorted(ROLES)), texts, st.none() | texts.filter(lambda t: t.strip() and "\0" not in t))
def test_a_turn_survives_json_to_the_letter(role, content, tool_name):
    turn = ChatTurn(role, content, tool_name)
    assert ChatTurn.from_json(turn.to_json()) == turn
    assert ChatTurn.from_json(turn.to_json().encode()) == turn


def test_the_json_of_a_turn_has_tool_name_only_where_there_is_one():
    assert json.loads(ChatTurn("user", "你好").to_json()) == {"role": "user", "content": "你好"}
    assert json.loads(ChatTurn("tool", "42", "add").to_json()) == {"role": "tool", "content": "42", "toolName": "add"}
    assert "你好" in ChatTurn("user", "你好").to_json()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("robot", "hi"), "role must be one of system, user, assistant, tool; got 'robot'"),
        ((None, "hi"), "role"),
        ((["user"], "hi"), "role"),
        (("user", None), "content must be a string; got None"),
        (("user", b"hi"), "content"),
        (("user", 42), "42"),
        (("user", "half an emoji \ud83d"), "content has a lone surrogate .* at position 14"),
        (("tool", "x", ""), "tool_name"),
        (("tool", "x", 3), "tool_name"),
    ],
)
def test_a_turn_that_no_store_could_keep_is_refused_by_name_and_value(arguments, named):
    with pytest.raises(ValueError, match=named):
        ChatTurn(*arguments)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", '{"role": "user"}', '{"role": "robot", "content": "x"}', "\ud800"]
)
def test_json_that_is_not_a_turn_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011
        ChatTurn.from_json(text)


def test_an_error_about_a_huge_value_stays_short():
    with pytest.raises(ValueError, match="role") as caught:
        ChatTurn("x" * 5_000_000, "hi")
    assert len(str(caught.value)) < 200


def test_a_naive_time_is_refused_and_an_aware_one_is_kept_in_utc():
    beijing = timezone(timedelta(hours=8))
    record = EpisodicRecord("u", "s", "text", [1.0], datetime(2026, 3, 1, 8, tzinfo=beijing))
    assert record.created_at == datetime(2026, 3, 1, 0, tzinfo=UTC)
    assert record.created_at.tzinfo is UTC
    with pytest.raises(ValueError, match="created_at must be an aware datetime"):
        EpisodicRecord("u", "s", "text", [1.0], datetime(2026, 3, 1))  # noqa: DTZ001


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"user_id": " "}, "user_id"),
        ({"session_id": ""}, "session_id"),
        ({"summary": "\n"}, "summary"),
        ({"summary": "a\0b"}, "NUL"),
        ({"created_at": "2026-03-01"}, "created_at"),
    ],
)
def test_a_record_that_no_store_could_keep_is_refused_by_name(fields, named):
    good = {"user_id": "u", "session_id": "s", "summary": "x", "embedding": [1.0], "created_at": system_clock()}
    with pytest.raises(ValueError, match=named):
        EpisodicRecord(**(good | fields))


@pytest.mark.parametrize("value", [-1, 1.0, "3", None, True])
def test_a_count_is_a_whole_number(value):
    with pytest.raises(ValueError, match="limit must be a whole number of at least 0"):
        require_count("limit", value)


def test_a_manual_clock_moves_only_when_told_to_and_may_jump_back():
    clock = ManualClock(datetime(2026, 1, 5, tzinfo=UTC))
    assert clock() == clock()
    clock.advance(days=180, hours=1)
    assert clock() == datetime(2026, 7, 4, 1, tzinfo=UTC)
    clock.advance(days=-1)
    clock.set(as_utc("x", datetime(2025, 1, 1, tzinfo=UTC)))
    assert clock().year == 2025
    with pytest.raises(ValueError, match="aware"):
        clock.set(datetime(2026, 1, 1))  # noqa: DTZ001


def test_the_system_clock_is_aware_and_in_utc():
    assert system_clock().utcoffset() == timedelta(0)


class Nowhere(tzinfo):
    """A zone that doesn't say how far it is from UTC, which Python counts as naive."""

    def utcoffset(self, when):
        return None


@pytest.mark.parametrize("when", [datetime(2026, 3, 1, tzinfo=Nowhere()), pd.NaT])
def test_a_zone_without_an_offset_names_no_moment(when):
    with pytest.raises(ValueError, match="t must be an aware datetime"):
        as_utc("t", when)


@pytest.mark.parametrize(("day", "hours"), [((1, 1, 1), 14), ((9999, 12, 31, 23), -12)])
def test_a_moment_that_utc_cannot_hold_is_refused_by_its_value(day, hours):
    with pytest.raises(ValueError, match="t must lie between the years 1 and 9999 in UTC; got"):
        as_utc("t", datetime(*day, tzinfo=timezone(timedelta(hours=hours))))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai"])
def test_a_pandas_time_becomes_a_plain_datetime_of_whole_microseconds(zone):
    found = as_utc("t", pd.Timestamp("2026-03-01 12:00:00.123456789", tz="UTC").tz_convert(zone))
    assert type(found) is datetime
    assert found == datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)
    twice = pd.Timestamp(datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1))
    assert as_utc("t", twice) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
