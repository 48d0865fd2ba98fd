"""What is trimmed from a clause: never the owner of what it speaks of."""

import pytest

from tri_memory.session.clauses import trim


@pytest.mark.parametrize(
    "text", ["我的订单到了", "你的订单还没到", "我们家的狗叫豆豆", "我家的狗叫豆豆", "我们的合同到期了"]
)
def test_whose_it_is_stays(text):
    assert trim(text, "zh") == text


@pytest.mark.parametrize(("text", "left"), [("我叫小泽今年三十", "叫小泽今年三十"), ("那就周三送来", "周三送来")])
def test_what_only_begins_a_sentence_goes(text, left):
    assert trim(text, "zh") == left
