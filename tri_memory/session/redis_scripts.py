"""The steps that Redis takes at once: Lua scripts, which no other command can come between.

The first three keys of a session stand in one hash slot, so a script may touch all of them in a cluster too; the index
of all sessions stands in a slot of its own and has scripts of its own.
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


# Put a session on top of the index, whatever the clocks say: its score is the server's time in microseconds, or one
# more than the highest. A new session pushes out those that nobody wrote to for longer than the longest life.
_TOUCH = """
local function touch(index, session, ttl)
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local is_new = redis.call('ZADD', index, string.format('%.0f', now), session) == 1
  if redis.call('ZREVRANK', index, session) ~= 0 then
    local top = redis.call('ZRANGE', index, 0, 0, 'REV', 'WITHSCORES')[2]
    redis.call('ZADD', index, string.format('%.0f', top + 1), session)
  end
  if not is_new and redis.call('PEXPIRE', index, ttl, 'GT') == 1 then return end
  local life = math.max(tonumber(ttl), redis.call('PTTL', index))
  redis.call('ZREMRANGEBYSCORE', index, '-inf', string.format('%.0f', now - life * 1000 - 60000000))
  redis.call('PEXPIRE', index, string.format('%.0f', life))
end
"""

# In a cluster the index stands on another node, and is touched by a call of its own.
TOUCH = _script(_TOUCH + "touch(KEYS[1], ARGV[1], ARGV[2]) return false")

# Push a turn; returns nothing, or the claim to a fold: {weight, failures so far, all turns}, and then holds the lock.
# `token` names this append. A client that lost the answer sends it again, and it is not pushed twice.
# What could fail behind the push is called so that it can't stop the script: the turn stays, the next append heals.
APPEND = _script(
    _TOUCH
    + """
local turns, meta, lock, index = unpack(KEYS)
local turn, weight, unit, high, hard, ttl, now, token, patience, session = unpack(ARGV)
local seen, before, skip = unpack(redis.call('HMGET', meta, 'seen', unit, 'skip'))
local function claim(total)
  return {total, tonumber(redis.call('HGET', meta, 'failures') or 0), redis.call('LRANGE', turns, 0, -1)}
end
if seen and string.find(seen, token, 1, true) then
  return redis.call('GET', lock) == token and claim(tonumber(before)) or false
end

local length = redis.call('RPUSH', turns, turn)
if length == 1 then
  redis.call('DEL', meta)
  before, skip = 0, false
end
local total = (tonumber(before) or 0) + tonumber(weight)
local last_32 = string.sub((seen or '') .. token, -32 * #token)
redis.call('HSET', meta, unit, string.format('%d', total), 'seen', last_32, 'updated_at', now)
redis.pcall('PEXPIRE', turns, ttl)
redis.pcall('PEXPIRE', meta, ttl)
if index then pcall(touch, index, session, ttl) end

local weighed_by_another_policy = not before
if total <= tonumber(high) and not weighed_by_another_policy then return false end
if redis.call('EXISTS', lock) == 1 then return false end
if (tonumber(skip) or 0) > 0 and total <= tonumber(hard) then
  redis.call('HINCRBY', meta, 'skip', -1)
  return false
end
redis.call('SET', lock, token, 'PX', patience)
return {total, tonumber(redis.call('HGET', meta, 'failures') or 0), redis.call('LRANGE', turns, 0, -1)}
"""
)

# End a claim: release the lock if it is still ours; then, if the planned turns still stand where they stood, put the
# replacement in their place. Turns pushed meanwhile stand behind them and are not touched. The list never becomes
# empty on the way, so it keeps its time to live. Returns what was done: 'replaced', 'kept' or 'lost'.
COMMIT = _script("""
local turns, meta, lock = KEYS[1], KEYS[2], KEYS[3]
local token, unit, change, hard, failures, skip, start, planned, given = unpack(ARGV, 1, 9)
start, planned, given = tonumber(start), tonumber(planned), tonumber(given)
if redis.call('GET', lock) == token then redis.call('DEL', lock) end
if redis.call('EXISTS', turns) == 0 then return 'lost' end

local there = planned > 0 and redis.call('LRANGE', turns, start, start + planned - 1) or {}
for i = 1, planned do
  if there[i] ~= ARGV[9 + given + i] then return 'lost' end
end
local weight = tonumber(redis.call('HGET', meta, unit) or 0)
if failures ~= '0' and weight <= tonumber(hard) then
  redis.call('HSET', meta, 'failures', failures, 'skip', skip)
  return 'kept'
end
local gone = planned - given
if gone > 0 then
  for i = start - 1, 0, -1 do
    redis.call('LSET', turns, i + gone, redis.call('LINDEX', turns, i))
  end
  for i = 1, given do
    redis.call('LSET', turns, start + gone + i - 1, ARGV[9 + i])
  end
  redis.call('LTRIM', turns, gone, -1)
end
if redis.call('EXISTS', meta) == 1 then redis.call('HINCRBY', meta, unit, change) end
if skip == 'reset' then redis.call('HDEL', meta, 'failures', 'skip') end
return 'replaced'
""")

# Take ghosts off the index: pairs of session and score. One that was written to since has another score, and stays.
DROP = _script("""
for i = 1, #ARGV, 2 do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) == ARGV[i + 1] then redis.call('ZREM', KEYS[1], ARGV[i]) end
end
return false
""")
