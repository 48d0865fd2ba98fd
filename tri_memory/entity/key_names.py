"""The name under which a user stands in a key of Redis, where the id itself must not: keys are seen in logs, monitors
and the server's files.

By default a hash, which hides an id that nobody can guess. Who can try all ids, such as phone numbers, finds theirs;
against that, give a keyed name, such as `privacy.pseudonyms.Pseudonyms.of_user`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from tri_memory.contracts import shown

NameOf = Callable[[str], str]


def hashed(user_id: str) -> str:
    """32 hex digits of SHA-256: the same in every process, and for no two users."""
    return hashlib.sha256(b"user\0" + user_id.encode()).hexdigest()[:32]


def in_a_key(name_of: NameOf, user_id: str) -> str:
    """The name, unable to end the braces around it. ValueError for one that is blank or no string."""
    name = name_of(user_id)
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"name_of must give a non-blank string; got {shown(name)}")
    return name.replace("%", "%25").replace("{", "%7B").replace("}", "%7D")


def require_prefix(prefix: Any) -> str:
    if not isinstance(prefix, str) or "{" in prefix or "}" in prefix:
        raise ValueError(f"prefix must be a string without braces, which name the hash slot; got {shown(prefix)}")
    return prefix
