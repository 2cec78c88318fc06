"""The Lua scripts of recovery: which steps are lost, and what becomes of their runs.

A step is lost when its lease is over: nobody renewed it, because its process is gone, or
stands still, or cannot reach the server. A process that was killed is noticed sooner: its
connections close with it, so nobody listens to its channel `bb:here:<process>` any more. That alone proves
little (a connection may break), so its steps count as lost only when it was also late with its
renewals and two looks, a moment apart, found nobody there. `bb:here` holds each process under the
moment (ms) of its last sign of life, `bb:missing` those that were not heard once.

When nobody has looked for a while (`bb:awake`), or the server is not the process that it was (`bb:server`), it was away: nobody
could show that it lives. So nobody
counts as lost until all have had the time to (`bb:quiet`), and what was lost over it (`bb:back`) does not count against a step.

A message is lost when nobody claimed its step within a grace, unless it still waits in its
queue: queues are lists, first in, first out, so one that was sent before the oldest that waits was taken. Steps that are
run again stand before all others, because a client waits in mid answer; whichever of them is not there was taken.
"""

from __future__ import annotations

from bigbrain.engine.scripts import HEAD

_LOSE = """
local function list_lost(id, attempt, now)
  local r = redis.call('HMGET', key(id, ''), 'cursor', 'claimed', 'owner')
  local process = string.match(r[3], '^(.-):') or ''
  local lost = {path = r[1], attempt = tonumber(attempt), result = 'lost', took = now - r[2], ended = now, process = process}
  redis.call('RPUSH', key(id, ':steps'), cjson.encode(lost))
end
local function lose(id, attempt, lapses, now)
  list_lost(id, attempt, now)
  redis.call('HSET', key(id, ''), 'owner', '', 'lapses', lapses, 'attempt', attempt + 1, 'sent', now)
  redis.call('HDEL', key(id, ''), 'mailed')
end
local function give_up(id, status, line, error, now, ttl)
  local r = redis.call('HMGET', key(id, ''), 'answered', 'seq')
  redis.call('HSET', key(id, ''), 'error', error)
  if r[1] ~= '1' then
    log(id, r[2] + 1, line)
    tell(id, r[2] + 1, line)
  end
  close(id, status, now, ttl)
end
"""

RENEW = (
    HEAD
    + """
-- ARGV: lease ms, process or '', then id fence ...  Returns the ids of steps that are lost (-) or to be stopped (!).
local now, out = clock(), {}
here(ARGV[2], now)
if ARGV[2] ~= '' then redis.call('HDEL', 'bb:missing', ARGV[2]) end
for i = 3, #ARGV, 2 do
  local id = ARGV[i]
  local r = redis.call('HMGET', key(id, ''), 'fence', 'owner', 'stop')
  if r[1] ~= ARGV[i + 1] or r[2] == '' then out[#out + 1] = '-' .. id
  else
    redis.call('HSET', key(id, ''), 'lease', now + ARGV[1])
    redis.call('ZADD', 'bb:due', now + ARGV[1], id)
    if r[3] then out[#out + 1] = '!' .. id end
  end
end
return out
"""
)

RELEASE = (
    HEAD
    + _LOSE
    + """
-- ARGV: ttl ms, line and error of an interrupted run, of a cancelled one, process, then id fence ...
-- A process that ends hands back what it holds.
local now, out = clock(), {}
redis.call('ZREM', 'bb:here', ARGV[6])
for i = 7, #ARGV, 2 do
  local id = ARGV[i]
  local r = redis.call('HMGET', key(id, ''), 'fence', 'owner', 'durable', 'attempt', 'lapses', 'stop')
  if r[1] == ARGV[i + 1] and r[2] ~= '' then
    if r[6] or r[3] ~= '1' then
      list_lost(id, r[4], now)
      if r[6] then give_up(id, 'cancelled', ARGV[4], ARGV[5], now, ARGV[1])
      else give_up(id, 'failed', ARGV[2], ARGV[3], now, ARGV[1]) end
    else
      lose(id, r[4], r[5], now)
      redis.call('HSET', key(id, ''), 'ready', 1)
      redis.call('ZADD', 'bb:due', now, id)
    end
  end
end
return 1
"""
)

