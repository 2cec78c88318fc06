"""The Lua scripts that change a schedule: each is one atomic step of a schedule's life.

A schedule is a hash `bb:schedule:<id>`. The sorted set `bb:schedules` holds each one that is to fire under the instant
(ms) at which it does. `bb:schedules:of:<scope>` holds all of a scope by the moment they were made, the one of the scope
'' those of all scopes; the set `bb:schedules:by:<brain>` those that stand in a brain's own code.

Fields of the hash: `trigger`, the trigger that made it; `flow`, what it starts; `request`, the program's own bytes;
`kind` once | every | boot; `cron`, `tz`, `catch_up`, `overlap`; `due`, the instant it fires next, if it does; `timing`, by
which a changed one of a brain's code is known; `scope`, whose runs its firings are; `run`, which run made it, or `brain`,
whose code it stands in; `made`; `last`, the latest instant that it fired for; `fired` and `skipped`, how often;
`cancelled`, when it was; `about`, what was asked last before it was made.

Whoever moves a schedule from one instant to the next has claimed that instant: its firing is on record from then on, a
hash `bb:firing:<run id>` (`schedule`, `due`, `started`), and stands in the sorted set `bb:firings` under the moment when
somebody must look after it: start its run, or see whether that is over. Of each schedule, the set `:under_way` has
the runs that are not over, the list `:waiting` the firings (`due run`) that wait for these. `bb:dead:<scope>` has the runs of
firings that failed for good, by when they were found; the one of the scope '' those of all scopes.

A webhook that a run has opened is a hash `bb:hook:<id>` of the same; it is gone when nobody has called it for 30 days.

The first argument of each script is the time in ms, or nothing for the server's own: only tests bring one.
All keys stand on one server: scripts reach keys that they build from ids.
"""

from __future__ import annotations

HEAD = """
local HOLD, LOOK, WAIT = 3000, 5000, 10000  -- ms to start a run, ms between two looks at one, firings that may wait
local function schedule(id, part) return 'bb:schedule:' .. id .. (part or '') end
local function clock()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function set_due(id, due)
  redis.call('HSET', schedule(id), 'due', due)
  redis.call('ZADD', 'bb:schedules', due, id)
end
local function enlist(id, scope, now)
  redis.call('ZADD', 'bb:schedules:of:', now, id)
  if scope ~= '' then redis.call('ZADD', 'bb:schedules:of:' .. scope, now, id) end
end
local function drop(id)
  local r = redis.call('HMGET', schedule(id), 'scope', 'brain')
  redis.call('ZREM', 'bb:schedules', id)
  redis.call('ZREM', 'bb:schedules:of:', id)
  if r[1] then redis.call('ZREM', 'bb:schedules:of:' .. r[1], id) end
  if r[2] then redis.call('SREM', 'bb:schedules:by:' .. r[2], id) end
  redis.call('DEL', schedule(id), schedule(id, ':waiting'))
end
local function alive(process, now, ms)
  redis.call('ZADD', 'bb:processes', now + ms, process)
  redis.call('PEXPIRE', 'bb:processes', ms)
end
local function release(id, due, run, now, hold)
  redis.call('HSET', 'bb:firing:' .. run, 'schedule', id, 'due', due)
  redis.call('SADD', schedule(id, ':under_way'), run)
  redis.call('ZADD', 'bb:firings', now + hold, run)
end
"""

NOW = HEAD + "return clock()"

PUT_OFF = (
    HEAD
    + """
-- ARGV: time, run, fence, most of one scope, then id kind trigger flow request at-or-'' after cron tz catch_up overlap about ...
-- What is there already was put off by an earlier attempt of the same step. -1: the scope has too many.
local now, run = clock(), 'bb:run:' .. ARGV[2]
local r = redis.call('HMGET', run, 'fence', 'scope')
if r[1] ~= ARGV[3] then return 0 end
local scope = r[2] or ''
for i = 5, #ARGV, 12 do
  local id, kind = ARGV[i], ARGV[i + 1]
  if kind == 'webhook' then
    redis.call('HSET', 'bb:hook:' .. id, 'flow', ARGV[i + 3], 'request', ARGV[i + 4], 'scope', scope, 'run', ARGV[2], 'made', now)
    redis.call('PEXPIRE', 'bb:hook:' .. id, 30 * 86400000)
  elseif redis.call('EXISTS', schedule(id)) == 0 then
    if redis.call('ZCARD', 'bb:schedules:of:' .. scope) >= tonumber(ARGV[4]) then return -1 end
    redis.call('HSET', schedule(id), 'kind', kind, 'trigger', ARGV[i + 2], 'flow', ARGV[i + 3], 'request', ARGV[i + 4],
      'cron', ARGV[i + 7], 'tz', ARGV[i + 8], 'catch_up', ARGV[i + 9], 'overlap', ARGV[i + 10], 'about', ARGV[i + 11],
      'scope', scope, 'run', ARGV[2], 'made', now)
    set_due(id, ARGV[i + 5] ~= '' and ARGV[i + 5] or now + ARGV[i + 6])
    enlist(id, scope, now)
  end
end
return 1
"""
)

