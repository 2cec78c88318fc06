"""The Lua scripts that change a run: each is one atomic step of a run's life.

A run is a hash `record`, a stream `log` (entry `seq-fence`, field `e`, one line of
events), a list `messages` (append-only), a list `steps` (what was done) and a set
`followers` (channels of the processes that relay it). The sorted set `due` holds
each unfinished run under the moment (ms, by the server's clock) when somebody
must look after it: the end of its step's lease, or of the grace for an unclaimed
one.

Fields of the record: `status` queued | running | done | failed | cancelled;
`cursor`, the path of the step that is next; `attempt`, counted up whenever that
step is to be run anew; `fence`, the moment of the last claim, or of the start (ms), always a new one: whoever
holds another one writes nothing more, even when the server was killed and has forgotten its claim; `owner` and
`lease` of the claimed step; `lapses`, how
often its owner was lost; `waits`, how often it was due and nobody had claimed it; `seq`, the last entry of the log; `durable`, whether the
next step may be run again; `kept`, the last entry of the log that is committed; `failures` of that step;
`lives`, how long the run may last (ms), and `expires`, the moment from which on it is given up; `answered`, whether the client has its whole answer;
`state`, the program's own; `origin` and `fresh`, the first step and state of a run of which nothing is durable; `stop`, set when
somebody wants the run stopped; `sent`, when the next step became due,
`claimed`, when it was claimed, and `waited`, the time between (ms); `mailed`, when its message was sent once more.
`keep`, how long the run is kept when it is over, if not as long as others (ms); `hidden`, set when what it says is to be read by nobody.

Only commands of Redis 6.2 are used, so every server that can be embedded works.
A run that is `remembered` leaves `bb:done:<id>` for so many ms when it is done, and none begins under its id meanwhile.
All keys stand on one server: scripts reach keys that they build from a run's id.
"""

from __future__ import annotations

HEAD = """
local function key(id, part) return 'bb:run:' .. id .. part end
local function clock() local t = redis.call('TIME'); return t[1] * 1000 + math.floor(t[2] / 1000) end
-- fence: the record's, where it is known already
local function entry(id, seq, fence) return seq .. '-' .. (fence or redis.call('HGET', key(id, ''), 'fence')) end
local function told(id, seq, line, fence) return id .. ' ' .. entry(id, seq, fence) .. ' ' .. line end
local function tell(id, seq, line)
  for _, channel in ipairs(redis.call('SMEMBERS', key(id, ':followers'))) do
    -- nobody listens there any more; whoever comes back says so by following again
    if redis.call('PUBLISH', channel, told(id, seq, line)) == 0 then
      redis.call('SREM', key(id, ':followers'), channel)
    end
  end
end
local function here(process, now)
  if process and process ~= '' then redis.call('ZADD', 'bb:here', now, process); redis.call('PEXPIRE', 'bb:here', 86400000) end
end
local function new_fence(last, now) return math.max(tonumber(last) + 1, now) end
local function expired(moment, now) return tonumber(moment or 0) > 0 and tonumber(moment) <= now end
local function log(id, seq, line, fence)
  redis.call('XADD', key(id, ':log'), entry(id, seq, fence), 'e', line)
  redis.call('HSET', key(id, ''), 'seq', seq)
end
local function take_back(id, kept, seq)
  for _, entry in ipairs(redis.call('XRANGE', key(id, ':log'), (kept + 1) .. '-0', '+')) do redis.call('XDEL', key(id, ':log'), entry[1]) end
  local mark = '{"kept":' .. kept .. '}'
  log(id, seq, mark)
  tell(id, seq, mark)
end
local function forgotten(id, seq, known, now)
  -- the server no longer has what it had said it kept: it was killed while its disk was busy.  Whoever goes on from
  -- there would leave a hole: the step is lost, and done again by whoever takes up what is due
  if tonumber(seq) <= tonumber(known) + 1 then return false end
  redis.call('HSET', key(id, ''), 'fence', new_fence(redis.call('HGET', key(id, ''), 'fence'), now))
  take_back(id, redis.call('HGET', key(id, ''), 'kept'), seq)
  redis.call('ZADD', 'bb:due', now, id)
  return true
end
local function close(id, status, now, ttl)
  redis.call('HSET', key(id, ''), 'status', status, 'owner', '', 'ended', now)
  redis.call('ZREM', 'bb:due', id)
  local scope, keep, remembered = unpack(redis.call('HMGET', key(id, ''), 'scope', 'keep', 'remembered'))
  ttl = tonumber(keep or ttl)
  if remembered and status == 'done' then redis.call('SET', 'bb:done:' .. id, now, 'PX', remembered) end
  if scope then
    -- a second after it has expired: whoever finds it still there then knows that it was taken up again
    redis.call('ZADD', 'bb:kept', now + ttl + 1000, scope .. ' ' .. id)
    if redis.call('PTTL', 'bb:kept') < ttl * 2 + 60000 then redis.call('PEXPIRE', 'bb:kept', ttl * 2 + 60000) end
  end
  for _, part in ipairs({'', ':log', ':messages', ':steps', ':followers', ':saved'}) do redis.call('PEXPIRE', key(id, part), ttl) end
  local parent = redis.call('HGET', key(id, ''), 'parent')
  -- its answer is in the log; what its next steps would have gone on from is of no use any more
  if status == 'done' and not parent then redis.call('DEL', key(id, ':messages'), key(id, ':saved')) end
  if not parent or redis.call('EXISTS', key(parent, '')) == 0 then return 1 end
  -- the last of a group to end, or the first to fail, has the group's step looked after at once
  if redis.call('HINCRBY', key(parent, ''), 'awaited', -1) > 0 and status == 'done' then return 1 end
  if redis.call('HGET', key(parent, ''), 'owner') ~= '' or redis.call('ZSCORE', 'bb:due', parent) == false then return 1 end
  redis.call('HSET', key(parent, ''), 'ready', 1)
  redis.call('ZADD', 'bb:due', now, parent)
  return 2
end
"""

