"""The runs of the past and of now, for those who come back to them: joined, listed, waited for.

Each scope has a sorted set `bb:runs:<scope>` of its runs by the moment they began (ms).
A run that is over stands in `bb:kept` under the moment when it will be gone; `wake` takes it out of
both then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import redis

from bigbrain.engine.records import RunRow, Status, Unfinished
from bigbrain.events import Event, read_events

SCANNED = 2000
"""Runs that one page looks through for those that its filter wants; the next page goes on from there."""
POLL = 0.02
"""Seconds between the first two looks at a run that is waited for; each next pause is longer."""
LONGEST_POLL = 0.1

JOIN = """
-- ARGV: id, fingerprint.  How a run stands for a client that asks the same again; a complete answer counts as replayed.
local record, log = 'bb:run:' .. ARGV[1], 'bb:run:' .. ARGV[1] .. ':log'
local r = redis.call('HMGET', record, 'status', 'answered', 'fingerprint', 'stop', 'error', 'ended')
local first = redis.call('XRANGE', log, '1', '1')[1]
if not r[1] or not first then return false end
local complete = r[1] == 'done' or r[2] == '1'
if complete and r[3] == ARGV[2] then redis.call('HINCRBY', record, 'replayed', 1) end
return {r[1], complete and 1 or 0, r[3] or '', r[4] and 1 or 0, first[2][2], r[5] or 'null', r[6] or 0}
"""

FORGET = """
-- ARGV: id, when it ended (ms).  Takes a run that is over off the record, unless it was taken up or begun again meanwhile.
local record = 'bb:run:' .. ARGV[1]
if redis.call('HGET', record, 'ended') ~= ARGV[2] then return 0 end
for _, part in ipairs({'', ':log', ':messages', ':steps', ':followers', ':saved'}) do redis.call('DEL', record .. part) end
return 1
"""

PAGE = """
-- ARGV: scope, begun ms and id to go on after or '+inf' and '', status or '', flow or '', limit, most to look at.
-- Newest first.  Returns the place to go on from ('' at the end) and rows of id, flow, status, begun, ended, answered.
local out, seen, place = {}, 0, {'', ''}
while seen < tonumber(ARGV[7]) do
  local found = redis.call('ZREVRANGEBYSCORE', 'bb:runs:' .. ARGV[1], ARGV[2], '-inf', 'WITHSCORES', 'LIMIT', seen, 100)
  if #found == 0 then return {'', '', out} end
  for i = 1, #found, 2 do
    local id, begun = found[i], found[i + 1]
    if begun ~= ARGV[2] or id < ARGV[3] then
      local r = redis.call('HMGET', 'bb:run:' .. id, 'flow', 'status', 'ended', 'answered')
      if r[1] and (ARGV[4] == '' or r[2] == ARGV[4]) and (ARGV[5] == '' or r[1] == ARGV[5]) then
        if #out == tonumber(ARGV[6]) then return {place[1], place[2], out} end
        out[#out + 1] = {id, r[1], r[2], begun, r[3] or '', r[4]}
      end
    end
    place = {begun, id}
  end
  seen = seen + #found / 2
end
return {place[1], place[2], out}
"""


class Standing(NamedTuple):
    """How a run stands for a client that comes back to it.

    `complete`: its answer is; `stopping`: somebody wants it stopped, and it may not have heard yet.
    """

    status: Status
    complete: bool
    fingerprint: str
    stopping: bool
    first: Event
    code: str
    """Of the error that it failed with."""
    ended: int
    """When it ended, in ms since 1970, or 0."""

    @property
    def over(self) -> bool:
        """Whether nothing of it goes on."""
        return self.status not in ("queued", "running")


class Told(NamedTuple):
    """What was asked of a run and what it has said so far."""

    status: Status
    request: bytes
    events: list[Event]
    ended: int
    """When it ended, in ms since 1970, or 0."""


class Place(NamedTuple):
    """A place in a list of runs: after the run `id`, which began at `begun` (ms since 1970)."""

    begun: int
    id: str


class Page(NamedTuple):
    """Some runs, newest first, and where the next page begins; None at the end."""

    rows: tuple[RunRow, ...]
    after: Place | None


class History:
    """The runs of one Redis server, as those see them who come back. Methods raise `redis.RedisError`."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._join = client.register_script(JOIN)
        self._page = client.register_script(PAGE)
        self._forget = client.register_script(FORGET)

    def join(self, run_id: str, fingerprint: str) -> Standing | None:
        """How a run stands for a request with this fingerprint; None when it is gone. A complete one counts as replayed."""
        row = self._join(args=[run_id, fingerprint])
        if not row:
            return None
        status, complete, known, stopping, line, error, ended = row
        failed: dict[str, str] | None = msgspec.json.decode(error)
        return Standing(
            msgspec.convert(status.decode(), Status),
            bool(complete),
            known.decode(),
            bool(stopping),
            read_events(line)[0],
            failed["code"] if failed else "",
            int(ended),
        )

    def told(self, run_id: str) -> Told | None:
        """What a run was asked and has said; None when it is gone or hidden."""
        pipeline = self._client.pipeline(transaction=True)
        pipeline.hmget(f"bb:run:{run_id}", "status", "request", "hidden", "ended")
        pipeline.xrange(f"bb:run:{run_id}:log")
        (status, asked, hidden, ended), log = pipeline.execute()
        if status is None or hidden is not None or not log:
            return None
        events = [event for _, entry in log for event in read_events(entry[b"e"])]
        return Told(msgspec.convert(status.decode(), Status), asked, events, int(ended or 0))

    def hidden(self, run_id: str) -> bool:
        """Whether nobody is to read what a run says."""
        return bool(self._client.hexists(f"bb:run:{run_id}", "hidden"))

    def hide(self, run_id: str) -> None:
        """Has a run never be told of again, whatever becomes of it."""
        if self._client.exists(f"bb:run:{run_id}"):
            self._client.hset(f"bb:run:{run_id}", "hidden", "1")

    def forget(self, run_id: str, ended: int) -> bool:
        """Takes a run off the record that ended at that moment; False when it was taken up or begun again meanwhile."""
        return bool(self._forget(args=[run_id, ended]))

    def page(self, scope: str, *, status: str = "", flow: str = "", limit: int, after: Place | None = None) -> Page:
        """The runs of a scope that have this status and flow, if they are named."""
        begun, last = (str(after.begun), after.id) if after else ("+inf", "")
        place, place_id, rows = self._page(args=[scope, begun, last, status, flow, limit, SCANNED])
        return Page(
            tuple(_read_row([value.decode() for value in row]) for row in rows),
            Place(int(place), place_id.decode()) if place else None,
        )

    def unfinished(self) -> Iterator[Unfinished]:
        """All runs that are not over, of all scopes, each once; the members of groups are part of their runs.

        What begins or ends meanwhile may be in it or not.
        """
        seen = set[str]()
        for key, _ in self._client.zscan_iter("bb:due", count=SCANNED):
            run_id = bytes(key).decode()
            # a dot parts the id of a run from the place of a member
            if "." in run_id or run_id in seen:
                continue
            seen.add(run_id)
            row = self._client.hmget(f"bb:run:{run_id}", "flow", "plan", "cursor", "patient", "state")
            if row[0] is not None:
                flow, plan, cursor, patient, state = (_text(value) for value in row)
                yield Unfinished(run_id, flow, plan, cursor, bool(patient), state.encode())

    def wait_over(self, run_id: str, seconds: float) -> bool:
        """Whether a run is over, or gone, within so many seconds; waits until it is."""
        until = time.monotonic() + seconds
        pause = POLL
        while self._client.hget(f"bb:run:{run_id}", "status") in (b"queued", b"running"):
            if time.monotonic() >= until:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_POLL)
        return True


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


def _read_row(row: Sequence[str]) -> RunRow:
    run_id, flow, status, begun, ended, answered = row
    return RunRow(
        run_id,
        flow,
        msgspec.convert(status, Status),
        int(begun),
        int(ended) if ended else None,
        answered == "1",
    )
