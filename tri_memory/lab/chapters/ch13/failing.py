"""The opening: two ways to delete a user that look done, and a hunt that says what they left."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from tri_memory.lab.chapters.ch13.house import NAMES, house, later
from tri_memory.privacy.audit import AuditLog, Tampered
from tri_memory.privacy.forget import forget_user, purge
from tri_memory.privacy.receipt import Receipt

BEFORE, ONE, THREE, NIGHT = "before", "one table", "three layers", "a night later"
FORGOTTEN, PURGED, NAME = "forget", "day 8, purge", "the name, day 8"


@dataclass(frozen=True)
class Deleted:
    """`found`: a row a place, a column a step. `still`: what the store of records answers after the first step."""

    canary: str
    found: pd.DataFrame
    still: tuple[str, ...]


async def deleted(redis_url: str, postgres_url: str, language: str) -> Deleted:
    """Delete the user's rows from the table of records, then everything that `Chat.forget` knows; then the queue's
    job runs."""
    async with house(redis_url, postgres_url, language) as its:
        hunts = {BEFORE: await its.hunt()}
        await its.delete_from_one_table()
        hunts[ONE] = await its.hunt()
        still = await its.stores.user_memory.find(its.user)  # type: ignore[union-attr]
        await its.chat.forget()
        hunts[THREE] = await its.hunt()
        await its.jobs.run()
        hunts[NIGHT] = await its.hunt()
        texts = tuple(json.dumps(dict(one.content), ensure_ascii=False) for one in still)
        return Deleted(its.canary, pd.DataFrame(hunts), texts)


@dataclass(frozen=True)
class Forgot:
    """The same with `forget_user`, a log without raw ids, and a purge after eight days; the last column of `found` is
    the user's name. `changed` is what the audit log says after a number in its file was changed."""

    found: pd.DataFrame
    receipt: Receipt
    again: Receipt
    audit: AuditLog
    log: str
    changed: str


async def forgotten(redis_url: str, postgres_url: str, language: str) -> Forgot:
    """Forget the user, search, forget once more, and purge when the seven days are over."""
    async with house(redis_url, postgres_url, language, masked=True) as its:
        hunts, audit = {BEFORE: await its.hunt()}, AuditLog()
        asked = {"stores": its.stores, "tombstones": its.tombstones, "pseudonyms": its.names, "audit": audit}
        receipt = await forget_user(its.user, canaries=[its.canary], who="help desk", **asked)  # type: ignore[arg-type]
        hunts[FORGOTTEN] = await its.hunt()
        again = await forget_user(its.user, who="help desk", **asked)  # type: ignore[arg-type]
        await purge(stores=its.stores, tombstones=its.tombstones, clock=later(8))
        hunts[PURGED], hunts[NAME] = await its.hunt(), await its.hunt(NAMES[language])
        line = its.log.getvalue().splitlines()[1]
        return Forgot(pd.DataFrame(hunts), receipt, again, audit, line, changed(audit))


def changed(audit: AuditLog) -> str:
    """What the log says of itself when a count in its first entry was changed by hand."""
    first, *others = audit.entries()
    forged = replace(first, counts=dict.fromkeys(first.counts, 0))
    with TemporaryDirectory() as folder:
        path = Path(folder, "audit.jsonl")
        path.write_text("".join(f"{entry.to_json()}\n" for entry in (forged, *others)), encoding="utf-8")
        try:
            return f"{AuditLog(path).verify()} entries hold together"
        except Tampered as error:
            return str(error).replace(str(path), "the log")