SERVE = """
-- ARGV: names.  The second in which each was first named here.
local out, now = {}, redis.call('TIME')[1]
for _, name in ipairs(ARGV) do
  redis.call('HSETNX', 'bb:served', name, now)
  out[#out + 1] = redis.call('HGET', 'bb:served', name)
end
return out
"""

START = (
    HEAD
    + """
-- ARGV: id, token, ttl ms, grace ms, follower or '', first line, list and message of the first step or '' twice, then field value ...
-- The token tells a call that is made again, because its answer got lost, from a second run of that id.
local id, now = ARGV[1], clock()
local token = redis.call('HGET', key(id, ''), 'token')
if token then return token == ARGV[2] and 1 or 0 end
if redis.call('EXISTS', 'bb:done:' .. id) == 1 then return 0 end
local fields = {'token', ARGV[2], 'status', 'queued', 'attempt', 1, 'fence', now, 'owner', '', 'lease', 0, 'lapses', 0, 'begun', now, 'sent', now, 'kept', 1}
for i = 9, #ARGV do fields[#fields + 1] = ARGV[i] end
redis.call('HSET', key(id, ''), unpack(fields))
-- by this server's clock, as all moments: the sender's may be another
local lives = redis.call('HGET', key(id, ''), 'lives')
if lives then redis.call('HSET', key(id, ''), 'expires', now + lives) end
log(id, 1, ARGV[6])
local scope = redis.call('HGET', key(id, ''), 'scope')
if scope then redis.call('ZADD', 'bb:runs:' .. scope, now, id); redis.call('PEXPIRE', 'bb:runs:' .. scope, ARGV[3]) end
if ARGV[5] ~= '' then redis.call('SADD', key(id, ':followers'), ARGV[5]) end
for _, part in ipairs({'', ':log', ':followers'}) do redis.call('PEXPIRE', key(id, part), ARGV[3]) end
redis.call('ZADD', 'bb:due', now + ARGV[4], id)
if ARGV[7] ~= '' then redis.call('LPUSH', ARGV[7], ARGV[8]) end
return 1
"""
)

