"""A small chat to stand where yours will: one person, four days, two languages, and questions with their quotes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from tri_memory.lab.chapters.ch10.kept import usual
from tri_memory.lab.chapters.ch15.folder import own_folder
from tri_memory.lab.datasets import LANGUAGES, load
from tri_memory.lab.evaluation import evaluate
from tri_memory.lab.rankers import BM25, NEWEST, Ranker, bm25, newest
from tri_memory.lab.report import Report

CHAT = """\
2026-03-02
Lin: My violin teacher moved to Harbour Road, the lesson starts at 17:30 now
assistant: Noted. Shall I plan the tram from the office?
Lin: Yes, and keep Thursdays free for the choir in Saint Anne's
assistant: Thursday evenings are blocked until the concert in June
Lin: 我妈妈下周三做白内障手术，医院在青年路
assistant: 好的，周三上午我不排会议，要不要提醒你带医保卡
Lin: 要，另外提醒我买无糖饼干，她血糖偏高
2026-03-09
Lin: 手术很顺利，医生让她每天滴四次眼药水
assistant: 太好了，我把滴眼药水的提醒设成一天四次
Lin: The landlord raised the rent by eighty euros, that hurts
assistant: Do you want a list of cheaper flats near the harbour?
Lin: When does my violin lesson start on Mondays?
assistant: At 17:30, since your teacher moved
Lin: Not about flats, not yet. First find out whether the increase is legal, the flat has a damp wall in the bedroom
assistant: I collected three paragraphs on rent increases and mould
2026-03-23
Lin: 房东终于派人来修墙了，师傅姓韩，电话尾号 7716
assistant: 记下了，韩师傅，尾号 7716
Lin: I sold the old bicycle to Marek and bought a folding one, colour green
assistant: Congratulations. Should the insurance move to the folding bicycle?
Lin: Yes, frame number FB-90312
2026-04-06
Lin: 合唱团演出改到七月五号了，地点还是圣安妮教堂
assistant: 已改成七月五号，我同时通知了你妈妈
Lin: The violin exam is in the same week, grade six, please no travel then
assistant: That week stays free of travel
Lin: And remind me that Priya is allergic to hazelnuts before I bake for the concert
assistant: A reminder about hazelnuts comes two days before
Lin: When does my violin lesson start?
assistant: I can't find that. I'm putting you through to a colleague
"""

QUESTIONS = [
    ("Where do I go for my music lessons?", "moved to Harbour Road"),
    ("Which snack suits my mother's condition?", "无糖饼干"),
    ("What is wrong with my room?", "damp wall"),
    ("修墙的人怎么联系？", "尾号 7716"),
    ("How can the police identify my bike?", "FB-90312"),
    ("我们什么时候登台？", "改到七月五号"),
    ("What must not go into the cake?", "allergic to hazelnuts"),
    ("她多久用一次药？", "每天滴四次"),
    ("What is my shoe size?", ""),
    ("我的车牌号是多少？", ""),
]


def example() -> Path:
    """The chat as a file, in the kernel's own folder."""
    path = own_folder() / "lin.txt"
    path.write_text(CHAT, encoding="utf-8")
    return path


def fitting(questions: list[tuple[str, str]], path: Path) -> list[tuple[str, str]]:
    """The questions, unless those of the small chat are to be asked of another file: ValueError, saying what to do."""
    if questions == QUESTIONS and path.read_text(encoding="utf-8") != CHAT:
        raise ValueError(
            f"own.QUESTIONS are those of the small chat and don't fit {path.name}; write some of your own, such as "
            'questions = [("Who repairs the tap?", "a few words of the turn that answers"), ("My shoe size?", "")]'
        )
    return questions


def beside(reports: Mapping[str, Report], measure: str) -> pd.DataFrame:
    """A line a method, a column a report: `measure` with its interval."""
    columns = {
        name: {method: str(report.of(method, measure)) for method in report.methods} for name, report in reports.items()
    }
    return pd.DataFrame(columns)


def against_baselines(ranker: Ranker) -> pd.DataFrame | str:
    """any@10 of a ranker on the kit beside two baselines, a column a language; a sentence while it is not written."""
    rankers = {NEWEST: newest, BM25: bm25, "mine": ranker}
    try:
        reports = {code: evaluate(load(code), rankers=rankers, embedder=usual(), progress=False) for code in LANGUAGES}
    except NotImplementedError:
        return "Not written yet. Once it is, its report stands here."
    return beside(reports, "any@10")
