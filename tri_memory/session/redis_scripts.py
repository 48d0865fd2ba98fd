"""The steps that Redis takes at once: Lua scripts, which no other command can come between.

The keys of a session stand in one hash slot, so a script may touch all of them in a cluster too; the index
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
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local function touch(index, session, ttl)
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

# Push a turn; returns nothing, or the claim to a fold: {weight, failures so far, head, all turns}, and then holds the
# lock. `token` names this append: a client that lost the answer sends it again, and for a minute, which is longer than
# any client tries, it is not pushed twice. `head` is a number that changes with each fold and each new beginning. A
# weight that another policy left is not ours: then a fold is claimed to weigh the list anew, or the next append does.
# What could fail behind the push can't stop the script: the turn stays, the next append heals.
APPEND = _script(
    _TOUCH
    + """
local turns, meta, lock, seen, index = unpack(KEYS)
local turn, weight, unit, high, hard, ttl, updated_at, token, patience, session = unpack(ARGV)
local weighed_in, before, skip, head = unpack(redis.call('HMGET', meta, 'unit', 'weight', 'skip', 'head'))

local function claim(total)
  local failures, head = unpack(redis.call('HMGET', meta, 'failures', 'head'))
  return {total, tonumber(failures or 0), head, redis.call('LRANGE', turns, 0, -1)}
end
if redis.call('ZADD', seen, 'NX', string.format('%.0f', now), token) == 0 then
  return redis.call('GET', lock) == token and claim(tonumber(before)) or false
end

local length = redis.call('RPUSH', turns, turn)
if length == 1 then
  redis.call('DEL', meta)
  weighed_in, before, skip, head = unit, 0, false, false
end
local known = weighed_in == unit
local total = (known and tonumber(before) or 0) + tonumber(weight)
local claimed = (total > tonumber(high) or not known) and redis.call('EXISTS', lock) == 0
if claimed and known and (tonumber(skip) or 0) > 0 and total <= tonumber(hard) then
  claimed = false
  redis.call('HINCRBY', meta, 'skip', -1)
end
redis.call('HSET', meta, 'unit', (known or claimed) and unit or '?', 'weight', string.format('%d', total),
  'updated_at', updated_at, 'head', head or string.format('%.0f', now))
redis.call('ZREMRANGEBYSCORE', seen, '-inf', string.format('%.0f', now - 60000000))
redis.pcall('PEXPIRE', turns, ttl)
redis.pcall('PEXPIRE', meta, ttl)
redis.pcall('PEXPIRE', seen, ttl)
if index then pcall(touch, index, session, ttl) end
if not claimed then return false end
redis.call('SET', lock, token, 'PX', patience)
return claim(total)
"""
)

# End a claim: release the lock if it is still ours; then, if the head is the one that was planned on and the planned
# turns still stand there, put the replacement in their place. Turns pushed meanwhile stand behind them and are not
# touched. The list never becomes empty on the way, so it keeps its time to live. Returns what was done: 'replaced',
# 'kept' or 'lost'; sent again, it does nothing and returns the same.
COMMIT = _script("""
local turns, meta, lock = unpack(KEYS)
local token, unit, drift, shed, hard, failures, skip, head, start, planned, given = unpack(ARGV, 1, 11)
start, planned, given = tonumber(start), tonumber(planned), tonumber(given)
if redis.call('GET', lock) == token then redis.call('DEL', lock) end
local head_now, done, weighed_in, weight = unpack(redis.call('HMGET', meta, 'head', 'done', 'unit', 'weight'))
if done == token then return 'replaced' end
if head_now ~= head or redis.call('EXISTS', turns) == 0 then return 'lost' end

local there = planned > 0 and redis.call('LRANGE', turns, start, start + planned - 1) or {}
for i = 1, planned do
  if there[i] ~= ARGV[11 + given + i] then return 'lost' end
end
local ours = weighed_in == unit
if failures ~= '0' and tonumber(weight) + drift <= tonumber(hard) then
  redis.call('HSET', meta, 'failures', failures, 'skip', skip)
  if ours then redis.call('HINCRBY', meta, 'weight', drift) end
  return 'kept'
end
local gone = planned - given
for i = start - 1, 0, -1 do
  redis.call('LSET', turns, i + gone, redis.call('LINDEX', turns, i))
end
for i = 1, given do
  redis.call('LSET', turns, start + gone + i - 1, ARGV[11 + i])
end
redis.call('LTRIM', turns, gone, -1)
redis.call('HSET', meta, 'head', string.format('%.0f', head + 1), 'done', token)
if ours then redis.call('HINCRBY', meta, 'weight', drift + shed) end
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