CLAIM = (
    HEAD
    + """
-- ARGV: id, path, attempt, owner (its process, a colon, what is new for each claim), lease ms.  A message that does not name the step that is next does nothing.
-- A call made again because its answer got lost finds its own claim.
local id, now = ARGV[1], clock()
local r = redis.call('HMGET', key(id, ''), 'status', 'cursor', 'attempt', 'owner', 'lease', 'fence', 'seq', 'state', 'request', 'flow', 'plan', 'stop', 'sent', 'waited', 'lapses', 'spread', 'parent', 'failures', 'expires', 'claimed', 'begun')
if (r[1] ~= 'queued' and r[1] ~= 'running') or r[2] ~= ARGV[2] or r[3] ~= ARGV[3] then return false end
-- one whose time is over is ended by `wake`
if expired(r[19], now) then return false end
local fence, waited, claimed = tonumber(r[6]), r[14] or 0, r[20]
if r[4] ~= ARGV[4] then
  if r[4] ~= '' and tonumber(r[5]) > now then return false end
  fence, claimed = new_fence(fence, now), now
  -- a step whose owner was lost is due again from the end of that one's lease on
  waited = now - (r[4] ~= '' and r[5] or r[13] or now)
end
redis.call('HSET', key(id, ''), 'status', 'running', 'fence', fence, 'owner', ARGV[4], 'lease', now + ARGV[5], 'waits', 0, 'waited', waited, 'claimed', claimed)
redis.call('ZADD', 'bb:due', now + ARGV[5], id)
here(string.match(ARGV[4], '^(.-):'), now)
local members = {}
for number = 0, (tonumber(r[16]) or 0) - 1 do
  local member = id .. '.' .. ARGV[2] .. '.' .. number
  local m = redis.call('HMGET', key(member, ''), 'status', 'state', 'error')
  members[#members + 1] = {m[1] or '', m[2] or '', m[3] or '', redis.call('LRANGE', key(member, ':messages'), 0, -1)}
end
-- what earlier attempts of this step told the client, and what they have put by
local loose, saved = {}, {}
if tonumber(ARGV[3]) > 1 then
  for _, entry in ipairs(redis.call('XRANGE', key(id, ':log'), (redis.call('HGET', key(id, ''), 'kept') + 1) .. '-0', '+')) do loose[#loose + 1] = entry[2][2] end
  saved = redis.call('LRANGE', key(id, ':saved'), 0, -1)
end
return {fence, r[7], r[8], r[9], r[10], r[11], r[12] or '', waited, r[15] or 0, redis.call('LRANGE', key(id, ':messages'), 0, -1), r[17] or '', members, loose, saved, r[18] or 0, claimed, r[21]}
"""
)

APPEND = (
    HEAD
    + """
-- ARGV: id fence seq line ...  A line sent twice is stored once; one from a lost owner not at all.
-- One message a follower for the whole batch, its lines joined by newlines (a line of JSON holds none).
local out, order, mail, now = {}, {}, {}, clock()
for i = 1, #ARGV, 4 do
  local id, seq = ARGV[i], ARGV[i + 2]
  local r = redis.call('HMGET', key(id, ''), 'fence', 'owner', 'seq', 'stop')
  if r[1] ~= ARGV[i + 1] or r[2] == '' or forgotten(id, seq, r[3], now) then out[#out + 1] = '-' .. id
  else
    if r[4] then out[#out + 1] = '!' .. id end
    if tonumber(r[3]) < tonumber(seq) then
      log(id, seq, ARGV[i + 3], r[1])
      for _, channel in ipairs(redis.call('SMEMBERS', key(id, ':followers'))) do
        if not mail[channel] then mail[channel] = {}; order[#order + 1] = channel end
        local box = mail[channel]
        box[#box + 1] = told(id, seq, ARGV[i + 3], r[1])
      end
    end
  end
end
for _, channel in ipairs(order) do
  if redis.call('PUBLISH', channel, table.concat(mail[channel], '\\n')) == 0 then
    for i = 1, #ARGV, 4 do redis.call('SREM', key(ARGV[i], ':followers'), channel) end
  end
end
return out
"""
)

COMMIT = (
    HEAD
    + """
-- ARGV: id, fence, path, next path, status, state, durable, answered, step line (the rest of an object), ttl ms, grace ms, error, seq, line or '', message ...
local id, now = ARGV[1], clock()
local r = redis.call('HMGET', key(id, ''), 'fence', 'cursor', 'owner', 'seq')
if r[1] ~= ARGV[2] then return 0 end
-- nobody has claimed since, yet the cursor moved: this very commit was made before and its answer got lost
if r[2] ~= ARGV[3] and r[3] == '' then return 1 end
if r[2] ~= ARGV[3] or r[3] == '' or forgotten(id, ARGV[13], r[4], now) then return 0 end
for i = 15, #ARGV do redis.call('RPUSH', key(id, ':messages'), ARGV[i]) end
redis.call('RPUSH', key(id, ':steps'), '{"ended":' .. now .. ARGV[9])
redis.call('HDEL', key(id, ''), 'spread', 'awaited', 'ready', 'mailed')
redis.call('HSET', key(id, ''), 'cursor', ARGV[4], 'attempt', 1, 'owner', '', 'lapses', 0, 'sent', now, 'state', ARGV[6], 'durable', ARGV[7], 'answered', ARGV[8])
if ARGV[12] ~= '' then redis.call('HSET', key(id, ''), 'error', ARGV[12]) end
if ARGV[14] ~= '' and tonumber(r[4]) < tonumber(ARGV[13]) then
  log(id, ARGV[13], ARGV[14])
  tell(id, ARGV[13], ARGV[14])
end
if ARGV[5] == 'running' or ARGV[5] == 'done' then
  redis.call('HSET', key(id, ''), 'kept', redis.call('HGET', key(id, ''), 'seq'))
  redis.call('HDEL', key(id, ''), 'failures')
  redis.call('DEL', key(id, ':saved'))
end
if ARGV[5] ~= 'running' then return close(id, ARGV[5], now, ARGV[10])
else
  for _, part in ipairs({'', ':log', ':messages', ':steps', ':followers'}) do redis.call('PEXPIRE', key(id, part), ARGV[10]) end
  redis.call('ZADD', 'bb:due', expired(redis.call('HGET', key(id, ''), 'expires'), now) and now or now + ARGV[11], id)
end
return 1
"""
)

