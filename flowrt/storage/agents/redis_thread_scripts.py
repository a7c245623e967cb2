"""The scripts about threads and their turns.

ARGV of each: service, agent and user, escaped; what follows is said at each.
"""

from __future__ import annotations

# The turns that were nobody's go to the first user who is named, and their vectors with them.
WORK = """
local function give(number, user, change)
  local from, to = person(''), person(user)
  local ids = {}
  call('SET', P .. 'change:' .. from, change)
  call('SET', P .. 'change:' .. to, change)
  call('HSET', P .. 'thread:' .. number, 'u', user)
  call('ZREM', P .. 'active:' .. from, number)
  for seq = 1, call('LLEN', P .. 'said:' .. number) do
    local member = number .. ':' .. seq
    local id = call('ZSCORE', P .. 'turns:' .. from, member)
    local vector = id and call('HGET', P .. 'vectors:' .. from, id)
    if id then
      ids[#ids + 1] = id
      call('ZREM', P .. 'turns:' .. from, member)
      call('ZADD', P .. 'turns:' .. to, id, member)
    end
    if vector then
      drop_vector('', id)
      call('HSET', P .. 'vectors:' .. to, id, vector)
      call('ZADD', P .. 'embedded:' .. to, id, id)
    end
  end
  moved(from, ids)
  moved(to, ids)
  leave('')
end

-- Note work on a thread, where `count` numbers are wanted for turns: number, user, first, time.
local function work(name, user, count)
  local number, owner = thread(name, '')
  local to = (owner or '') ~= '' and owner or user
  local last = take(count + 2, to)
  local at = stamp()
  if not number then
    while call('EXISTS', P .. 'thread:' .. last - count - 1, P .. 'said:' .. last - count - 1) > 0
    do last = take(count + 2, to) end
    number, owner = last - count - 1, user
    call('HSET', P .. 'thread:' .. number, 't', name, 'u', user, 'n', '', 'v', 0, 'b', at)
    call('HSET', P .. 'threads:' .. HOME, name, number)
    wrote(person(user), last)
  elseif owner == '' and user ~= '' then
    give(number, user, last)
    owner = user
  end
  call('HINCRBY', P .. 'thread:' .. number, 'v', 1)
  call('HSET', P .. 'thread:' .. number, 'a', at)
  call('ZADD', P .. 'active:' .. HOME, last, number)
  call('ZADD', P .. 'active:' .. person(owner), last, number)
  join(owner)
  return number, owner, last - count, at
end
"""

# Then: thread, turns. Answers user, id and seq of the first turn, time.
APPEND = """
local count = #ARGV - 4
local number, owner, id, at = work(ARGV[4], ARGV[3], count)
local seq = call('LLEN', P .. 'said:' .. number) + 1
wrote(person(owner), id + count)
for at_turn = 0, count - 1 do
  local head = (id + at_turn) .. ' ' .. at .. ' '
  call('RPUSH', P .. 'said:' .. number, head .. ARGV[5 + at_turn])
  call('ZADD', P .. 'turns:' .. person(owner), id + at_turn, number .. ':' .. (seq + at_turn))
end
return {owner, id, seq, at}
"""

# Then: thread. Answers the thread.
TOUCH = """
return thread_row((work(ARGV[4], ARGV[3], 0)))
"""

# Then: thread, after, limit, '1' for the newest first. Answers user, seq of the first turn, '1'
# where there are more, turns in order.
TURNS = """
local number, owner = thread(ARGV[4], ARGV[3])
if not number then return '' end
local after, limit = tonumber(ARGV[5]), tonumber(ARGV[6])
local key = P .. 'said:' .. number
local count = call('LLEN', key)
local first, last, more
if ARGV[7] == '1' then
  last = after > 0 and math.min(count, after - 1) or count
  first = math.max(1, last - limit + 1)
  more = first > 1
else
  first = after + 1
  last = math.min(count, after + limit)
  more = last < count
end
if last < first then return '' end
local found = {owner, first, more and 1 or 0}
for _, said in ipairs(call('LRANGE', key, first - 1, last - 1)) do found[#found + 1] = said end
return packed(found)
"""

