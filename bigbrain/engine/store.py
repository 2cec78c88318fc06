"""The runs in Redis: one method for each atomic step of a run's life.

Values go in and out as bytes; what they mean is the program's business. Every
method is one round trip. Methods raise `redis.RedisError` when the server is away.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

import msgspec
import redis

from bigbrain.engine import looking, scripts, waking
from bigbrain.engine.marks import is_mark
from bigbrain.engine.records import END, Claim, Load, LogId, MemberEnd, Message, NewRun, Outcome, RunRecord, Woken
from bigbrain.errors import BrainError, RunCancelled, RunError, RunExpired, RunInterrupted
from bigbrain.events import Failed, write_events

LEASE = 3.0
"""Seconds that a claimed step is its owner's; renewed four times in that span."""
RENEWAL = LEASE * 3 / 4
"""Seconds that a renewal waits for its answer: as long as it is of use, because a server whose disk is busy answers late and
has renewed the lease all the same."""
LATE = 0.5
"""Seconds by which a renewal may be late before it is asked whether its process is there at all."""
LOOK = 0.4
"""Seconds between two looks at a process that was not there; a connection that broke is there again in that time."""
GRACE = 1.5
"""Seconds after which a step that nobody has claimed counts as lost on its way."""
PATIENCE = 30.0
"""Seconds after which a group that waits for its members looks after them."""
LAPSES = 3
"""How many owners one step may lose before its run fails for good."""
KEPT = 3600.0
"""Seconds that a finished run's record and log are kept."""
LONGEST = 7 * 86400.0
"""Seconds that an unfinished run's keys outlive its last commit; no step may take longer."""


def write_error(error: BrainError) -> bytes:
    """An error as a run's record keeps it: with the internal text that no client sees."""
    detail = f"{error}" if error.__cause__ is None else f"{error}: {type(error.__cause__).__name__}: {error.__cause__}"
    return msgspec.json.encode({"code": error.code, "message": error.public, "detail": detail[:4000]})


