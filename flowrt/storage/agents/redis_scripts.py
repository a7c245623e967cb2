"""The Lua scripts of the record of agents in Redis: each is one atomic step.

All keys start with ``flowrt:{agents}:``. A *home* is ``SERVICE:AGENT`` and a *person* is
``SERVICE:AGENT:USER``, each part with ``%`` and ``:`` escaped, so that no two of them meet.
Threads, turns, facts and changes take their numbers from one counter: it is what orders them, not
the server's clock, and no two things have one number. The text is in two kinds of keys only:

=====================  ====================================================================
``last``               the counter
``agents:SERVICE``     set: the agents that have anything
``people:HOME``        set: the users that have a thread or a fact; "" is nobody
``threads:HOME``       hash: thread to its number
``active:HOME``        sorted set: numbers of threads by their last activity
``active:PERSON``      the same, of one person's
``thread:NUMBER``      hash: t thread, u user, n title, v version, b begun, a active
``said:NUMBER``        list: the turns of a thread; the place in it is the `seq`
``turns:PERSON``       sorted set: ``THREAD:SEQ`` by the id of the turn
``facts:PERSON``       hash: name of a fact to its number
``changed:PERSON``     sorted set: numbers of facts by the id of their newest value
``fact:NUMBER``        hash: n name, d value, s source, v version, b begun, a changed, i id
``earlier:NUMBER``     list: the values a fact had, oldest first
``vectors:PERSON``     hash: id of a turn or fact to its vector
``embedded:PERSON``    sorted set: those ids in order
``change:PERSON``      the counter at the last write
``steady:PERSON``      the epoch; not there from a removal to the next write
``parts:PERSON``       hash: ``FIRST:LAST`` to that part of a search's index
=====================  ====================================================================

A list and not a hash for the turns: it numbers them without gaps by itself, and a turn in it costs
its text and some ten bytes. A script that adds draws its number before any other write: in a full
Redis that is refused, and nothing is half done. Those that remove use commands that a full Redis
takes. What is read comes as one string, each value behind its length: our client takes many times
as long for a thousand small strings.

A Redis of the volatile tier may drop any of these keys by itself. What belongs to one that is gone
is then taken as gone too, and is removed where a listing comes upon it. Even the counter may be
dropped: no thread gets a number under which there is anything, or it would show what another user
said.
"""

from __future__ import annotations

from flowrt.storage.agents import redis_person_scripts as people
from flowrt.storage.agents import redis_thread_scripts as threads

PREFIX = b"flowrt:{agents}:"
COUNTER = PREFIX + b"last"

_CLOCK = """
local function stamp()
  local time = redis.call('TIME')
  return time[1] .. '.' .. string.format('%06d', time[2])
end
"""

# The time comes last of the arguments, behind those that are any number.
_GIVEN = """
local given = table.remove(ARGV)
local function stamp() return given end
"""