STAND = (
    HEAD
    + """
-- ARGV: time, brain, scope, then id timing kind trigger flow request at-or-'' after cron tz catch_up overlap about ...
-- The schedules that stand in a brain's code, all of them: what is new or has another timing begins anew, what is
-- not there any more goes.
local now, mine, here = clock(), 'bb:schedules:by:' .. ARGV[2], {}
for i = 4, #ARGV, 13 do
  local id, timing, kind = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  here[id] = true
  local old = redis.call('HGET', schedule(id), 'timing')
  redis.call('HSET', schedule(id), 'timing', timing, 'kind', kind, 'trigger', ARGV[i + 3], 'flow', ARGV[i + 4], 'request', ARGV[i + 5],
    'cron', ARGV[i + 8], 'tz', ARGV[i + 9], 'catch_up', ARGV[i + 10], 'overlap', ARGV[i + 11], 'about', ARGV[i + 12],
    'scope', ARGV[3], 'brain', ARGV[2])
  if old ~= timing then
    redis.call('HSET', schedule(id), 'made', now)
    redis.call('HDEL', schedule(id), 'cancelled', 'due', 'last')
    redis.call('ZREM', 'bb:schedules', id)
    redis.call('DEL', schedule(id, ':waiting'))
    if kind ~= 'boot' then set_due(id, ARGV[i + 6] ~= '' and ARGV[i + 6] or now + ARGV[i + 7]) end
    enlist(id, ARGV[3], now)
    redis.call('SADD', mine, id)
  end
end
for _, id in ipairs(redis.call('SMEMBERS', mine)) do
  if not here[id] then drop(id) end
end
return 1
"""
)

COME_UP = (
    HEAD
    + """
-- ARGV: time, process, ms that it counts as alive without another word, then id due run ... of what is to run when the
-- first process comes up. Returns 1 for the first one.
local now = clock()
redis.call('ZREMRANGEBYSCORE', 'bb:processes', '-inf', now)
local first = redis.call('ZCARD', 'bb:processes') == 0
alive(ARGV[2], now, ARGV[3])
if not first then return 0 end
for i = 4, #ARGV, 3 do
  if not redis.call('HGET', schedule(ARGV[i]), 'cancelled') then
    redis.call('HSET', schedule(ARGV[i]), 'last', ARGV[i + 1])
    redis.call('HINCRBY', schedule(ARGV[i]), 'fired', 1)
    release(ARGV[i], ARGV[i + 1], ARGV[i + 2], now, 0)
  end
end
return 1
"""
)

DUE = (
    HEAD
    + """
-- ARGV: time, how many to leave out, how many at most, process or '', ms that it counts as alive from now.
-- The time, in how many ms the next one is due (1000 at most), then of each schedule that is due its id and fields.
local now, out = clock(), {}
local next = redis.call('ZRANGEBYSCORE', 'bb:schedules', '(' .. now, now + 1000, 'WITHSCORES', 'LIMIT', 0, 1)
out[1], out[2] = now, next[2] and next[2] - now or 1000
if ARGV[4] ~= '' then alive(ARGV[4], now, ARGV[5]) end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', 'bb:schedules', '-inf', now, 'LIMIT', ARGV[2], ARGV[3])) do
  local r = redis.call('HMGET', schedule(id), 'due', 'kind', 'flow', 'cron', 'tz', 'catch_up', 'scope')
  if not r[1] then redis.call('ZREM', 'bb:schedules', id)
  else out[#out + 1] = {id, unpack(r)} end
end
return out
"""
)

