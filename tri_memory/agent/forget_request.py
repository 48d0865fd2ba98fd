"""A request to be forgotten, in English or Chinese, and the question that is asked before anything is deleted.

The whole sentence has to be such a request. What it does not do: understand a request in other words, or one for a part
("forget my address").
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping

from tri_memory.agent.confirmation import folded, is_clear_yes

SURE = "Forget everything about you? This can't be undone. 要忘记关于你的一切吗？此事不能撤回。 [yes/no]"
KEPT = "Nothing was forgotten. 什么都没有忘记。"

_ABOUT_ME_EN = r"(?:about|on|of) me"
_ALL_EN = (
    r"me|(?:all (?:of it )?)?about me|who i am|everything|it all"
    rf"|(?:all|everything|anything|whatever|what)(?: (?:that )?you(?:'ve| have)?(?: ever)? "
    rf"(?:know|have|remember|learned|learnt|store|stored|keep|kept|saved?))? {_ABOUT_ME_EN}"
    r"|(?:all |any )?(?:of )?my (?:personal )?(?:data|information|info|memor(?:y|ies)|profile|records|details)"
    r"|(?:all |any )?(?:the |your )?(?:data|information|info|memories|records) "
    rf"(?:you (?:have|keep|store) )?{_ABOUT_ME_EN}"
)
_ASK_EN = (
    r"(?:(?:please|now|ok|okay|hey|can you|could you|would you|will you|you should|you must|just"
    r"|i(?:'d| would) like you to|i want you to|i need you to)[, ]+)*"
)
_END_EN = r"(?:[, ]+(?:please|now|right now|completely|entirely|forever|for good|thanks|thank you|at once))*"
_ENGLISH = rf"{_ASK_EN}(?:forget|delete|erase|wipe|remove)(?: all)? (?:{_ALL_EN}){_END_EN}"

_VERB_ZH = r"(?:忘了|忘[记記]|忘掉|忘|[删刪]除|[删刪]掉|[删刪]了|[删刪]|清除|清空|抹掉|抹去)"
_THINGS_ZH = r"(?:[个個]人)?(?:信息|数据|資訊|數據|[资資]料|[记記][录錄]|[记記][忆憶]|[内內]容|事情|事|[档檔]案)"
_ALL_ZH = (
    rf"(?:[你您](?:知道|记得|记住|保存|存)的?)?(?:关于|有关|關於|有關)我的?(?:一切|全部|所有|{_THINGS_ZH}|(?:所有|全部|一切)的?{_THINGS_ZH})"
    rf"|我的?(?:一切|全部|所有)(?:的?{_THINGS_ZH})?|我的{_THINGS_ZH}|(?:关于|有关|關於|有關)我的|一切|所有事情?|我"
)
_ASK_ZH = (  # 你忘了我 alone says that it happened
    r"(?:(?:请|請|麻烦|麻煩)[你您]?|[你您]?(?:能不能|能否|能|可以|可不可以)|帮我|帮忙|现在|我(?:想|要|希望)(?:让|要)?[你您])*"
)
_END_ZH = r"(?:掉|了|吧|吗|好吗|可以吗|谢谢|[，, ])*"
_CHINESE = rf"{_ASK_ZH}(?:{_VERB_ZH}(?:{_ALL_ZH})|[把将](?:{_ALL_ZH})(?:都|全部|全|彻底|通通)*{_VERB_ZH}){_END_ZH}"

_REQUEST = re.compile(rf"(?:{_ENGLISH}|{_CHINESE})")


def asks_to_forget(text: str) -> bool:
    """Whether `text` as a whole asks to forget everything about who says it.

    >>> [asks_to_forget(text) for text in ("Can you forget me?", "请把我的信息都删掉", "forget my order", "别忘了我")]
    [True, True, False, False]
    """
    return _REQUEST.fullmatch(folded(text).rstrip(" .!?。~,")) is not None


class ForgetRequest:
    """Between "forget me" and forgetting: it asks once, and anything but a clear yes leaves everything as it is."""

    def __init__(self) -> None:
        self._asked = False

    async def reply(self, text: str, forget: Callable[[], Awaitable[Mapping[str, int]]]) -> str | None:
        """What is said to `text`; None where it has nothing to do with forgetting. A yes calls `forget`, and what that
        raises comes through: then nothing is waiting for a yes any more."""
        asked, self._asked = self._asked, not self._asked and asks_to_forget(text)
        if not asked:
            return SURE if self._asked else None
        return forgotten(await forget()) if is_clear_yes(text) else KEPT


def forgotten(gone: Mapping[str, int]) -> str:
    """How much went from each layer, in a line.

    >>> forgotten({"sessions": 2, "episodes": 0})
    'Forgotten: 2 sessions, 0 episodes. 已忘记。'
    """
    return "Forgotten: " + ", ".join(f"{count} {layer}" for layer, count in gone.items()) + ". 已忘记。"
