"""The Lua scripts that change a schedule: each is one atomic step of a schedule's life.

A schedule is a hash `bb:schedule:<id>`. The sorted set `bb:schedules` holds each one that is to fire under the instant
(ms) at which it does. `bb:schedules:of:<scope>` holds all of a scope by the moment they were made; those that belong to
the brain itself have the scope ''.

Fields of the hash: `trigger`, the trigger that made it; `flow`, what it starts; `request`, the program's own bytes;
`kind` once | every; `cron`, `tz`, `catch_up`, `overlap`; `scope`; `run`, which run made it; `made`.

The first argument of each script is the time in ms, or nothing for the server's own: only tests bring one.
All keys stand on one server: scripts reach keys that they build from ids.
"""

from __future__ import annotations

HEAD = """
local function schedule(id, part) return 'bb:schedule:' .. id .. (part or '') end
local function clock()
  if ARGV[1] ~= '' then return tonumber(ARGV[1]) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
"""

NOW = HEAD + "return clock()"

PUT_OFF = (
    HEAD
    + """
-- ARGV: time, run, fence, most of one scope, then id kind trigger flow request at-or-'' after cron tz catch_up overlap ...
-- What is there already was put off by an earlier attempt of the same step. -1: the scope has too many.
local now, run = clock(), 'bb:run:' .. ARGV[2]
local r = redis.call('HMGET', run, 'fence', 'scope')
if r[1] ~= ARGV[3] then return 0 end
local scope = r[2] or ''
for i = 5, #ARGV, 11 do
  local id, kind = ARGV[i], ARGV[i + 1]
  if kind == 'webhook' then
    redis.call('HSET', 'bb:hook:' .. id, 'flow', ARGV[i + 3], 'request', ARGV[i + 4], 'scope', scope, 'run', ARGV[2], 'made', now)
  elseif redis.call('EXISTS', schedule(id)) == 0 then
    if redis.call('ZCARD', 'bb:schedules:of:' .. scope) >= tonumber(ARGV[4]) then return -1 end
    local at = ARGV[i + 5] ~= '' and tonumber(ARGV[i + 5]) or now + ARGV[i + 6]
    redis.call('HSET', schedule(id), 'kind', kind, 'trigger', ARGV[i + 2], 'flow', ARGV[i + 3], 'request', ARGV[i + 4],
      'cron', ARGV[i + 7], 'tz', ARGV[i + 8], 'catch_up', ARGV[i + 9], 'overlap', ARGV[i + 10],
      'scope', scope, 'run', ARGV[2], 'made', now)
    redis.call('ZADD', 'bb:schedules', at, id)
    redis.call('ZADD', 'bb:schedules:of:' .. scope, now, id)
  end
end
return 1
"""
)