WAKE = (
    HEAD
    + _LOSE
    + """
-- ARGV: grace ms, ttl ms, most lapses, line and error of an interrupted run, of a poisoned one, of an expired one, of a
-- cancelled one,
-- ms after which a process is late, ms between two looks at it, queue ...
-- Returns in how many ms to look again, then id, flow, path, attempt, ... of the steps to send once more.
local now, out = clock(), {0}
local GRACE, KEPT, LATE, LOOK = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[12]), tonumber(ARGV[13])
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', 'bb:kept', '-inf', now, 'LIMIT', 0, 1000)) do
  local scope, gone = string.match(entry, '^(%S+) (.*)$')
  redis.call('ZREM', 'bb:kept', entry)
  -- one that was taken up again is there all the same
  if redis.call('EXISTS', key(gone, '')) == 0 then redis.call('ZREM', 'bb:runs:' .. scope, gone) end
end
local last, quiet = tonumber(redis.call('GET', 'bb:awake') or now), tonumber(redis.call('GET', 'bb:quiet') or 0)
redis.call('SET', 'bb:awake', now, 'PX', 600000)
local about = redis.pcall('INFO', 'server')
local server = type(about) == 'string' and string.match(about, 'run_id:(%x+)') or ''
local other = server ~= (redis.call('GET', 'bb:server') or server)
redis.call('SET', 'bb:server', server, 'PX', 86400000)
if other or now - last > LATE + 500 then
  quiet = now + LATE
  redis.call('SET', 'bb:quiet', quiet, 'PX', LATE)
  redis.call('SET', 'bb:back', now, 'PX', 600000)
end
local back = tonumber(redis.call('GET', 'bb:back') or 0)
local soon = now + 1000
local function at(moment) if moment and tonumber(moment) < soon then soon = tonumber(moment) end end

-- processes that are gone: what they held is due now
local gone, some = {}, false
for _, process in ipairs(quiet > now and {} or redis.call('ZRANGEBYSCORE', 'bb:here', '-inf', now - LATE)) do
  if redis.call('PUBSUB', 'NUMSUB', 'bb:here:' .. process)[2] > 0 then redis.call('HDEL', 'bb:missing', process)
  elseif redis.call('HSETNX', 'bb:missing', process, now) == 1 then at(now + LOOK)
  elseif now - redis.call('HGET', 'bb:missing', process) < LOOK then at(redis.call('HGET', 'bb:missing', process) + LOOK)
  else
    gone[process], some = true, true
    redis.call('HDEL', 'bb:missing', process)
    redis.call('ZREM', 'bb:here', process)
  end
end
redis.call('PEXPIRE', 'bb:missing', 60000)
at((redis.call('ZRANGEBYSCORE', 'bb:here', '(' .. now - LATE, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)[2] or now) + LATE + 1)
if some then
  for _, id in ipairs(redis.call('ZRANGE', 'bb:due', 0, -1)) do
    local owner = redis.call('HGET', key(id, ''), 'owner')
    if owner and gone[string.match(owner, '^(.-):')] then redis.call('ZADD', 'bb:due', now, id) end
  end
end

-- when the oldest message was sent that waits in a queue; what was sent before it is not in any.  In front of it stand
-- those of steps that are run again
local waiting, oldest, first, more = 0, now, {}, false
for i = 14, #ARGV do
  waiting = waiting + redis.call('LLEN', ARGV[i])
  local front = redis.call('LRANGE', ARGV[i], -100, -1)
  local deep = #front == 100
  for n = #front, 1, -1 do
    local read, message = pcall(cjson.decode, front[n])
    local headers = read and type(message) == 'table' and type(message.headers) == 'table' and message.headers or {}
    local run = type(headers.run) == 'string' and headers.run
    if run and headers.again == true then first[run] = true
    else
      local sent = run and redis.call('HMGET', key(run, ''), 'mailed', 'sent')
      -- a message that names no run tells nothing
      oldest = math.min(oldest, sent and tonumber(sent[1] or sent[2]) or 0)
      deep = false
      break
    end
  end
  -- what stands behind so many is not known
  if deep then oldest, more = 0, true end
end
local function taken(id, attempt, sent)
  if tonumber(attempt) > 1 then return not first[id] and not more end
  return tonumber(sent) + 500 < oldest
end

for _, id in ipairs(redis.call('ZRANGEBYSCORE', 'bb:due', '-inf', now, 'LIMIT', 0, 200)) do
  local r = redis.call('HMGET', key(id, ''), 'owner', 'durable', 'lapses', 'cursor', 'attempt', 'flow', 'expires', 'mailed', 'sent', 'stop', 'claimed')
  local function send(attempt)
    redis.call('HSET', key(id, ''), 'mailed', now)
    redis.call('ZADD', 'bb:due', now + GRACE, id)
    for _, value in ipairs({id, r[6], r[4], tostring(attempt)}) do out[#out + 1] = value end
  end
  local function lost_for_good(status, line, error)
    list_lost(id, r[5], now)
    give_up(id, status, line, error, now, KEPT)
  end
  if not r[1] then redis.call('ZREM', 'bb:due', id)
  elseif expired(r[7], now) then give_up(id, 'failed', ARGV[8], ARGV[9], now, KEPT)
  elseif r[1] == '' then
    local waits = redis.call('HINCRBY', key(id, ''), 'waits', 1)
    local ready = redis.call('HDEL', key(id, ''), 'ready')
    -- messages of several senders may change places by a little; that one still waits is believed for a while only
    if ready == 1 or waiting == 0 or taken(id, r[5], r[8] or r[9]) or waits % 10 == 0 then send(r[5])
    else redis.call('ZADD', 'bb:due', now + GRACE, id) end
  elseif quiet > now then redis.call('ZADD', 'bb:due', quiet, id)
  -- whoever was to stop it is gone with it
  elseif r[10] then lost_for_good('cancelled', ARGV[10], ARGV[11])
  elseif r[2] ~= '1' then lost_for_good('failed', ARGV[4], ARGV[5])
  else
    -- a step whose server was away meanwhile is no poison
    local lapses = r[3] + (tonumber(r[11]) > back and 1 or 0)
    if lapses >= tonumber(ARGV[3]) then lost_for_good('failed', ARGV[6], ARGV[7])
    else
      lose(id, r[5], lapses, now)
      send(r[5] + 1)
    end
  end
end
at(redis.call('ZRANGE', 'bb:due', 0, 0, 'WITHSCORES')[2])
out[1] = tostring(math.max(soon - now, 0))
return out
"""
)
