"""The scripts about people: facts, vectors, forgetting.

ARGV of each: service, agent and user, escaped; what follows is said at each.
"""

from __future__ import annotations

FACT_ROW = """
local function fact_row(number)
  return packed(call('HMGET', P .. 'fact:' .. number, 'i', 'n', 'd', 's', 'v', 'b', 'a'))
end
"""

# Then: after, limit. Answers facts, each packed; the id of each is its place.
FACTS = """
local rows = {}
for at, number in ipairs(call('ZREVRANGEBYSCORE', P .. 'changed:' .. person(ARGV[3]), ARGV[4],
    '-inf', 'LIMIT', 0, ARGV[5])) do
  rows[at] = fact_row(number)
end
return packed(rows)
"""

# Then: name. Answers the fact, packed, and its earlier values; or nil.
FACT = """
local number = call('HGET', P .. 'facts:' .. person(ARGV[3]), ARGV[4])
if not number then return nil end
local found = call('LRANGE', P .. 'earlier:' .. number, 0, -1)
table.insert(found, 1, fact_row(number))
return packed(found)
"""

# Then: name, value, source, expected version or ''. Answers the fact, packed, or the version
# where it is another.
# A value has an id of its own, and its vector goes with it: an embedding that comes late for the
# value before finds nothing to belong to.
PUT_FACT = """
local key, name, value = person(ARGV[3]), ARGV[4], ARGV[5]
local number = call('HGET', P .. 'facts:' .. key, name)
local id, before, source, version, changed
if number then
  id, before, source, version, changed =
    unpack(call('HMGET', P .. 'fact:' .. number, 'i', 'd', 's', 'v', 'a'))
end
version = tonumber(version or 0)
if ARGV[7] ~= '' and tonumber(ARGV[7]) ~= version then return version end
if before == value then return fact_row(number) end
local last = take(2, ARGV[3])
local at = stamp()
if number then
  call('RPUSH', P .. 'earlier:' .. number,
    version .. ' ' .. changed .. ' ' .. source .. '\\n' .. before)
  drop_vector(ARGV[3], id)
else
  number = last - 1
  call('HSET', P .. 'facts:' .. key, name, number)
  call('HSET', P .. 'fact:' .. number, 'n', name, 'b', at)
  join(ARGV[3])
end
call('HSET', P .. 'fact:' .. number,
  'i', last, 'd', value, 's', ARGV[6], 'v', version + 1, 'a', at)
call('ZADD', P .. 'changed:' .. key, last, number)
wrote(key, last)
return fact_row(number)
"""

# Then: name. Answers whether there was one.
DELETE_FACT = """
local key = person(ARGV[3])
local number = call('HGET', P .. 'facts:' .. key, ARGV[4])
if not number then return 0 end
drop_vector(ARGV[3], call('ZSCORE', P .. 'changed:' .. key, number))
call('HDEL', P .. 'facts:' .. key, ARGV[4])
call('ZREM', P .. 'changed:' .. key, number)
call('UNLINK', P .. 'fact:' .. number, P .. 'earlier:' .. number)
leave(ARGV[3])
return 1
"""

# Then threes: kind, id, vector.
PUT_VECTORS = """
local key = person(ARGV[3])
local ids = {turn = P .. 'turns:' .. key, fact = P .. 'changed:' .. key}
local change
for at = 4, #ARGV, 3 do
  local kind, id = ARGV[at], ARGV[at + 1]
  if call('ZCOUNT', ids[kind], id, id) > 0 then
    if not change then
      change = take(1, ARGV[3])
      wrote(key, change)
    end
    call('HSET', P .. 'vectors:' .. key, id, kind .. ' ' .. ARGV[at + 2])
    call('ZADD', P .. 'embedded:' .. key, id, id)
  end
end
return 1
"""

# Then: after, limit. Answers ids and vectors in turns.
VECTORS_OF = """
local key = person(ARGV[3])
if call('EXISTS', P .. 'vectors:' .. key) == 0 then call('UNLINK', P .. 'embedded:' .. key) end
local rows = {}
for _, id in ipairs(call('ZRANGEBYSCORE', P .. 'embedded:' .. key, '(' .. ARGV[4], '+inf',
    'LIMIT', 0, ARGV[5])) do
  rows[#rows + 1] = id
  rows[#rows + 1] = call('HGET', P .. 'vectors:' .. key, id)
end
return packed(rows)
"""