FIRE = (
    HEAD
    + """
-- ARGV: time, id, the instant that is due, the next one or '', then due run ... of the firings.
-- Moves the schedule on, unless somebody else has. Returns the runs that are to start now.
local now, id, out = clock(), ARGV[2], {}
local r = redis.call('HMGET', schedule(id), 'due', 'overlap')
if r[1] ~= ARGV[3] then return out end
if ARGV[4] ~= '' then set_due(id, ARGV[4])
else
  redis.call('HDEL', schedule(id), 'due')
  redis.call('ZREM', 'bb:schedules', id)
end
for i = 5, #ARGV, 2 do
  local waiting = redis.call('LLEN', schedule(id, ':waiting'))
  redis.call('HSET', schedule(id), 'last', ARGV[i])
  if r[2] == 'allow' or (waiting == 0 and redis.call('SCARD', schedule(id, ':under_way')) == 0) then
    redis.call('HINCRBY', schedule(id), 'fired', 1)
    release(id, ARGV[i], ARGV[i + 1], now, HOLD)
    out[#out + 1] = ARGV[i + 1]
  elseif r[2] == 'queue' and waiting < WAIT then
    redis.call('RPUSH', schedule(id, ':waiting'), ARGV[i] .. ' ' .. ARGV[i + 1])
  else redis.call('HINCRBY', schedule(id), 'skipped', 1) end
end
return out
"""
)

LOOK = (
    HEAD
    + """
-- ARGV: time, how many at most.  The runs of firings that somebody must look after.
return redis.call('ZRANGEBYSCORE', 'bb:firings', '-inf', clock(), 'LIMIT', 0, ARGV[2])
"""
)

STARTED = (
    HEAD
    + """
-- ARGV: time, run.  The run of a firing is on record.
if redis.call('EXISTS', 'bb:firing:' .. ARGV[2]) == 0 then return 0 end
redis.call('HSET', 'bb:firing:' .. ARGV[2], 'started', 1)
redis.call('ZADD', 'bb:firings', clock() + LOOK, ARGV[2])
return 1
"""
)

SETTLE = (
    HEAD
    + """
-- ARGV: time, run, ms that a dead one is kept, most dead ones of a scope.  Looks after one firing.
-- Returns the run to start, if one is: this one, or the next that has waited for it.
local now, run = clock(), ARGV[2]
local f = redis.call('HMGET', 'bb:firing:' .. run, 'schedule', 'started')
local id = f[1]
if not id then redis.call('ZREM', 'bb:firings', run); return '' end
local r = redis.call('HMGET', 'bb:run:' .. run, 'status', 'scope')
if not r[1] and not f[2] then
  if redis.call('EXISTS', schedule(id)) == 1 then
    redis.call('ZADD', 'bb:firings', now + HOLD, run)
    return run
  end
elseif r[1] == 'queued' or r[1] == 'running' then
  redis.call('ZADD', 'bb:firings', now + LOOK, run)
  return ''
end
redis.call('DEL', 'bb:firing:' .. run)
redis.call('ZREM', 'bb:firings', run)
redis.call('SREM', schedule(id, ':under_way'), run)
if r[1] == 'failed' then
  local scope, kept = r[2] or '', tonumber(ARGV[3])
  redis.call('HSET', 'bb:run:' .. run, 'schedule', id)
  -- the list of the scope '' has those of all
  for _, key in ipairs({'bb:dead:', 'bb:dead:' .. scope}) do
    redis.call('ZADD', key, now, run)
    redis.call('ZREMRANGEBYRANK', key, 0, -1 - ARGV[4])
    redis.call('PEXPIRE', key, kept)
  end
  for _, part in ipairs({'', ':log', ':messages', ':steps', ':followers', ':saved'}) do redis.call('PEXPIRE', 'bb:run:' .. run .. part, kept) end
  if r[2] then
    redis.call('ZADD', 'bb:kept', now + kept + 1000, scope .. ' ' .. run)
    redis.call('PEXPIRE', 'bb:kept', kept * 2)
    redis.call('PEXPIRE', 'bb:runs:' .. scope, kept)
  end
end
if redis.call('SCARD', schedule(id, ':under_way')) > 0 then return '' end
local due, next = string.match(redis.call('LPOP', schedule(id, ':waiting')) or '', '^(%d+) (.*)$')
if next then
  redis.call('HINCRBY', schedule(id), 'fired', 1)
  release(id, due, next, now, HOLD)
  return next
end
-- a single firing is over; what stands in a brain's code is remembered, so that it is not made anew
local s = redis.call('HMGET', schedule(id), 'kind', 'due', 'brain')
if s[1] == 'once' and not s[2] and not s[3] then drop(id) end
return ''
"""
)

FIRING = (
    HEAD
    + """
-- ARGV: time, run.  What a firing is to start: flow, request, scope, due; nothing when its schedule is gone.
local f = redis.call('HMGET', 'bb:firing:' .. ARGV[2], 'schedule', 'due')
if not f[1] then return false end
local r = redis.call('HMGET', schedule(f[1]), 'flow', 'request', 'scope')
if not r[1] then return false end
return {r[1], r[2], r[3], f[2]}
"""
)

