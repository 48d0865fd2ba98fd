"""Tiny files in the formats that the loaders read, written for the tests."""

from __future__ import annotations

LOCOMO = [
    {
        "sample_id": "c1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "My boat is blue."}],
            "session_10_date_time": "12:05 am on 9 June, 2023",
            "session_2": [
                {"speaker": "Ann", "dia_id": "D2:1", "text": "Look", "blip_caption": "a red kite"},
                {"speaker": "Bo", "dia_id": "D2:2", "text": "Nice kite."},
            ],
            "session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_11_date_time": "1:00 pm on 1 July, 2023",
        },
        "session_summary": {"session_2_summary": "They flew a kite."},
        "qa": [
            {"question": "What did they fly?", "answer": "a kite", "evidence": ["D2:1; D2:2", "D"], "category": 1},
            {"question": "How many boats?", "answer": 1, "evidence": ["D10:1", "D10:19", "D:2:1"], "category": 4},
            {"question": "What car?", "adversarial_answer": "red", "evidence": ["D2:1"], "category": 5},
        ],
    }
]

LONGMEMEVAL = [
    {
        "question_id": "q7",
        "question_type": "knowledge-update",
        "question": "Where do I live?",
        "answer": 12,
        "question_date": "2023/05/30 (Tue) 23:40",
        "haystack_session_ids": ["late", "empty", "early"],
        "haystack_dates": ["2023/05/25 (Thu) 02:21", "2023/05/24 (Wed) 02:21", "2023/05/20 (Sat) 02:21"],
        "haystack_sessions": [
            [{"role": "user", "content": "hi"}, {"role": "user", "content": "at 12 now", "has_answer": True}],
            [],
            [{"role": "user", "content": "at 10", "has_answer": False}],
        ],
        "answer_session_ids": ["late"],
    }
]

MEMORYBANK = [
    {
        "user": "林",
        "days": [
            {"date": "2023-05-02", "turns": [{"role": "user", "content": "我去了花园"}]},
            {"date": "2023-05-01", "turns": [{"role": "user", "content": "我喜欢绿茶"}]},
        ],
        "questions": [{"question": "我喜欢什么？", "gold_dates": ["2023-05-01"], "answer": "绿茶", "category": "fact"}],
    }
]

PLAIN = {
    "language": "en",
    "sessions": [
        {
            "session_id": "a",
            "user_id": "u",
            "started_at": "2026-02-01T10:00:00+02:00",
            "turns": [{"role": "assistant", "content": "look", "toolName": "search"}],
        }
    ],
    "questions": [
        {
            "question_id": "q",
            "user_id": "u",
            "kind": "riddle",
            "question": "What?",
            "gold_sessions": ["a"],
            "gold_turns": [["a", 0]],
        }
    ],
}
