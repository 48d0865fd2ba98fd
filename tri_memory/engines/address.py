"""URLs as they may be shown."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit


def without_password(url: str) -> str:
    """`url` for an error message or a log: the password is three dots, the query is dropped (it may hold another)."""
    if not isinstance(url, str) or "://" not in url:
        return "an address that is no URL"
    try:
        parts = urlsplit(url)
        user, host = parts.username or "", parts.netloc.rpartition("@")[2]
    except ValueError:
        return "an address that is no URL"
    if "@" in url and "@" not in parts.netloc:  # a slash in a password that was not percent-encoded ends the host
        return "an address whose password needs percent-encoding"
    if parts.password is not None:
        host = f"{user}:...@{host}"
    elif user:
        host = f"{user}@{host}"
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
