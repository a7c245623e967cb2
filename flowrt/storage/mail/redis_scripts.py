"""The Lua scripts of messages in Redis: each is one atomic step.

A box is a stream with one consumer group, `GROUP`. Its entries have the fields ``p`` payload and,
where a reply is awaited, ``r`` the reply stream and ``q`` the question. What is done is deleted, so
the length of a stream is what waits and what is worked on. Parked messages of all boxes are one
stream with the fields of the entry and ``b`` box, ``s`` its stream, ``e`` error, ``n`` tries.

Entries with the field ``o`` belong to an order: a list beside the stream, named by the field, holds
the ids of those that are not done, as they came.
"""

from __future__ import annotations

GROUP = "flowrt"

REPLY_LIFETIME = 600_000
"""Milliseconds that answers wait for a process; one that died never fetches them."""

_ORDER = """
local function order(name) return KEYS[1] .. '\\0order:' .. name end
local function field(fields, name)
  for at = 1, #fields, 2 do if fields[at] == name then return fields[at + 1] end end
end
"""

_REPLY = (
    _ORDER
    + f"""
local function reply(stream, question, answer)
  redis.call('XADD', stream, '*', 'q', question, 'p', answer)
  redis.call('PEXPIRE', stream, {REPLY_LIFETIME})
end
local function done(id)
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  local name = entry and field(entry[2], 'o')
  if name then redis.call('LREM', order(name), 1, id) end
  redis.pcall('XACK', KEYS[1], '{GROUP}', id)
  return redis.call('XDEL', KEYS[1], id)
end
"""
    + """
local function park(box, id, error, tries, most)
  local entry = redis.call('XRANGE', KEYS[1], id, id)[1]
  if not entry then return end
  local fields = entry[2]
  local to = field(fields, 'r')
  if to then
    reply(to, field(fields, 'q'), cjson.encode({error = error}))
  end
  redis.call('XADD', KEYS[2], 'MAXLEN', most, '*', 'b', box, 's', KEYS[1], 'e', error,
    'n', tries, 'p', field(fields, 'p'))
end
"""
)

# KEYS: stream. ARGV: places, order or '', fields of the entry.
ADD = (
    _ORDER
    + """
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then return false end
local id = redis.call('XADD', KEYS[1], '*', unpack(ARGV, 3))
if ARGV[2] ~= '' then redis.call('RPUSH', order(ARGV[2]), id) end
return id
"""
)

# KEYS: stream. ARGV: orders. The first of each that is not done.
HEADS = (
    _ORDER
    + """
local heads = {}
for at, name in ipairs(ARGV) do
  local head = redis.call('LINDEX', order(name), 0)
  while head and #redis.call('XRANGE', KEYS[1], head, head) == 0 do
    -- Its entry is gone without its flow having ended: somebody has trimmed the stream.
    redis.call('LPOP', order(name))
    head = redis.call('LINDEX', order(name), 0)
  end
  heads[at] = head or ''
end
return heads
"""
)

# KEYS: stream.
OPEN = f"""
redis.pcall('XGROUP', 'CREATE', KEYS[1], '{GROUP}', '0', 'MKSTREAM')
"""

# KEYS: stream, parked. ARGV: reader, stale ms, count, tries, box, most parked. Also forgets readers
# that hold nothing and were not seen for an hour: each replica that ever was is one.
TAKE_OVER = (
    _REPLY
    + OPEN
    + f"""
local group, parked, taken = '{GROUP}', {{}}, {{}}
local stale = redis.call('XPENDING', KEYS[1], group, 'IDLE', ARGV[2], '-', '+', 100)
for _, row in ipairs(stale) do
  local id, tries = row[1], row[4]
  if tries >= tonumber(ARGV[4]) then
    park(ARGV[5], id, 'parked: those who worked on it ended ' .. tries .. ' times before it did',
      tries, ARGV[6])
    done(id)
    parked[#parked + 1] = id
  elseif #taken < tonumber(ARGV[3]) then
    local entry = redis.call('XCLAIM', KEYS[1], group, ARGV[1], 0, id)[1]
    if entry then taken[#taken + 1] = entry else done(id) end
  end
end
for _, row in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], group)) do
  local name, pending, idle = row[2], row[4], row[6]
  if pending == 0 and idle > 3600000 and name ~= ARGV[1] then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], group, name)
  end
end
local held = redis.call('XPENDING', KEYS[1], group)[1]
return {{taken, parked, redis.call('XLEN', KEYS[1]) - held}}
"""
)

