"""A URL in a message shows who and where, and no password."""

from __future__ import annotations

import pytest

from tri_memory.engines.address import without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"),
        ("redis://:s3cret@127.0.0.1:6379/0", "redis://:...@127.0.0.1:6379/0"),
        ("postgresql://ann:s3cret@[::1]:5432/db?password=s3cret", "postgresql://ann:...@[::1]:5432/db"),
        ("postgresql://ann@host/db", "postgresql://ann@host/db"),
        ("postgresql://ann:s3@cret@host/db", "postgresql://ann:...@host/db"),
        ("redis://:s3/cret@host:1", "an address whose password needs percent-encoding"),
        ("redis://:s3#cret@host:1", "an address whose password needs percent-encoding"),
        ("redis://[s3cret", "an address that is no URL"),
        ("host=127.0.0.1 user=ann password=s3cret", "an address that is no URL"),
    ],
)
def test_the_password_is_never_shown(url, shown):
    assert without_password(url) == shown
    assert "cret" not in without_password(url)
