"""What a user gets in return for being forgotten: where how much was, what a search found afterwards, what went wrong.

It holds no erased content. The user stands in it under a pseudonym, and what was searched for as a number.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from html import escape

from tri_memory.contracts import as_utc


@dataclass(frozen=True, slots=True)
class Line:
    """One store. `erased` entries were let go of; `left` is how many a search still found, None where the store can't
    be searched; `canaries_left` in how many of them a given text was found. `error` names what failed, and `what_to_do`
    then says what to do."""

    store: str
    erased: int
    left: int | None
    canaries_left: int | None
    hidden_until_purge: bool = False
    error: str | None = None
    what_to_do: str | None = None

    @property
    def ok(self) -> bool:
        return self.error is None and not self.left and not self.canaries_left


@dataclass(frozen=True, slots=True)
class Receipt:
    """Times are aware, in UTC. From `purge_after` on, `purge` deletes for good what is only hidden until then.
    `writes_overtaken` were under way, waited for, and erased; `writes_left` had not ended when the patience was over,
    and are undone when they do."""

    user: str
    forgotten_at: datetime
    purge_after: datetime
    canaries: int
    writes_overtaken: int
    writes_left: int
    lines: tuple[Line, ...]

    @property
    def ok(self) -> bool:
        """Nothing failed and nothing was found any more."""
        return all(line.ok for line in self.lines) and not self.writes_left

    @property
    def erased(self) -> int:
        return sum(line.erased for line in self.lines)

    def to_json(self) -> str:
        """One JSON object, times in ISO 8601."""
        body = asdict(self)
        body["forgotten_at"], body["purge_after"] = self.forgotten_at.isoformat(), self.purge_after.isoformat()
        return json.dumps({"ok": self.ok, "erased": self.erased, **body}, ensure_ascii=False, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Receipt:
        """The receipt that `to_json` wrote; ValueError, KeyError or TypeError for anything else."""
        body = json.loads(text)
        for derived in ("ok", "erased"):
            del body[derived]
        for name in ("forgotten_at", "purge_after"):
            body[name] = as_utc(name, datetime.fromisoformat(body[name]))
        return cls(**{**body, "lines": tuple(Line(**line) for line in body["lines"])})

    def to_text(self) -> str:
        """For a terminal: a line a store."""
        lines = [f"{self._verdict()} {self.user}, {self.forgotten_at:%Y-%m-%d %H:%M:%S} UTC"]
        lines += [f"  {line.store:15} {_said(line)}" for line in self.lines]
        return "\n".join([*lines, *self._notes()])

    def to_html(self) -> str:
        """A page of its own, which loads nothing and can be printed."""
        rows = "\n".join(
            f'<tr class="{"ok" if line.ok else "bad"}"><th scope="row">{escape(line.store)}</th>'
            f"<td>{line.erased:,}</td><td>{_found(line)}</td><td>{escape(_remark(line))}</td></tr>"
            for line in self.lines
        )
        notes = "\n".join(f"<p>{escape(note)}</p>" for note in self._notes())
        return _PAGE.format(
            verdict=escape(self._verdict()),
            user=escape(self.user),
            at=f"{self.forgotten_at:%Y-%m-%d %H:%M:%S} UTC",
            rows=rows,
            notes=notes,
        )

    def _repr_html_(self) -> str:
        return self.to_html()

    def _verdict(self) -> str:
        return "Forgotten:" if self.ok else "Not everything was forgotten:"

    def _notes(self) -> list[str]:
        notes = []
        if any(line.hidden_until_purge and line.erased for line in self.lines):
            notes.append(
                f"Hidden entries are deleted for good from {self.purge_after:%Y-%m-%d %H:%M} UTC on, by purge."
            )
        if self.canaries:
            texts = _were(self.canaries, "given text")
            notes.append(f"{texts} looked for in every store that can be searched.")
        if self.writes_overtaken:
            notes.append(f"{_were(self.writes_overtaken, 'write')} under way, waited for and erased.")
        if self.writes_left:
            notes.append(
                f"{_were(self.writes_left, 'write')} not over yet, and will be undone then. Forget again to be sure."
            )
        return notes


def _were(count: int, what: str) -> str:
    return f"{count} {what} was" if count == 1 else f"{count:,} {what}s were"


def _said(line: Line) -> str:
    if line.error:
        return f"FAILED: {_remark(line)}"
    return f"{line.erased:6,} erased, {_found(line)} found afterwards. {_remark(line)}".rstrip(". ")


def _found(line: Line) -> str:
    return "?" if line.left is None else f"{max(line.left, line.canaries_left or 0):,}"


def _remark(line: Line) -> str:
    if line.error:
        return f"{line.error}: {line.what_to_do}"
    if not line.ok:
        return f"forget again: something was written meanwhile ({line.canaries_left or 0} with a text looked for)"
    if line.hidden_until_purge and line.erased:
        return "hidden, deleted by purge"
    return "can't be searched" if line.left is None else ""


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Receipt</title><style>
.receipt {{ font-family: system-ui, sans-serif; max-width: 48rem; }}
.receipt table {{ border-collapse: collapse; width: 100%; }}
.receipt th, .receipt td {{ border-bottom: 1px solid #bbb; padding: .3rem .6rem; text-align: left; }}
.receipt .bad {{ background: #fbe3e0; color: #5a120a; }}
</style></head><body><article class="receipt">
<h1>Receipt</h1>
<p>{verdict} <code>{user}</code>, {at}</p>
<table><thead><tr><th>Store</th><th>Erased</th><th>Found afterwards</th><th>Remark</th></tr></thead>
<tbody>
{rows}
</tbody></table>
{notes}
</article></body></html>
"""