# Then: '1' for all agents, '1' to count only. Answers threads, turns, facts, vectors.
FORGET = """
local agents = {ARGV[2]}
if ARGV[4] == '1' then agents = call('SMEMBERS', P .. 'agents:' .. ARGV[1]) end
local gone = {0, 0, 0, 0}
for _, agent in ipairs(agents) do
  ARGV[2], HOME = agent, ARGV[1] .. ':' .. agent
  local key = person(ARGV[3])
  gone[1] = gone[1] + call('ZCARD', P .. 'active:' .. key)
  gone[2] = gone[2] + call('ZCARD', P .. 'turns:' .. key)
  gone[3] = gone[3] + call('ZCARD', P .. 'changed:' .. key)
  gone[4] = gone[4] + call('ZCARD', P .. 'embedded:' .. key)
  if ARGV[5] ~= '1' then
    -- By both: either may have been dropped.
    local numbers = {}
    for _, number in ipairs(call('ZRANGE', P .. 'active:' .. key, 0, -1)) do
      numbers[number] = true
    end
    for _, member in ipairs(call('ZRANGE', P .. 'turns:' .. key, 0, -1)) do
      numbers[string.match(member, '^%d+')] = true
    end
    for number in pairs(numbers) do
      local name = call('HGET', P .. 'thread:' .. number, 't')
      if name then call('HDEL', P .. 'threads:' .. HOME, name) end
      call('ZREM', P .. 'active:' .. HOME, number)
      call('UNLINK', P .. 'thread:' .. number, P .. 'said:' .. number)
    end
    for _, number in ipairs(call('ZRANGE', P .. 'changed:' .. key, 0, -1)) do
      call('UNLINK', P .. 'fact:' .. number, P .. 'earlier:' .. number)
    end
    for _, kind in ipairs(
        {'active', 'turns', 'facts', 'changed', 'vectors', 'embedded', 'parts'}) do
      call('UNLINK', P .. kind .. ':' .. key)
    end
    leave(ARGV[3])
  end
end
return gone
"""

# Answers the counter at the person's last write, and how much they have. A removal draws no number
# (a full Redis would refuse it) but lowers the second, so the two together never come again.
VERSION = """
local key = person(ARGV[3])
return {call('GET', P .. 'change:' .. key) or '0',
  call('ZCARD', P .. 'turns:' .. key) + call('ZCARD', P .. 'changed:' .. key)
  + call('ZCARD', P .. 'embedded:' .. key)}
"""

EPOCH = "return epoch(person(ARGV[3]))"

# Then: epoch, first, last, part. Answers whether it was kept.
PUT_PART = """
local key = person(ARGV[3])
if call('EXISTS', P .. 'change:' .. key) == 0 or epoch(key) ~= ARGV[4] then return 0 end
local parts = P .. 'parts:' .. key
for _, range in ipairs(call('HKEYS', parts)) do
  local first, last = string.match(range, '^(%d+):(%d+)$')
  if tonumber(first) <= tonumber(ARGV[6]) and tonumber(last) >= tonumber(ARGV[5]) then
    call('HDEL', parts, range)
  end
end
call('HSET', parts, ARGV[5] .. ':' .. ARGV[6], ARGV[7])
return 1
"""

# Then: after, limit. Answers first, last and part in turns.
PARTS = """
local parts, ranges = P .. 'parts:' .. person(ARGV[3]), {}
for _, range in ipairs(call('HKEYS', parts)) do
  local first, last = string.match(range, '^(%d+):(%d+)$')
  if tonumber(first) > tonumber(ARGV[4]) then ranges[#ranges + 1] = {first, last, range} end
end
table.sort(ranges, function(one, other) return tonumber(one[1]) < tonumber(other[1]) end)
local rows = {}
for at = 1, math.min(#ranges, tonumber(ARGV[5])) do
  rows[#rows + 1] = ranges[at][1]
  rows[#rows + 1] = ranges[at][2]
  rows[#rows + 1] = call('HGET', parts, ranges[at][3])
end
return packed(rows)
"""

# Answers the agents of a service, or the users of an agent.
AGENTS = "return packed(call('SMEMBERS', P .. 'agents:' .. ARGV[1]))"
USERS = "return packed(call('SMEMBERS', P .. 'people:' .. HOME))"
