"""The steps of the cache that Redis takes at once: Lua scripts over the keys of one user, which share a hash slot.

`pointer` holds the version that the truth has, or the `?ticket` of readers who are asking for it. `writing` holds a
mark for each write that has begun and not ended, with the time at which the mark is believed no more. `index` names the
user's entries. Where another type of value stands under one of these keys, it is nobody's and goes.
"""

from __future__ import annotations

from hashlib import sha1
from typing import NamedTuple


class Script(NamedTuple):
    """A script, and the digest by which a server that has seen it knows it."""

    text: str
    sha: str


def _script(text: str) -> Script:
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


# `try` repeats a command that failed on a value of another type, with that value gone.
_COMMON = """
local function try(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) ~= 'table' or not reply.err then return reply end
  redis.call('DEL', key)
  return redis.call(command, key, ...)
end
local function now(later)
  local time = redis.call('TIME')
  return string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + later)
end
"""

# A ticket to ask the truth with, the one that another reader has or the given one; the version, where that is known by
# now; or '' while somebody writes.
OPEN = _script(
    _COMMON
    + """
local pointer, writing = unpack(KEYS)
local ticket, life = unpack(ARGV)
try('ZREMRANGEBYSCORE', writing, '-inf', now(0))
if redis.call('EXISTS', writing) == 1 then return '' end
local known = try('GET', pointer)
if known and redis.call('PTTL', pointer) > 0 and (string.find(known, '^%?') or string.find(known, '^%d+$')) then
  return known
end
redis.call('SET', pointer, ticket, 'PX', life)
return ticket
"""
)

# Put the version that the truth gave in the place of the ticket, which keeps its time to live: it counts from before
# the truth was asked. Returns the entry of that version, '' where there is none; 0 where a write came in between.
SETTLE = _script(
    _COMMON
    + """
local pointer, entry = unpack(KEYS)
local ticket, version = unpack(ARGV)
local known = try('GET', pointer)
if known ~= ticket and known ~= version then return 0 end
redis.call('SET', pointer, version, 'KEEPTTL')
return try('GET', entry) or ''
"""
)

# Keep an entry, if its version still is the one that is known.
FILL = _script(
    _COMMON
    + """
local pointer, entry, index = unpack(KEYS)
local version, value, life = unpack(ARGV)
if try('GET', pointer) ~= version then return 0 end
redis.call('SET', entry, value, 'PX', life)
try('SADD', index, entry)
redis.call('PEXPIRE', index, life)
return 1
"""
)

# A write begins: from here on nothing is served and nothing filled. Returns the names of the entries.
BEGIN = _script(
    _COMMON
    + """
local pointer, writing, index = unpack(KEYS)
local mark, life = unpack(ARGV)
redis.call('DEL', pointer)
try('ZADD', writing, now(life), mark)
redis.call('PEXPIRE', writing, life)
return try('SMEMBERS', index)
"""
)

# A write has ended: its mark goes, and the named entries. Returns the names of those that came to stand meanwhile.
END = _script(
    _COMMON
    + """
local pointer, writing, index = unpack(KEYS)
redis.call('DEL', pointer)
try('ZREM', writing, ARGV[1])
for i = 4, #KEYS do
  redis.call('DEL', KEYS[i])
  try('SREM', index, KEYS[i])
end
return try('SMEMBERS', index)
"""
)
