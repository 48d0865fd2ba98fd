"""What is a request to be forgotten, and what only speaks of forgetting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tri_memory.agent.forget_request import asks_to_forget

ASKS = (
    """
forget me | Forget me, please. | Can you forget me? | Please forget everything you know about me. | delete my data
Delete all my personal data | erase everything about me | Please delete all the information you have about me!
I want you to forget me | could you please forget all about me | wipe my memory | remove all of my data, thanks
forget everything | Forget it all. | forget about me
forget everything you've stored about me | Forget what you know about me, please | ＦＯＲＧＥＴ　ＭＥ
忘了我吧 | 请忘记我。 | 把我忘了吧 | 忘记关于我的一切 | 请忘记关于我的一切 | 请把我的信息都删掉 | 删除我的数据
麻烦你删除我的所有数据 | 你能不能忘了我？ | 请把关于我的所有信息删除 | 我想让你忘记我
忘记一切 | 把关于我的都忘了 | 忘記我 | 請刪除我的資料 | 忘記關於我的一切 | 清空我的记忆 | 把我的资料全部清除掉，谢谢
""".replace("\n", " | ")
    .strip(" |")
    .split(" | ")
)
DOES_NOT = (
    """
Don't forget me. | You forgot me. | I forget my order. | forget it | forget my order | please delete my last message
forget everything I said about tea | forget about my order | he forgets everything
forget me not | never forget me | Why did you forget me? | Can you forget what I said about the kettle?
I want to forget everything about that day | they delete my data every year | remove my name from the parcel
别忘了我 | 你忘了我 | 你忘了我吗 | 不要忘记我 | 忘了我刚才说的 | 忘记我的订单 | 我忘了
删除我的订单 | 我忘记一切了 | 忘记一切烦恼 | 别把我的信息删掉 | 他把我忘了
""".replace("\n", " | ")
    .strip(" |")
    .split(" | ")
)


@pytest.mark.parametrize("text", ASKS)
def test_a_request_to_be_forgotten(text):
    assert asks_to_forget(text)


@pytest.mark.parametrize("text", DOES_NOT)
def test_what_is_no_request_or_one_for_a_part(text):
    assert not asks_to_forget(text)


@given(st.text(max_size=2_000))
def test_any_text_gets_an_answer(text):
    assert asks_to_forget(text) in (True, False)


@pytest.mark.parametrize("part", ["please ", "请", "all ", "把我", "的", " about me"])
def test_a_long_text_is_answered_soon(part):
    assert not asks_to_forget(part * 20_000 + "!x")
