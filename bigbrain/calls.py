"""Calls of webhooks: which endpoint is meant, whether a call is genuine, and which run it is.

A delivery is a run, and its id is the run's: sent again, it is the same run, joined while
it is under way, answered alike when it is done, taken up again when it failed. Where the
id is not signed, Redis remembers what is, so that a genuine delivery under another id is
still the same one.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

import msgspec
import redis

from bigbrain.compiling import Deferral
from bigbrain.engine.records import NewRun
from bigbrain.errors import NotFound
from bigbrain.events import Started
from bigbrain.identity import OPEN, Identity, is_run_id
from bigbrain.messages import Request
from bigbrain.program import Program
from bigbrain.triggers.seeds import carrying
from bigbrain.triggers.specs import Endpoint
from bigbrain.webhooks.deliveries import Delivery, Proof, digest
from bigbrain.webhooks.metadata import metadata_of
from bigbrain.webhooks.payloads import BODY, write_body
from bigbrain.webhooks.verifiers import Verifier

REMEMBERED = 3 * 86400.0
"""Seconds for which a delivery that was done is known to be a repetition: senders try for as long as three days."""

OPENED = 30 * 86400.0
"""Seconds for which a webhook that a run has opened can be called, from its last call on."""

_request = msgspec.json.Decoder(Request)


@dataclass(frozen=True)
class Hook:
    """An endpoint that may be called now: what verifies its calls, what they start, and with which request.

    `verifier`: None when nothing is signed. `replies`: whether a call may have an answer to wait for.
    `scope`: whose its runs are.
    """

    id: str
    flow: str
    request: Request
    verifier: Verifier | None
    replies: bool
    scope: str = OPEN


class Calls:
    """The webhooks of one program."""

    def __init__(self, program: Program, client: redis.Redis, scope: str = OPEN) -> None:
        """scope: whose runs those of the brain's own webhooks are listed among; those that a run opens are of its scope."""
        self._program = program
        self._client = client
        self._scope = scope

    def find(self, id: str) -> Hook:
        """The endpoint of this id. Raises `NotFound` when there is none, or no run has opened it yet."""
        deferral = self._program.endpoints.get(id)
        if deferral is None:
            raise _unknown(id)
        standing = self._program.standing.get(id)
        if standing is not None:
            return self._hook(deferral, standing.request, self._scope)
        flow, kept, scope = (_bytes(value) for value in self._client.hmget(f"bb:hook:{id}", "flow", "request", "scope"))
        if not kept or flow.decode() != deferral.flow:
            raise _unknown(id)
        self._client.expire(f"bb:hook:{id}", int(OPENED))
        return self._hook(deferral, _request.decode(kept), scope.decode() or OPEN)

    def run(self, hook: Hook, delivery: Delivery, proof: Proof, now: float) -> NewRun:
        """The run that a genuine delivery is: the same one for the same delivery. now: seconds since 1970."""
        identity = Identity(self._id(hook, proof), hook.scope)
        # an id that is signed says that it is the same event, even where a further try differs, as in Stripe's count of
        # endpoints that are still to be told; else the body does, whatever time the try was signed with
        event = proof.id if proof.id and proof.id == proof.mark else digest(delivery.body)
        carried = {
            BODY: write_body(delivery.body, delivery.header("Content-Type")),
            "metadata": metadata_of(delivery.headers),
        }
        return self._program.new_run(
            hook.flow,
            Started(identity.key, hook.flow, int(now)),
            carrying(hook.request, carried),
            scope=hook.scope,
            fingerprint=digest(hook.id.encode(), b"\0", event.encode()),
            quiet=hook.replies,
            remembered=REMEMBERED,
        )

    def _hook(self, deferral: Deferral, request: Request, scope: str) -> Hook:
        verifier = deferral.trigger.verifier if isinstance(deferral.trigger, Endpoint) else None
        replies = self._program.replies(deferral.flow)
        return Hook(deferral.id, deferral.flow, request, verifier, replies, scope)

    def _id(self, hook: Hook, proof: Proof) -> str:
        id = f"{hook.id}:{proof.id or proof.mark or uuid4().hex}"
        if not is_run_id(id):
            id = f"{hook.id}:{digest(proof.id.encode())}"
        if not proof.mark or proof.mark == proof.id:
            return id
        place = f"bb:hooked:{hook.id}:{proof.mark}"
        if self._client.set(place, id, nx=True, ex=int(REMEMBERED)):
            return id
        return _bytes(self._client.get(place)).decode() or id


def _bytes(found: bytes | str | None) -> bytes:
    """What Redis has found; nothing when it has nothing."""
    return found if isinstance(found, bytes) else b""


def _unknown(id: str) -> NotFound:
    return NotFound(f"there is no webhook `{id[:100]}` here")