# KEYS: stream. ARGV: reader, ids.
RENEW = f"""
local lost = {{}}
for at = 2, #ARGV do
  local held = redis.pcall('XPENDING', KEYS[1], '{GROUP}', ARGV[at], ARGV[at], 1, ARGV[1])
  if held.err or #held == 0 then lost[#lost + 1] = ARGV[at]
  else redis.call('XCLAIM', KEYS[1], '{GROUP}', ARGV[1], 0, ARGV[at], 'JUSTID') end
end
return lost
"""

# KEYS: stream[, reply stream]. ARGV: id[, question, answer]. Sent twice, it answers once.
SETTLE = (
    _REPLY
    + """
local there = done(ARGV[1])
if there == 1 and KEYS[2] then reply(KEYS[2], ARGV[2], ARGV[3]) end
return there
"""
)

# KEYS: stream, parked. ARGV: id, box, error, most parked. Returns how many are parked too many.
PARK = (
    _REPLY
    + """
local full = redis.call('XLEN', KEYS[2]) >= tonumber(ARGV[4])
park(ARGV[2], ARGV[1], ARGV[3], 1, ARGV[4])
done(ARGV[1])
return full and 1 or 0
"""
)

# KEYS: stream. ARGV: reader. As new entries and not as stale ones: a reader that waits gets them
# at once, and a service that was stopped in order is no failed try.
GIVE_BACK = (
    _REPLY
    + f"""
local held = redis.pcall('XPENDING', KEYS[1], '{GROUP}', '-', '+', 10000, ARGV[1])
if held.err then return 0 end
local given = 0
for _, row in ipairs(held) do
  local entry = redis.call('XRANGE', KEYS[1], row[1], row[1])[1]
  if entry then
    local id, name = redis.call('XADD', KEYS[1], '*', unpack(entry[2])), field(entry[2], 'o')
    local place = name and redis.call('LPOS', order(name), row[1])
    if place then redis.call('LSET', order(name), place, id) end
    given = given + 1
  end
  done(row[1])
end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], '{GROUP}', ARGV[1])
return given
"""
)

# KEYS: stream. ARGV: id.
WITHDRAW = (
    _REPLY
    + f"""
local held = redis.pcall('XPENDING', KEYS[1], '{GROUP}', ARGV[1], ARGV[1], 1)
if not held.err and #held > 0 then return 0 end
return done(ARGV[1])
"""
)

_NOW = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
"""

# KEYS: subscriptions, stream. ARGV: subscription, lifetime in ms.
SUBSCRIBE = (
    _NOW
    + f"""
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.pcall('XGROUP', 'CREATE', KEYS[2], '{GROUP}', '0', 'MKSTREAM')
"""
)

# KEYS: subscriptions, stream. ARGV: subscription.
UNSUBSCRIBE = """
redis.call('ZREM', KEYS[1], ARGV[1])
local left = redis.call('XLEN', KEYS[2])
redis.call('DEL', KEYS[2])
return left
"""

# KEYS: subscriptions. ARGV: start of the names of streams, places, payload, those meant or none.
PUBLISH = (
    _NOW
    + """
local lost, full, reached = 0, {}, 0
for _, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
  lost = lost + redis.call('XLEN', ARGV[1] .. name)
  redis.call('DEL', ARGV[1] .. name)
  redis.call('ZREM', KEYS[1], name)
end
local meant = {}
for at = 4, #ARGV do meant[ARGV[at]] = true end
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  if #ARGV == 3 or meant[name] then
    reached = reached + 1
    if redis.call('XLEN', ARGV[1] .. name) >= tonumber(ARGV[2]) then full[#full + 1] = name
    else redis.call('XADD', ARGV[1] .. name, '*', 'p', ARGV[3]) end
  end
end
return {reached, full, lost}
"""
)

# KEYS: parked. ARGV: id, '1' to send it again.
UNPARK = """
local entry = redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1]
if not entry then return 0 end
local found = {}
for at = 1, #entry[2], 2 do found[entry[2][at]] = entry[2][at + 1] end
if ARGV[2] == '1' then redis.call('XADD', found['s'], '*', 'p', found['p']) end
return redis.call('XDEL', KEYS[1], ARGV[1])
"""

ALL = {
    "mail_add": ADD,
    "mail_heads": HEADS,
    "mail_open": OPEN,
    "mail_take_over": TAKE_OVER,
    "mail_renew": RENEW,
    "mail_settle": SETTLE,
    "mail_park": PARK,
    "mail_give_back": GIVE_BACK,
    "mail_withdraw": WITHDRAW,
    "mail_subscribe": SUBSCRIBE,
    "mail_unsubscribe": UNSUBSCRIBE,
    "mail_publish": PUBLISH,
    "mail_unpark": UNPARK,
}
"""What the store registers, by name."""