FINISH = (
    HEAD
    + """
-- ARGV: id, path of the last step, ttl ms
local r = redis.call('HMGET', key(ARGV[1], ''), 'status', 'cursor')
if (r[1] ~= 'queued' and r[1] ~= 'running') or r[2] ~= ARGV[2] then return 0 end
return close(ARGV[1], 'done', clock(), ARGV[3])
"""
)

SAVE = (
    HEAD
    + """
-- ARGV: id, fence, line, ttl ms.  Puts by what a step that is not over must not do twice.
local r = redis.call('HMGET', key(ARGV[1], ''), 'fence', 'owner')
if r[1] ~= ARGV[2] or r[2] == '' then return 0 end
redis.call('RPUSH', key(ARGV[1], ':saved'), ARGV[3])
redis.call('PEXPIRE', key(ARGV[1], ':saved'), ARGV[4])
return 1
"""
)

LATER = (
    HEAD
    + """
-- ARGV: id, fence, path, delay ms, state, step line (the rest of an object), '1' if it failed.  A step is to run anew after a while.
local id, now = ARGV[1], clock()
local r = redis.call('HMGET', key(id, ''), 'fence', 'cursor', 'owner', 'attempt')
if r[1] ~= ARGV[2] or r[2] ~= ARGV[3] then return 0 end
if r[3] == '' then return 1 end
if ARGV[7] == '1' then redis.call('HINCRBY', key(id, ''), 'failures', 1) end
redis.call('HSET', key(id, ''), 'owner', '', 'attempt', r[4] + 1, 'state', ARGV[5], 'ready', 1, 'sent', now + ARGV[4])
redis.call('RPUSH', key(id, ':steps'), '{"ended":' .. now .. ARGV[6])
redis.call('ZADD', 'bb:due', now + ARGV[4], id)
return 1
"""
)

REWIND = (
    HEAD
    + """
-- ARGV: id, fence, seq.  What the step told so far is taken back; whoever has some of it hears so from the mark in its place.
local id = ARGV[1]
local r = redis.call('HMGET', key(id, ''), 'fence', 'owner', 'seq', 'kept')
if r[1] ~= ARGV[2] or r[2] == '' then return 0 end
if tonumber(r[3]) < tonumber(ARGV[3]) then take_back(id, r[4], ARGV[3]) end
return 1
"""
)

RETRY = (
    HEAD
    + """
-- ARGV: id, ttl ms.  A run that failed or was stopped goes on from its last commit; what was told since is taken back.
-- One of which nothing is durable begins anew instead, unless its client has the whole answer: nothing is kept for it.
local id, now = ARGV[1], clock()
local r = redis.call('HMGET', key(id, ''), 'status', 'kept', 'attempt', 'seq', 'answered', 'origin', 'fresh')
if r[1] ~= 'failed' and r[1] ~= 'cancelled' then return 0 end
local kept = r[2]
if r[6] and r[5] ~= '1' then
  kept = 1
  redis.call('DEL', key(id, ':messages'), key(id, ':saved'))
  redis.call('HSET', key(id, ''), 'cursor', r[6], 'state', r[7], 'kept', kept, 'durable', '0')
end
take_back(id, kept, r[4] + 1)
redis.call('HDEL', key(id, ''), 'error', 'stop', 'ended', 'failures', 'spread', 'awaited')
redis.call('HSET', key(id, ''), 'status', 'running', 'owner', '', 'attempt', r[3] + 1, 'lapses', 0, 'ready', 1, 'sent', now)
for _, part in ipairs({'', ':log', ':messages', ':steps', ':followers', ':saved'}) do redis.call('PEXPIRE', key(id, part), ARGV[2]) end
redis.call('ZADD', 'bb:due', now, id)
return 1
"""
)