CANCEL = (
    HEAD
    + """
-- ARGV: time, id, scope or '' for any.  1 when there was something to cancel.
local id = ARGV[2]
local r = redis.call('HMGET', schedule(id), 'scope', 'brain', 'cancelled', 'kind', 'due')
if not r[1] or (ARGV[3] ~= '' and r[1] ~= ARGV[3]) or r[3] then return 0 end
local waited = redis.call('DEL', schedule(id, ':waiting'))
if not r[5] and r[4] ~= 'boot' and waited == 0 then return 0 end
if not r[2] then drop(id)
else
  redis.call('ZREM', 'bb:schedules', id)
  redis.call('HDEL', schedule(id), 'due')
  redis.call('HSET', schedule(id), 'cancelled', clock())
end
return 1
"""
)

RUN_NOW = (
    HEAD
    + """
-- ARGV: time, id, scope or '' for any, due, run.  Fires a schedule beside its order; 1 when there is one.
local r = redis.call('HGET', schedule(ARGV[2]), 'scope')
if not r or (ARGV[3] ~= '' and r ~= ARGV[3]) then return 0 end
redis.call('HINCRBY', schedule(ARGV[2]), 'fired', 1)
release(ARGV[2], ARGV[4], ARGV[5], clock(), 0)
return 1
"""
)

_FIELDS = """
local function fields(id)
  local r = redis.call('HMGET', schedule(id), 'made', 'kind', 'trigger', 'flow', 'cron', 'tz', 'catch_up', 'overlap', 'scope',
    'run', 'due', 'last', 'fired', 'skipped', 'cancelled', 'brain', 'about')
  if not r[1] then return false end
  for i = 1, 17 do r[i] = r[i] or '' end
  return {id, redis.call('SCARD', schedule(id, ':under_way')), redis.call('LLEN', schedule(id, ':waiting')), unpack(r)}
end
"""

PAGE = (
    HEAD
    + _FIELDS
    + """
-- ARGV: time, scope or '' for all, made ms and id to go on after or '+inf' and '', limit.  Newest first.
-- Returns rows of id and fields, one more than the limit when there are more.
local out, seen = {}, 0
while true do
  local found = redis.call('ZREVRANGEBYSCORE', 'bb:schedules:of:' .. ARGV[2], ARGV[3], '-inf', 'LIMIT', seen, 100)
  if #found == 0 then return out end
  for _, id in ipairs(found) do
    local r = fields(id)
    if r and (r[4] ~= ARGV[3] or id < ARGV[4]) then
      out[#out + 1] = r
      if #out > tonumber(ARGV[5]) then return out end
    end
  end
  seen = seen + #found
end
"""
)

ONE = (
    HEAD
    + _FIELDS
    + """
-- ARGV: time, id.  Its fields, as in a page.
return fields(ARGV[2])
"""
)

DEAD = (
    HEAD
    + """
-- ARGV: time, scope or '' for all, limit.  Firings that failed for good, newest first: run, when, schedule, flow, error.
local out, key = {}, 'bb:dead:' .. ARGV[2]
for _, run in ipairs(redis.call('ZREVRANGE', key, 0, ARGV[3] - 1)) do
  local r = redis.call('HMGET', 'bb:run:' .. run, 'schedule', 'flow', 'error', 'status')
  -- one that was taken up again, or is gone, is dead no more
  if r[4] ~= 'failed' then redis.call('ZREM', key, run)
  else out[#out + 1] = {run, redis.call('ZSCORE', key, run), r[1] or '', r[2], r[3] or 'null'} end
end
return out
"""
)

REVIVE = (
    HEAD
    + """
-- ARGV: time, scope or '' for any, run.  A dead firing is to be taken up again; 1 when it was dead.
local r = redis.call('HMGET', 'bb:run:' .. ARGV[3], 'schedule', 'scope')
if (ARGV[2] ~= '' and r[2] ~= ARGV[2]) or redis.call('ZREM', 'bb:dead:', ARGV[3]) == 0 then return 0 end
if r[2] then redis.call('ZREM', 'bb:dead:' .. r[2], ARGV[3]) end
redis.call('HSET', 'bb:firing:' .. ARGV[3], 'schedule', r[1] or '', 'due', 0, 'started', 1)
redis.call('ZADD', 'bb:firings', clock() + LOOK, ARGV[3])
if r[1] then redis.call('SADD', schedule(r[1], ':under_way'), ARGV[3]) end
return 1
"""
)
