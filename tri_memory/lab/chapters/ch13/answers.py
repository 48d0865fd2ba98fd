"""What people say when they are asked whether a sensitive memory may be used, and what of it is a yes."""

from __future__ import annotations

from typing import TypedDict

import pandas as pd

from tri_memory.privacy.consent import Consent

ANSWERS = {
    "en": ("Yes, please.", "go ahead", "yes, but not now", "yes?", "I guess", "sure, why not", "yeah, right", "hm", ""),
    "zh": ("可以，谢谢", "好的", "可以吗？", "可以，不过别说地址", "随便", "嗯", "应该可以吧", "好像不用", "行行行"),
}
MEANING = {
    "可以，谢谢": "fine, thanks",
    "好的": "all right",
    "可以吗？": "is that all right?",
    "可以，不过别说地址": "fine, but not the address",
    "随便": "as you like",
    "嗯": "mm",
    "应该可以吧": "should be fine, I suppose",
    "好像不用": "no need, it seems",
    "行行行": "all right, all right",
}
SUBJECTS = {"en": "case BX-2207", "zh": "订单ZB-2207"}
USER = "en-shop-01"


class Here(TypedDict):
    """Who speaks in which conversation."""

    user_id: str
    session_id: str


def judged(language: str) -> pd.DataFrame:
    """Each answer to the question of that language, in a session of its own, and what the Chinese ones mean."""
    rows = []
    for number, text in enumerate(ANSWERS[language]):
        consent, here = Consent(), Here(user_id=USER, session_id=f"s{number}")
        question = consent.ask(SUBJECTS[language], **here)
        allowed = question is not None and consent.answer(text, question, **here)
        rows.append((text or "(nothing)", "yes" if allowed else "no", MEANING.get(text, "")))
    return pd.DataFrame(rows, columns=["answer", "taken for", "meaning"])


def over_time() -> list[tuple[str, bool]]:
    """What happens, and whether the case may be told then."""
    consent, here = Consent(), Here(user_id=USER, session_id="s1")
    other = Here(user_id=USER, session_id="s2")
    subject = SUBJECTS["en"]
    story = [("before anybody asked", consent.allows(subject, **here))]
    question = consent.ask(subject, **here)
    assert question is not None
    consent.answer("Yes, please.", question, **here)
    story.append(("after “Yes, please.”", consent.allows(subject, **here)))
    story.append(("another case, same session", consent.allows("case BX-2270", **here)))
    story.append(("same case, another session", consent.allows(subject, **other)))
    consent.hear("Don't use that any more.", **here)
    story.append(("after “Don't use that any more.”", consent.allows(subject, **here)))
    again = consent.ask(subject, **here)
    asked = "no question comes" if again is None else again.text
    story.append((f"after trying to ask again: {asked}", consent.allows(subject, **here)))
    return story