_PRELUDE = """
local P = 'flowrt:{agents}:'
local HOME = ARGV[1] .. ':' .. ARGV[2]
local call = redis.call

local function person(user) return HOME .. ':' .. user end

-- The last of `count` new numbers, above those of this agent's threads and of the user's turns,
-- also where the counter was dropped.
local function take(count, user)
  local last = call('INCRBY', P .. 'last', count)
  for _, key in ipairs({'active:' .. HOME, 'turns:' .. person(user)}) do
    local top = tonumber(call('ZREVRANGE', P .. key, 0, 0, 'WITHSCORES')[2] or 0)
    if top > last - count then last = call('INCRBY', P .. 'last', top - last + count) end
  end
  return last
end

-- The number and the user of a thread; nil where there is none, or another user's is asked for.
local function thread(name, user)
  local number = call('HGET', P .. 'threads:' .. HOME, name)
  local owner = number and call('HGET', P .. 'thread:' .. number, 'u')
  if not owner or user ~= '' and owner ~= user then return nil end
  return number, owner
end

local function packed(values)
  local parts = {}
  for _, value in ipairs(values) do
    value = tostring(value)
    parts[#parts + 1] = #value .. ':'
    parts[#parts + 1] = value
  end
  return table.concat(parts)
end

local function thread_row(number, place)
  local row = call('HMGET', P .. 'thread:' .. number, 't', 'u', 'n', 'v', 'b', 'a')
  row[7] = call('LLEN', P .. 'said:' .. number)
  row[8] = place
  return packed(row)
end

local function join(user)
  call('SADD', P .. 'people:' .. HOME, user)
  call('SADD', P .. 'agents:' .. ARGV[1], ARGV[2])
end

-- Drop the names of who has nothing any more.
local function leave(user)
  local key = person(user)
  if call('EXISTS', P .. 'active:' .. key, P .. 'facts:' .. key) > 0 then return end
  call('DEL', P .. 'change:' .. key, P .. 'steady:' .. key, P .. 'parts:' .. key)
  call('SREM', P .. 'people:' .. HOME, user)
  if call('EXISTS', P .. 'people:' .. HOME) == 0 then
    call('SREM', P .. 'agents:' .. ARGV[1], ARGV[2])
  end
end

-- A removal draws no number and sets nothing, which a full Redis would refuse: it only takes the
-- epoch away. What was last written and how many turns there are is one until the next write.
local function epoch(key)
  return call('GET', P .. 'steady:' .. key) or
    (call('GET', P .. 'change:' .. key) or '0') .. ':' .. call('ZCARD', P .. 'turns:' .. key)
end

-- Note that something of a person was written, before it is, under a number of its own.
local function wrote(key, number)
  if call('EXISTS', P .. 'steady:' .. key) == 0 then
    local now = call('EXISTS', P .. 'change:' .. key) == 1 and epoch(key) or number .. ':0'
    call('SET', P .. 'steady:' .. key, now)
  end
  call('SET', P .. 'change:' .. key, number)
end

-- Turns of a person go or come, with these ids, which rise.
local function moved(key, ids)
  call('DEL', P .. 'steady:' .. key)
  for _, range in ipairs(call('HKEYS', P .. 'parts:' .. key)) do
    local first, last = string.match(range, '^(%d+):(%d+)$')
    first, last = tonumber(first), tonumber(last)
    local low, high = 1, #ids + 1
    while low < high do
      local middle = math.floor((low + high) / 2)
      if tonumber(ids[middle]) < first then low = middle + 1 else high = middle end
    end
    if low <= #ids and tonumber(ids[low]) <= last then call('HDEL', P .. 'parts:' .. key, range) end
  end
end

local function drop_vector(user, id)
  call('ZREM', P .. 'embedded:' .. person(user), id)
  return call('HDEL', P .. 'vectors:' .. person(user), id)
end
"""

ALL = {
    f"agents.{name}": _CLOCK + _PRELUDE + text
    for name, text in {
        "append": threads.WORK + threads.APPEND,
        "touch": threads.WORK + threads.TOUCH,
        "turns": threads.TURNS,
        "turns_of": threads.TURNS_OF,
        "thread": threads.THREAD,
        "threads": threads.THREADS,
        "set_title": threads.SET_TITLE,
        "delete_thread": threads.DELETE_THREAD,
        "facts": people.FACT_ROW + people.FACTS,
        "fact": people.FACT_ROW + people.FACT,
        "put_fact": people.FACT_ROW + people.PUT_FACT,
        "delete_fact": people.DELETE_FACT,
        "put_vectors": people.PUT_VECTORS,
        "vectors_of": people.VECTORS_OF,
        "forget": people.FORGET,
        "version": people.VERSION,
        "epoch": people.EPOCH,
        "put_part": people.PUT_PART,
        "parts": people.PARTS,
        "agents": people.AGENTS,
        "users": people.USERS,
    }.items()
}
"""What the store registers, by name."""

DATED = ("append", "touch", "put_fact")
"""Those that note the time; each is there once more as ``dated.NAME``, which is given it."""

ALL |= {
    f"agents.dated.{name}": _GIVEN + ALL[f"agents.{name}"].removeprefix(_CLOCK) for name in DATED
}
