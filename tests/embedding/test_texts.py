import numpy as np
import pytest

from tri_memory.embedding.texts import is_blank, storable, unit_rows


class Spy:
    """Stands for a model; keeps the texts that reached it."""

    def __init__(self):
        self.calls = []

    def __call__(self, texts):
        self.calls.append(texts)
        return [[3.0 * len(text), 4.0 * len(text)] for text in texts]


BLANK = ["", " \n\t", "\u3000", "\u200b\ufeff", "\0", "\x07", "\ud83d"]


def test_rows_have_length_1_and_blank_texts_are_zeros_in_their_places():
    rows = unit_rows(["refund", *BLANK, "退货"], 2, Spy())
    assert rows.dtype == np.float32
    assert rows[[0, -1]] == pytest.approx(np.array([[0.6, 0.8]] * 2))
    assert not rows[1:-1].any()


def test_the_model_sees_the_texts_once_in_one_call_and_never_a_blank_one():
    spy = Spy()
    unit_rows(["b", "", "a", "b"], 2, spy)
    assert spy.calls == [["b", "a", "b"]]


@pytest.mark.parametrize("texts", [[], [""], BLANK])
def test_the_model_is_left_alone_where_there_is_nothing_to_read(texts):
    spy = Spy()
    assert unit_rows(texts, 2, spy).shape == (len(texts), 2)
    assert spy.calls == []


def test_the_model_gets_no_nul_no_half_emoji_and_no_more_than_the_longest():
    spy = Spy()
    unit_rows(["re\0fund \ud83d😀", "退" * 5_000_000], 2, spy, longest=100)
    assert spy.calls == [["refund 😀", "退" * 100]]


def test_a_single_string_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match=r"got the single text 'refund': write encode\(\[text\]\)"):
        unit_rows("refund", 2, Spy())


@pytest.mark.parametrize("wrong", [None, 7, b"refund", ["refund"], float("nan")])
def test_an_item_that_is_no_string_is_named_by_its_index_and_value(wrong):
    with pytest.raises(ValueError, match=r"texts\[1\] must be a string; got") as caught:
        unit_rows(["refund", wrong], 2, Spy())
    assert repr(wrong) in str(caught.value)


@pytest.mark.parametrize("wrong", [None, 7])
def test_what_is_no_list_is_refused(wrong):
    with pytest.raises(ValueError, match=f"texts must be a list of strings; got {wrong}"):
        unit_rows(wrong, 2, Spy())


def test_any_iterable_of_strings_will_do():
    assert unit_rows((text for text in ("a", "b")), 2, Spy()).shape == (2, 2)


@pytest.mark.parametrize("text", BLANK)
def test_a_text_that_shows_nothing_is_blank(text):
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "退", "😀", "!", "\u200ba", "7"])
def test_a_text_that_shows_something_is_not(text):
    assert not is_blank(text)


def test_storable_text_keeps_everything_else():
    assert storable("re\0fund\ud83d 退货 😀\n") == "refund 退货 😀\n"