# Then: after, limit. Answers runs of turns, each packed: thread, seq of the first, turns. What
# stands together in its thread is read in one go. Where turns are gone, it is read again without
# them: a page that is not full would be the last.
TURNS_OF = """
local key = P .. 'turns:' .. person(ARGV[3])
local function read()
  local members = call('ZRANGEBYSCORE', key, '(' .. ARGV[4], '+inf', 'LIMIT', 0, ARGV[5])
  local runs, at, gone = {}, 1, false
  while at <= #members do
    local number, first = string.match(members[at], '^(%d+):(%d+)$')
    local count = 1
    while members[at + count] == number .. ':' .. (first + count) do count = count + 1 end
    local name = call('HGET', P .. 'thread:' .. number, 't')
    if not name then call('UNLINK', P .. 'said:' .. number) end
    local run = {name, first}
    for _, said in ipairs(call('LRANGE', P .. 'said:' .. number, first - 1, first + count - 2)) do
      run[#run + 1] = said
    end
    for missing = #run - 2, count - 1 do
      gone = true
      call('ZREM', key, members[at + missing])
    end
    if #run > 2 then runs[#runs + 1] = packed(run) end
    at = at + count
  end
  return runs, gone
end
local runs, gone = read()
while gone do runs, gone = read() end
return packed(runs)
"""

# Then: thread. Answers the thread, or nil.
THREAD = """
local number = thread(ARGV[4], ARGV[3])
if not number then return nil end
return thread_row(number)
"""

# Then: '1' where only this user's are wanted, after, limit. Answers threads, each packed
# and with its place at the end.
THREADS = """
local key = P .. 'active:' .. HOME
if ARGV[4] == '1' then key = P .. 'active:' .. person(ARGV[3]) end
local function read()
  local found = call('ZREVRANGEBYSCORE', key, ARGV[5], '-inf', 'WITHSCORES', 'LIMIT', 0, ARGV[6])
  local rows, gone = {}, false
  for at = 1, #found, 2 do
    if call('EXISTS', P .. 'thread:' .. found[at]) == 1 then
      rows[#rows + 1] = thread_row(found[at], found[at + 1])
    else
      gone = true
      call('ZREM', key, found[at])
      call('UNLINK', P .. 'said:' .. found[at])
    end
  end
  return rows, gone
end
local rows, gone = read()
while gone do rows, gone = read() end
return packed(rows)
"""

# Then: thread, title.
SET_TITLE = """
local number = thread(ARGV[4], ARGV[3])
if not number then return 0 end
call('HSET', P .. 'thread:' .. number, 'n', ARGV[5])
return call('HINCRBY', P .. 'thread:' .. number, 'v', 1)
"""

# Then: thread. Answers how many threads, turns and vectors are gone.
DELETE_THREAD = """
local number, owner = thread(ARGV[4], ARGV[3])
if not number then return {0, 0, 0} end
local key = person(owner)
local count, vectors = call('LLEN', P .. 'said:' .. number), 0
local embedded, ids = call('EXISTS', P .. 'vectors:' .. key) > 0, {}
for seq = 1, count do
  local member = number .. ':' .. seq
  local id = call('ZSCORE', P .. 'turns:' .. key, member)
  if id then
    ids[#ids + 1] = id
    if embedded then vectors = vectors + drop_vector(owner, id) end
  end
  call('ZREM', P .. 'turns:' .. key, member)
end
moved(key, ids)
call('HDEL', P .. 'threads:' .. HOME, ARGV[4])
call('ZREM', P .. 'active:' .. HOME, number)
call('ZREM', P .. 'active:' .. key, number)
call('UNLINK', P .. 'thread:' .. number, P .. 'said:' .. number)
leave(owner)
return {1, count, vectors}
"""