SPREAD = (
    HEAD
    + """
-- ARGV: id, fence, path, state, members, patience ms.  The step waits for its members and runs anew when they have ended.
local id, now = ARGV[1], clock()
local r = redis.call('HMGET', key(id, ''), 'fence', 'cursor', 'owner', 'attempt', 'spread')
if r[1] ~= ARGV[2] then return 0 end
if r[2] == ARGV[3] and r[3] == '' then return 1 end
if r[2] ~= ARGV[3] then return 0 end
redis.call('HSET', key(id, ''), 'owner', '', 'attempt', r[4] + 1, 'state', ARGV[4])
if not r[5] then redis.call('HSET', key(id, ''), 'spread', ARGV[5], 'awaited', ARGV[5]) end
if tonumber(redis.call('HGET', key(id, ''), 'awaited')) > 0 then redis.call('ZADD', 'bb:due', now + ARGV[6], id)
else
  -- the last one ended while this step looked after them
  redis.call('HSET', key(id, ''), 'ready', 1)
  redis.call('ZADD', 'bb:due', now, id)
end
return 1
"""
)

STOP = (
    HEAD
    + """
-- ARGV: id, only if nobody follows ('1'), ttl ms, line, error.  A claimed step is asked to stop, an unclaimed one ends here.
local id, now = ARGV[1], clock()
local r = redis.call('HMGET', key(id, ''), 'status', 'owner', 'answered', 'seq', 'durable', 'lasting')
if r[1] ~= 'queued' and r[1] ~= 'running' then return 0 end
if ARGV[2] == '1' and (r[6] == '1' or r[3] == '1' or redis.call('SCARD', key(id, ':followers')) > 0) then return 0 end
redis.call('HSET', key(id, ''), 'stop', now)
local group = redis.call('HMGET', key(id, ''), 'cursor', 'spread')
for number = 0, (tonumber(group[2]) or 0) - 1 do
  local member = id .. '.' .. group[1] .. '.' .. number
  if redis.call('EXISTS', key(member, '')) == 1 then
    redis.call('HSET', key(member, ''), 'stop', now)
    redis.call('PUBLISH', 'bb:stop', member)
  end
end
if r[2] == '' then
  redis.call('HSET', key(id, ''), 'error', ARGV[5])
  if r[3] ~= '1' then
    log(id, r[4] + 1, ARGV[4])
    tell(id, r[4] + 1, ARGV[4])
  end
  close(id, 'cancelled', now, ARGV[3])
else redis.call('PUBLISH', 'bb:stop', id) end
return 1
"""
)

FOLLOW = (
    HEAD
    + """
-- ARGV: id, follower, last seq, fence of that entry or '0'.  Joining and reading the log are one: whatever comes later is told.
local id, last = ARGV[1], ARGV[3]
local status, seq = unpack(redis.call('HMGET', key(id, ''), 'status', 'seq'))
if not status then return false end
local going = status == 'queued' or status == 'running'
local found, behind = redis.call('XRANGE', key(id, ':log'), (last + 1) .. '-0', '+'), going and tonumber(last) > tonumber(seq)
if ARGV[4] ~= '0' and #redis.call('XRANGE', key(id, ':log'), last .. '-' .. ARGV[4], last .. '-' .. ARGV[4]) == 0 then
  behind = true
  for _, entry in ipairs(found) do
    local line = entry[2][2]
    -- it was taken back, and whoever reads on hears so
    if string.sub(line, 1, 1) == '{' and cjson.decode(line).kept < tonumber(last) then behind = false end
  end
end
-- the follower has what the server has forgotten: nothing of that counts any more
if behind then return {status, last .. '-0', '{"kept":0}'} end
if going then
  redis.call('SADD', key(id, ':followers'), ARGV[2])
  local left = redis.call('PTTL', key(id, ''))
  if left > 0 then redis.call('PEXPIRE', key(id, ':followers'), left) end
end
local out = {status}
for _, entry in ipairs(found) do
  out[#out + 1] = entry[1]
  out[#out + 1] = entry[2][2]
end
return out
"""
)
