"""The Lua scripts of the Redis store: each is one atomic step.

A key is one hash: ``k`` kind, ``v`` version, ``g`` generation, ``d`` data, ``n`` how many entries,
and the entries themselves under ``0``, ``1``, … One hash and not a hash and a list, so that
nothing can part them: one lifetime, one eviction (FB-47).
"""

from __future__ import annotations

DONE, ABSENT, CONFLICT, WRONG_KIND = 1, 0, -1, -2
"""What `write` answers first; the second value is the version."""

# KEYS: hash, index. ARGV: operation, expected version or '', kind, ttl in ms or '', data, name,
# prefix of hashes, then entries. On a creation two random names of the index are looked at: those
# of hashes that expired go, so that they are never more than the living.
WRITE = """
local found = redis.call('HMGET', KEYS[1], 'k', 'v', 'g', 'n')
local version = tonumber(found[2]) or 0
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= version then return {-1, version} end
if ARGV[1] == 'delete' then
  if version == 0 then return {0, 0} end
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], ARGV[6])
  return {1, version}
end
if version > 0 and (found[1] == '2') ~= (ARGV[3] == '2') then return {-2, version} end
local generation = tonumber(found[3]) or 1
local count = tonumber(found[4]) or 0
if ARGV[1] == 'rewrite' and version > 0 then
  redis.call('DEL', KEYS[1])
  generation = generation + 1
  count = 0
end
redis.call('HSET', KEYS[1], 'k', ARGV[3], 'v', version + 1, 'g', generation,
  'n', count + #ARGV - 7, 'd', ARGV[5])
for at = 8, #ARGV do redis.call('HSET', KEYS[1], count + at - 8, ARGV[at]) end
if ARGV[4] ~= '' then redis.call('PEXPIRE', KEYS[1], ARGV[4])
elseif version > 0 then redis.call('PERSIST', KEYS[1]) end
if version == 0 then
  redis.call('ZADD', KEYS[2], 0, ARGV[6])
  for _, name in ipairs(redis.call('ZRANDMEMBER', KEYS[2], 2)) do
    if redis.call('EXISTS', ARGV[7] .. name) == 0 then redis.call('ZREM', KEYS[2], name) end
  end
end
return {1, version + 1}
"""

# KEYS: index. ARGV: from, to, count, prefix of hashes. Answers the last name looked at, or nil at
# the end, and the living ones; names of hashes that expired are removed on the way.
SCAN = """
local names = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local rows = {}
for _, name in ipairs(names) do
  local found = redis.call('HMGET', ARGV[4] .. name, 'k', 'v')
  if found[1] then rows[#rows + 1] = {name, found[1], found[2]}
  else redis.call('ZREM', KEYS[1], name) end
end
local last = false
if #names == tonumber(ARGV[3]) then last = names[#names] end
return {last, rows}
"""

# A claim that is sent again, because the answer to the first was lost, finds its own token.
CLAIM = """
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
"""

RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""

RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""

ALL = {"write": WRITE, "scan": SCAN, "claim": CLAIM, "renew": RENEW, "release": RELEASE}
