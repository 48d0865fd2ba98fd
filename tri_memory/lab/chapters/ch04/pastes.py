"""The same conversations with what people really paste: a device's log, a tracking export, a list of quiz results.

The people and what they say come from `data/`; the pasted lines are generated here, from a seed. A pasted line never
holds one of the person's gold facts, so a fact that is still there at the end was kept, not pasted.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from tri_memory.contracts import ChatTurn
from tri_memory.lab.datasets import Dataset
from tri_memory.lab.survival import stands_in

MEDIAN_LINES, SPREAD, LEAST, MOST = 30, 0.8, 5, 150

_LINES = {
    ("en", "device"): (
        "{stamp}Z INFO  unit[{pid}]: cycle {n6} finished, load {n2}.{n3} %, {n5} ms",
        "{stamp}Z WARN  bus[{pid}]: frame 0x{hex} repeated, slave {n3} answered after {n4} us",
        "{stamp}Z ERROR drive[{pid}]: no answer within {n4} ms, code E{n5}, retry {n3}",
        "{stamp}Z DEBUG io[{pid}]: inputs=0x{hex} outputs=0x{hex}",
    ),
    ("en", "shop"): (
        '{{"parcel": "{hex}", "at": "{stamp}Z", "event": "SORTED", "hub": "{hub}", "grams": {n4}}}',
        '{{"parcel": "{hex}", "at": "{stamp}Z", "event": "DEPARTED", "hub": "{hub}", "van": {n5}}}',
        '{{"parcel": "{hex}", "at": "{stamp}Z", "event": "HELD", "reason": "label unreadable", "scan": {n6}}}',
    ),
    ("en", "coach"): (
        "{stamp}  item {n5}  answered in {n3} s  wrong  chosen: formula without units",
        "{stamp}  item {n5}  answered in {n3} s  right",
        "{stamp}  item {n5}  skipped after {n3} s, flagged for review",
    ),
    ("zh", "device"): (
        "{stamp} 信息 控制器{pid}：循环{n6}完成，负载{n2}.{n3}%，用时{n5}毫秒",
        "{stamp} 警告 总线{pid}：报文0x{hex}重发，从站{n3}响应延迟{n4}微秒",
        "{stamp} 错误 驱动{pid}：{n4}毫秒内无应答，代码E{n5}，正在第{n3}次重试",
    ),
    ("zh", "shop"): (
        "{stamp} 包裹{hex} 已到达{hub}分拣中心，重量{n4}克，等待装车",
        "{stamp} 包裹{hex} 已离开{hub}分拣中心，车次{n5}，预计次日送达",
        "{stamp} 包裹{hex} 滞留：面单无法识别，已转人工处理，扫描号{n6}",
    ),
    ("zh", "coach"): (
        "{stamp} 第{n5}题 用时{n3}秒 错误 选项里漏掉了前提条件",
        "{stamp} 第{n5}题 用时{n3}秒 正确",
        "{stamp} 第{n5}题 停留{n3}秒后跳过，已加入复习列表",
    ),
}
_HUBS = {"en": ("north", "harbour", "airport"), "zh": ("城北", "港口", "机场")}


def with_pastes(dataset: Dataset, user: str, *, seed: int = 1) -> list[ChatTurn]:
    """All visits of `user` in one row; in each visit one user turn, drawn by chance, has a paste beneath its words.

    The turns stay as many as they were. A paste has 5 to 150 lines; its length is log-normal with a median of 30.
    """
    chance = random.Random(f"{user} {seed}")
    facts = [fact for question in dataset.questions if question.user_id == user for fact in question.facts]
    trade = user.split("-")[1]
    turns: list[ChatTurn] = []
    for session in dataset.of(user):
        spoken = [i for i, turn in enumerate(session.turns) if turn.role == "user"]
        chosen = chance.choice(spoken)
        length = min(max(round(MEDIAN_LINES * chance.lognormvariate(0, SPREAD)), LEAST), MOST)
        pasted = "\n".join(_lines(dataset.language, trade, length, chance, facts))
        for i, turn in enumerate(session.turns):
            turns.append(replace(turn, content=f"{turn.content}\n\n{pasted}") if i == chosen else turn)
    return turns


def paste_of(language: str, trade: str, lines: int, chance: random.Random) -> str:
    """A paste of `lines` lines on its own."""
    return "\n".join(_lines(language, trade, lines, chance, ()))


def _lines(language: str, trade: str, length: int, chance: random.Random, facts: Sequence[str]) -> list[str]:
    """`length` lines, none of which says one of `facts`."""
    line_after = _writer(language, trade, chance)
    lines = [line_after() for _ in range(length)]
    told = [fact for fact in facts if stands_in(fact, "\n".join(lines))]  # nearly always none
    lines = [line for line in lines if not any(stands_in(fact, line) for fact in told)]
    while len(lines) < length:
        line = line_after()
        if not any(stands_in(fact, line) for fact in facts):
            lines.append(line)
    return lines


def _writer(language: str, trade: str, chance: random.Random) -> Callable[[], str]:
    """A function that writes the next line of a log; time goes on from line to line."""
    seconds = chance.randrange(80_000)

    def line() -> str:
        nonlocal seconds
        seconds += chance.randrange(1, 9)
        fields = {f"n{digits}": f"{chance.randrange(10**digits):0{digits}}" for digits in range(2, 7)}
        return chance.choice(_LINES[language, trade]).format(
            stamp=f"2026-03-02T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}",
            pid=chance.randrange(1000, 9999),
            hex=f"{chance.randrange(16**8):08x}",
            hub=chance.choice(_HUBS[language]),
            **fields,
        )

    return line
