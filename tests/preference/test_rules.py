"""The guard rails: what is stored is short, visible, normalised text, whatever came in."""

from __future__ import annotations

import unicodedata

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.preference.rules import LONGEST_KEY, LONGEST_VALUE, clean, clean_key, cut

anything = st.text(alphabet=st.characters(exclude_categories=["Cs"]))
family = "👨\u200d👩\u200d👧"


@given(anything, anything)
def test_what_is_stored_is_short_visible_and_normalised_and_cleaning_it_again_changes_nothing(key, value):
    pair = clean(key, value)
    if pair is None:
        assert clean_key(key) == "" or clean("k", value) is None
        return
    for text, longest in zip(pair, (LONGEST_KEY, LONGEST_VALUE), strict=True):
        assert 0 < len(text) <= longest
        assert text == text.strip()
        assert text == unicodedata.normalize("NFC", text)
        assert not any(unicodedata.category(letter) == "Cc" for letter in text)
    assert clean(*pair) == pair


@given(st.text(alphabet="ae\u0301你👨👩👧\u200d\ufe0f🏽 ", max_size=200), st.integers(1, 60))
def test_a_cut_never_goes_through_a_grapheme(text, longest):
    short = cut(text, longest)
    assert len(short) <= longest
    first = regex.match(r"\X", text)
    if first and first.end() <= longest:
        ends = {0} | {grapheme.end() for grapheme in regex.finditer(r"\X", text)}
        assert any(text[:end].rstrip() == short.rstrip() for end in ends)


@pytest.mark.parametrize(
    ("dirty", "stored"),
    [
        ("  tea ", "tea"),
        ("te\u200ba", "tea"),
        ("te\0a", "tea"),
        ("a\u200db", "ab"),
        ("green\n\ttea", "green tea"),
        ("\u202ereversed", "reversed"),
        ("cafe\u0301", "café"),
        (family, family),
        ("❤️ red", "❤️ red"),
        ("hidden \U000e0041\U000e0042 tag", "hidden  tag"),
        ("喜欢靠窗的座位", "喜欢靠窗的座位"),
    ],
)
def test_invisible_characters_go_and_everything_else_stays(dirty, stored):
    assert clean("k", dirty) == ("k", stored)


@pytest.mark.parametrize("blank", ["", "   ", "\u200b\u200b", "\0", "\u3164", "\n\n"])
def test_what_looks_blank_is_dropped(blank):
    assert clean("k", blank) is None
    assert clean(blank, "v") is None


def test_a_value_is_cut_at_five_hundred_and_a_key_at_fifty():
    key, value = clean("k" * 60, "好" * 600)
    assert (len(key), len(value)) == (50, 500)


def test_an_emoji_at_the_end_is_kept_whole_or_left_out():
    assert clean("k", "x" * 498 + family) == ("k", "x" * 498)
    assert clean("k", "x" * 495 + family) == ("k", "x" * 495 + family)


def test_a_million_characters_and_a_letter_with_a_thousand_accents_are_cut():
    assert len(clean("k", "一" * 1_000_000)[1]) == 500
    assert len(clean("k", "a" + "\u0301" * 1_000)[1]) == 500
    assert len(clean("k", "a" + "\u0315\u0300" * 500_000)[1]) == 500


@pytest.mark.parametrize("bad", [None, 3, b"x", ["x"], "\ud83d"])
def test_what_is_not_text_is_refused_by_name(bad):
    with pytest.raises(ValueError, match="value"):
        clean("k", bad)
    with pytest.raises(ValueError, match="key"):
        clean(bad, "v")