class RunStore:
    """The runs of one Redis server."""

    def __init__(self, client: redis.Redis, *, lease: float = LEASE, grace: float = GRACE, kept: float = KEPT) -> None:
        self.client = client
        self.lease = lease
        self.grace = grace
        self.kept = kept
        self._start = client.register_script(scripts.START)
        self._serve = client.register_script(scripts.SERVE)
        self._claim = client.register_script(scripts.CLAIM)
        self._renew = client.register_script(waking.RENEW)
        self._append = client.register_script(scripts.APPEND)
        self._commit = client.register_script(scripts.COMMIT)
        self._spread = client.register_script(scripts.SPREAD)
        self._save = client.register_script(scripts.SAVE)
        self._rewind = client.register_script(scripts.REWIND)
        self._later = client.register_script(scripts.LATER)
        self._retry = client.register_script(scripts.RETRY)
        self._finish = client.register_script(scripts.FINISH)
        self._wake = client.register_script(waking.WAKE)
        self._release = client.register_script(waking.RELEASE)
        self._stop = client.register_script(scripts.STOP)
        self._follow = client.register_script(scripts.FOLLOW)
        self._read = client.register_script(looking.READ)
        self._load = client.register_script(looking.LOAD)

    def first_served(self, names: Sequence[str]) -> dict[str, int]:
        """When each flow was first served by any process here, in seconds since 1970; a new one is served now."""
        return dict(zip(names, map(int, self._serve(args=list(names))), strict=True))

    def start(self, run: NewRun, follower: str = "", message: Message | None = None) -> bool:
        """Puts a run on record, its first step unclaimed, and the message of that step, if any, into its list; False when the
        id is taken, or remembered."""
        fields: dict[str, bytes | str] = {
            "flow": run.flow,
            "plan": run.plan,
            "cursor": run.cursor,
            "request": run.request,
            "state": run.state,
            "durable": _flag(run.terms.durable),
            "lasting": _flag(run.terms.lasting),
            "answered": "0",
            **({"remembered": str(_ms(run.remembered))} if run.remembered else {}),
            **({"parent": run.parent} if run.parent else {}),
            **({"scope": run.scope} if run.scope else {}),
            **({"fingerprint": run.fingerprint} if run.fingerprint else {}),
            **({"lives": str(_ms(run.terms.ttl))} if run.terms.ttl else {}),
            **({"patient": "1"} if run.terms.patient else {}),
            **({"keep": str(_ms(run.kept))} if run.kept else {}),
            **({"hidden": "1"} if run.hidden else {}),
            **({"origin": run.cursor, "fresh": run.state} if not run.terms.lasting and not run.parent else {}),
        }
        args: list[bytes | str | int] = [
            run.id,
            uuid4().hex,
            _ms(LONGEST),
            _ms(self.grace),
            follower,
            write_events([run.first]),
            *(message or ("", b"")),
        ]
        for name, value in fields.items():
            args += [name, value]
        return bool(self._start(args=args))

    def remembers(self, run_id: str) -> bool:
        """Whether a run of this id was done and is remembered."""
        return bool(self.client.exists(f"bb:done:{run_id}"))

    def claim(self, run_id: str, path: str, attempt: int, owner: str) -> Claim | None:
        """Makes a step ours for one lease; None when it is not next or has a live owner."""
        row = self._claim(args=[run_id, path, attempt, owner, _ms(self.lease)])
        if not row:
            return None
        (
            fence,
            seq,
            state,
            request,
            flow,
            plan,
            stop,
            waited,
            lapses,
            messages,
            parent,
            members,
            loose,
            saved,
            failures,
            at,
            begun,
        ) = row
        return Claim(
            run_id=run_id,
            path=path,
            attempt=attempt,
            fence=int(fence),
            seq=int(seq),
            flow=flow.decode(),
            plan=plan.decode(),
            state=state,
            request=request,
            messages=tuple(messages),
            stopped=bool(stop),
            waited=int(waited),
            lapses=int(lapses),
            parent=parent.decode(),
            loose=tuple(line for line in loose if not is_mark(line)),
            saved=tuple(saved),
            failures=int(failures),
            at=int(at),
            begun=int(begun),
            members=tuple(MemberEnd(m[0].decode(), m[1], m[2], tuple(m[3])) for m in members),
        )

    def renew(self, held: Iterable[tuple[str, int]], process: str = "") -> tuple[set[str], set[str]]:
        """Renews the leases of (run id, fence): the runs that are lost, the runs that are to stop.

        process: who says so, if it can be heard on its channel (see `waking`).
        """
        return _marks(self._renew(args=[_ms(self.lease), process, *_flat(held)]))

    def release(self, held: Iterable[tuple[str, int]], process: str = "") -> None:
        """Hands steps (run id, fence) back: they are due at once, or fail where they may not run again."""
        args: list[bytes | str | int] = [_ms(self.kept)]
        for error in (RunInterrupted(), RunCancelled()):
            args += [_failed(error), write_error(error)]
        args.append(process)
        self._release(args=[*args, *_flat(held)])

    def append(self, batch: Sequence[tuple[str, int, int, bytes]]) -> tuple[set[str], set[str]]:
        """Adds (run id, fence, seq, line) to logs and tells the followers: the runs lost, the runs to stop.

        The same batch may be sent again when it is not known whether it arrived.
        """
        args: list[bytes | str | int] = []
        for entry in batch:
            args += entry
        return _marks(self._append(args=args))

    def spread(self, claim: Claim, outcome: Outcome) -> bool:
        """Has a step wait for the members of its group; False when it is no longer ours.

        The step is due again, as a new attempt, when the last member ends or the first fails,
        and after `PATIENCE` in any case, to see to members that were lost before they began.
        """
        args: list[bytes | str | int] = [claim.run_id, claim.fence, claim.path, outcome.state]
        return bool(self._spread(args=[*args, len(outcome.members), _ms(PATIENCE)]))

    def save(self, claim: Claim, line: bytes) -> bool:
        """Puts by what a step that is not over must not do twice; False when the step is no longer ours."""
        return bool(self._save(args=[claim.run_id, claim.fence, line, _ms(LONGEST)]))

    def rewind(self, claim: Claim, seq: int) -> bool:
        """Takes back what a step told since the last commit, entry `seq` being the mark of it; False when it is not ours."""
        return bool(self._rewind(args=[claim.run_id, claim.fence, seq]))

    def later(self, claim: Claim, outcome: Outcome, *, failed: bool = True) -> bool:
        """Has a step run anew after a while; False when it is no longer ours. failed: it counts among its failures."""
        delay = _ms(outcome.again or 0.0)
        done = _step_line(outcome)
        args: list[bytes | str | int] = [
            claim.run_id,
            claim.fence,
            claim.path,
            delay,
            outcome.state,
            done,
            _flag(failed),
        ]
        return bool(self._later(args=args))

    def patient(self, run_id: str) -> bool:
        """Whether a run waits for a flow that nobody serves."""
        return bool(self.client.hexists(f"bb:run:{run_id}", "patient"))

    def retry(self, run_id: str) -> bool:
        """Has a run that failed or was stopped go on from its last commit; False when it is none of these.

        What its last step told the client is taken back from the log. A run of which nothing is durable begins anew, unless
        its client has the whole answer.
        """
        return bool(self._retry(args=[run_id, _ms(LONGEST)]))

    def commit(self, claim: Claim, outcome: Outcome, seq: int) -> bool:
        """Puts a step's whole effect on record; False when the step is no longer ours.

        seq: the number that the outcome's events get in the log.
        """
        over = outcome.status != "running"
        return bool(
            self._commit(
                args=[
                    claim.run_id,
                    claim.fence,
                    claim.path,
                    outcome.next,
                    outcome.status,
                    outcome.state,
                    _flag(outcome.durable),
                    _flag(outcome.answered),
                    _step_line(outcome),
                    _ms(self.kept if over else LONGEST),
                    _ms(self.grace),
                    outcome.error,
                    seq,
                    write_events(outcome.events) if outcome.events else b"",
                    *outcome.messages,
                ]
            )
        )

    def finish(self, run_id: str) -> int:
        """Closes a run whose cursor has come to `END`: 1, or 2 when a group waited for it that can go on now.

        0 when the run is not there yet, or was closed before.
        """
        return int(self._finish(args=[run_id, END, _ms(self.kept)]))

    def wake(self, queues: Iterable[str] = ()) -> Woken:
        """Takes up what is due.

        Any number of processes may call it at any time. `queues` are Redis lists
        whose messages may still name such a step. Runs that cannot be taken up fail here.
        """
        interrupted = RunInterrupted()
        poisoned = RunError(f"the worker was lost {LAPSES} times in the same step; the run is given up")
        args: list[bytes | str | int] = [_ms(self.grace), _ms(self.kept), LAPSES]
        expired = RunExpired("the run was not over when its `ttl` was")
        for error in (interrupted, poisoned, expired, RunCancelled()):
            args += [_failed(error), write_error(error)]
        rows = self._wake(args=[*args, _ms(self.lease / 4 + LATE), _ms(LOOK), *queues])
        names = [row.decode() for row in rows]
        steps = tuple((names[i], names[i + 1], names[i + 2], int(names[i + 3])) for i in range(1, len(names), 4))
        return Woken(steps, int(names[0]) / 1000)

    def stop(self, run_id: str, *, if_abandoned: bool = False) -> bool:
        """Asks a run to stop; False when it is over.

        if_abandoned: only when nobody follows it, its answer is owed and no step of it is durable.
        """
        error = RunCancelled()
        args: list[bytes | str | int] = [
            run_id,
            _flag(if_abandoned),
            _ms(self.kept),
            _failed(error),
            write_error(error),
        ]
        return bool(self._stop(args=args))

    def follow(self, run_id: str, follower: str, last: LogId) -> tuple[str, list[tuple[LogId, bytes]]] | None:
        """Joins the followers of a run: its status and the log after the entry `last`; None when it is gone."""
        row = self._follow(args=[run_id, follower, *last])
        if not row:
            return None
        return row[0].decode(), [(LogId.read(row[i]), row[i + 1]) for i in range(1, len(row), 2)]

    def holds(self, run_id: str, entry: LogId) -> bool:
        """Whether the log of a run has that very entry."""
        return bool(self.client.xrange(f"bb:run:{run_id}:log", bytes(entry), bytes(entry)))

    def unfollow(self, run_id: str, follower: str) -> None:
        """Leaves the followers of a run."""
        self.client.srem(f"bb:run:{run_id}:followers", follower)

    def load(self, queues: Sequence[str] = ()) -> Load:
        """How much is there now. queues: Redis lists in which messages wait."""
        row = self._load(args=queues)
        return Load(int(row[0]), int(row[1]), tuple(int(length) for length in row[2:]))

    def record(self, run_id: str, saved: bytes = b"") -> RunRecord | None:
        """A run as its record tells it; None when it is unknown or gone.

        saved: how the lines begin that are to be given of what its next step has put by; b"": none.
        """
        row = self._read(args=[run_id, saved])
        if not row:
            return None
        fields = dict(zip((name.decode() for name in row[0][::2]), row[0][1::2], strict=True))
        return msgspec.convert(
            {
                **{name: fields[name].decode() for name in _PLAIN},
                "id": run_id,
                "ended": fields["ended"].decode() if "ended" in fields else None,
                **{name: fields.get(name, b"0").decode() for name in ("sent", "waited", "lapses", "spread")},
                "claimed": fields["owner"] != b"",
                "answered": fields["answered"] == b"1",
                "replayed": fields.get("replayed", b"0").decode(),
                "error": msgspec.json.decode(fields["error"]) if "error" in fields else None,
                "state": msgspec.json.decode(fields["state"]),
                "steps": [msgspec.json.decode(line) for line in row[1]],
                "saved": row[2],
            },
            RunRecord,
            strict=False,
        )


_PLAIN = ("flow", "plan", "status", "cursor", "attempt", "fence", "seq", "begun")


def _step_line(outcome: Outcome) -> bytes:
    """What a step's line holds behind the moment at which Redis puts it on the list."""
    return b"," + msgspec.json.encode(outcome.done)[1:] if outcome.done else b"}"


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _flat(held: Iterable[tuple[str, int]]) -> Iterator[str | int]:
    for pair in held:
        yield from pair


def _flag(value: bool) -> str:
    return "1" if value else "0"


def _failed(error: BrainError) -> bytes:
    return write_events([Failed.of(error)])


def _marks(rows: Iterable[bytes]) -> tuple[set[str], set[str]]:
    lost: set[str] = set()
    stopped: set[str] = set()
    for row in rows:
        (lost if row[:1] == b"-" else stopped).add(row[1:].decode())
    return lost, stopped
