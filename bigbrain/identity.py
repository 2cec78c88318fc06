"""Who a run is: the id that its client knows, whose it is, and which request it answers.

A client may choose the id, so it is checked, and in Redis it stands behind the scope of
the client's key: two clients that choose the same id never meet. There, dots are written
as tildes, because a dot parts the id of a run from the place of a member of its groups.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256

import msgspec
from msgspec.structs import replace

from bigbrain.messages import Request

OPEN = "open"
"""The scope of all clients where no key is asked for."""

RULE = "1 to 128 letters, digits or any of `.` `_` `:` `-`, no dot at the beginning and no two dots in a row"
"""What an id must be, for the sentence that refuses another one."""

SCOPE = 12
"""Hex digits of a key's digest that make its scope: enough to part the keys of a deployment, too few to find one."""

_SHAPE = re.compile(r"[A-Za-z0-9_:-][A-Za-z0-9._:-]{0,127}")


@dataclass(frozen=True)
class Identity:
    """A run's id as its client knows it, and the scope in which it is unique."""

    id: str
    scope: str = OPEN

    @property
    def key(self) -> str:
        """The id under which the run is on record."""
        return f"{self.scope}:{self.id.replace('.', '~')}"


def is_run_id(text: str) -> bool:
    """Whether a client may choose this id."""
    return _SHAPE.fullmatch(text) is not None and ".." not in text


def scope_of(digest: bytes) -> str:
    """The scope of a client whose key has this SHA-256."""
    return digest.hex()[:SCOPE]


def bare(key: str) -> str:
    """The id as the client knows it, of the one under which the run is on record."""
    return key.partition(":")[2].replace("~", ".")


def fingerprint(request: Request, flow: str) -> str:
    """64 hex digits that are the same for the same question to the same flow, however the answer is to be delivered."""
    # how a stream is to be cut up is asked for by streams only, and changes nothing of the answer
    extra = {
        dialect: kept
        for dialect, fields in request.extra.items()
        if (kept := {name: value for name, value in fields.items() if name != "stream_options"})
    }
    asked = replace(request, stream=False, extra=extra)
    return sha256(msgspec.json.encode((flow, asked), order="deterministic")).hexdigest()
