"""The Lua scripts that only look at runs; `scripts` has those that change them, and says what a run consists of."""

from __future__ import annotations

READ = """
-- ARGV: id, beginning of lines or ''.  The record as name value ..., the list of what was done, and of what is put by
-- the lines that begin so.
local record = 'bb:run:' .. ARGV[1]
local fields, saved = redis.call('HGETALL', record), {}
if #fields == 0 then return false end
if ARGV[2] ~= '' then
  for _, line in ipairs(redis.call('LRANGE', record .. ':saved', 0, -1)) do
    if string.sub(line, 1, #ARGV[2]) == ARGV[2] then saved[#saved + 1] = line end
  end
end
return {fields, redis.call('LRANGE', record .. ':steps', 0, -1), saved}
"""

LOAD = """
-- ARGV: queue ...  How many runs are not over, how many are due, how long each queue is.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local out = {redis.call('ZCARD', 'bb:due'), redis.call('ZCOUNT', 'bb:due', '-inf', now)}
for _, queue in ipairs(ARGV) do out[#out + 1] = redis.call('LLEN', queue) end
return out
"""
