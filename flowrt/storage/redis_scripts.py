"""The Lua scripts of the Redis store: each is one atomic step."""

DONE, ABSENT, CONFLICT, WRONG_KIND = 1, 0, -1, -2
"""What `write` answers first; the second value is the version."""

# KEYS: hash, list, index. ARGV: operation, expected version or '', kind, ttl in ms or '', data,
# name, prefix of hashes, then entries.
WRITE = """
local found = redis.call('HMGET', KEYS[1], 'kind', 'version', 'generation')
local version = tonumber(found[2]) or 0
if ARGV[2] ~= '' and tonumber(ARGV[2]) ~= version then return {-1, version} end
if ARGV[1] == 'delete' then
  if version == 0 then return {0, 0} end
  redis.call('DEL', KEYS[1], KEYS[2])
  redis.call('ZREM', KEYS[3], ARGV[6])
  return {1, version}
end
if version > 0 and (found[1] == '2') ~= (ARGV[3] == '2') then return {-2, version} end
local generation = tonumber(found[3]) or 1
if ARGV[1] == 'rewrite' then
  if version > 0 then generation = generation + 1 end
  redis.call('DEL', KEYS[2])
end
redis.call('HSET', KEYS[1], 'kind', ARGV[3], 'version', version + 1,
  'generation', generation, 'data', ARGV[5])
for at = 8, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[at]) end
if ARGV[4] == '' then
  redis.call('PERSIST', KEYS[1])
  redis.call('PERSIST', KEYS[2])
else
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
  redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
if version == 0 then
  redis.call('ZADD', KEYS[3], 0, ARGV[6])
  if ARGV[4] ~= '' then
    for _, name in ipairs(redis.call('ZRANDMEMBER', KEYS[3], 2)) do
      if redis.call('EXISTS', ARGV[7] .. name) == 0 then redis.call('ZREM', KEYS[3], name) end
    end
  end
end
return {1, version + 1}
"""

READ = """
local found = redis.call('HMGET', KEYS[1], 'kind', 'version', 'generation', 'data')
if found[1] == '2' then found[5] = redis.call('LRANGE', KEYS[2], 0, -1) end
return found
"""

# KEYS: index. ARGV: from, to, count, prefix of hashes. Answers the last name looked at, or nil at
# the end, and the living ones; names that expired are removed on the way.
SCAN = """
local names = redis.call('ZRANGEBYLEX', KEYS[1], ARGV[1], ARGV[2], 'LIMIT', 0, ARGV[3])
local rows = {}
for _, name in ipairs(names) do
  local found = redis.call('HMGET', ARGV[4] .. name, 'kind', 'version')
  if found[1] then rows[#rows + 1] = {name, found[1], found[2]}
  else redis.call('ZREM', KEYS[1], name) end
end
local last = false
if #names == tonumber(ARGV[3]) then last = names[#names] end
return {last, rows}
"""

RENEW = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
"""

RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
"""

ALL = {"write": WRITE, "read": READ, "scan": SCAN, "renew": RENEW, "release": RELEASE}
