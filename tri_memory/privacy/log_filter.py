"""A logging filter that lets no raw id through: not in the message, not in an exception's, not in what is attached.

Set it on handlers. A filter on a logger doesn't see what the loggers below it hand up.
"""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import Callable, Iterable
from traceback import format_exception
from typing import Any
from urllib.parse import quote

from tri_memory.privacy.pseudonyms import Pseudonyms, Span

NOBODY = "log"  # whose names ids of unknown owners get
_ORDINARY = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_PLAIN = (int, float, bool, type(None))


class MaskIds(logging.Filter):
    """Puts a pseudonym in the place of every id that `extract` finds, and of every user's id that it was told of.

    An id in a log has one name there, whoever its owner is, unless the log belongs to one `user_id`. The traceback is
    turned to text here, so a handler behind this one finds `exc_text` and no `exc_info`. What can't be formatted is
    replaced by a line that says so: a log costs nobody an answer.

    >>> handler.addFilter(MaskIds(Pseudonyms.from_env()))
    """

    def __init__(
        self,
        pseudonyms: Pseudonyms,
        *,
        user_id: str = NOBODY,
        users: Iterable[str] = (),
        extract: Callable[[str], Iterable[Span]] | None = None,
    ) -> None:
        super().__init__()
        self._pseudonyms, self._user_id, self._extract = pseudonyms, user_id, extract
        self._users: dict[str, re.Pattern[str]] = {}
        self.know(*users, *([user_id] if user_id != NOBODY else []))

    def know(self, *user_ids: str) -> None:
        """Mask these users' ids as well, which no rule could tell from a word."""
        for user_id in user_ids:
            self._users[user_id] = _pattern(user_id)

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = self.mask(record.getMessage())
        except Exception as error:
            message = f"a log message could not be formatted ({type(error).__name__}) and is left out"
        record.msg, record.args = message, None
        if isinstance(record.exc_info, tuple) and record.exc_info[0] is not None:
            record.exc_text = "".join(format_exception(*record.exc_info)).rstrip("\n")
        record.exc_info = None
        record.exc_text = self.mask(record.exc_text) if record.exc_text else None
        record.stack_info = self.mask(record.stack_info) if record.stack_info else None
        for name, value in list(vars(record).items()):
            if name not in _ORDINARY:
                setattr(record, name, self._masked(value))
        return True

    def mask(self, text: str) -> str:
        """`text` without raw ids."""
        for user_id, pattern in list(self._users.items()):
            text = pattern.sub(self._pseudonyms.of_user(user_id), text)
        return self._pseudonyms.mask_ids(text, self._extract, user_id=self._user_id)

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.mask(value)
        if isinstance(value, dict):
            return {self._masked(key): self._masked(each) for key, each in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._masked(each) for each in value]
        return value if isinstance(value, _PLAIN) else self.mask(str(value))


def _pattern(user_id: str) -> re.Pattern[str]:
    """The id as it stands in a text, in a session's key, and in JSON; "ann" isn't found in "planned"."""
    forms = {unicodedata.normalize(form, user_id) for form in ("NFC", "NFD")} | {user_id}
    forms |= {quote(form, safe="") for form in forms} | {json.dumps(form)[1:-1] for form in forms}
    either = "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))
    left = "(?<![A-Za-z0-9])" if user_id[0].isascii() and user_id[0].isalnum() else ""
    right = "(?![A-Za-z0-9])" if user_id[-1].isascii() and user_id[-1].isalnum() else ""
    return re.compile(f"{left}(?:{either}){right}")
