"""The content of a record: what goes in comes out, what JSON lacks is named, and a part is part of its whole."""

from __future__ import annotations

import json
from collections import UserDict
from enum import IntEnum, StrEnum
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.entity.content import LARGEST_CONTENT, contains, from_text, sessions_of, to_text

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=8
)
objects = st.dictionaries(texts, values, max_size=4)


@given(objects)
def test_any_json_object_comes_back_equal_and_as_the_same_text(content):
    text = to_text("content", content)
    assert from_text(text) == content
    assert json.loads(text) == content
    assert to_text("content", from_text(to_text("content", from_text(text)))) == to_text("content", from_text(text))


@given(objects, st.randoms(use_true_random=False))
def test_a_part_is_contained_in_its_whole_and_a_changed_one_is_not(content, rng):
    def part(whole):
        if isinstance(whole, dict):
            return {key: part(each) for key, each in whole.items() if rng.random() < 0.6}
        if isinstance(whole, list):
            some = [part(each) for each in whole if rng.random() < 0.6]
            rng.shuffle(some)
            return some * rng.choice([1, 2])
        return whole

    some = part(content)
    assert contains(content, some)
    assert not contains(content, {**some, "a key that no content has": None})


@pytest.mark.parametrize(
    ("whole", "part", "expected"),
    [
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 0}, {"a": False}, False),
        ({"a": None}, {"a": None}, True),
        ({}, {"a": None}, False),
        ({"a": [1, 2, 3]}, {"a": [3, 1, 1]}, True),
        ({"a": [1]}, {"a": 1}, False),
        ({"a": 1}, {"a": [1]}, False),
        ({"a": [[1, 2]]}, {"a": [[2]]}, True),
        ({"a": [[1, 2]]}, {"a": [2]}, False),
        ({"a": {"b": 1}}, {"a": {}}, True),
        ({"a": {"b": 1}}, {"a": []}, False),
        ({"a": "Abc"}, {"a": "abc"}, False),
    ],
)
def test_what_is_contained_in_what(whole, part, expected):
    assert contains(whole, part) is expected


def test_what_only_looks_like_json_is_taken_for_what_it_is():
    class Colour(StrEnum):
        RED = "red"

    class Level(IntEnum):
        HIGH = 3

    content = UserDict(a=(1, 2), b=MappingProxyType({"c": Colour.RED}), d=Level.HIGH, e=np.float64(0.5))
    assert from_text(to_text("content", content)) == {"a": [1, 2], "b": {"c": "red"}, "d": 3, "e": 0.5}
    for strange in (np.int64(3), np.array([1.0]), object(), 1j):
        with pytest.raises(ValueError, match=r"content\.a is a \w+, which JSON does not have"):
            to_text("content", {"a": strange})


def test_the_limit_counts_bytes_and_the_error_holds_nothing_of_the_content():
    fits = {"a": "x" * (LARGEST_CONTENT - len('{"a":""}'))}
    assert len(to_text("content", fits)) == LARGEST_CONTENT
    with pytest.raises(ValueError, match="content has 1,000,001 bytes as JSON") as caught:
        to_text("content", {"a": fits["a"] + "x"})
    assert "xx" not in str(caught.value)


def test_the_sessions_that_a_content_names():
    assert sessions_of({}) == []
    assert sessions_of({"session_id": "s1", "session_ids": ["s2", "s3"]}) == ["s1", "s2", "s3"]
    assert sessions_of({"session_id": 7, "session_ids": ["s2", None, {"s": 1}]}) == ["s2"]
    assert sessions_of({"session_ids": "s1"}) == []
