"""A way that this machine can't go, as opposed to one that failed."""

from __future__ import annotations


class Unavailable(RuntimeError):
    """Docker isn't there, or no wheel carries the server: one line, the reason and the way out."""

    def __init__(self, reason: str, way_out: str) -> None:
        super().__init__(f"{reason}: {way_out}")
        self.reason = reason
