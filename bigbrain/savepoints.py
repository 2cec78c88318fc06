"""What a durable step has put by, so that its next attempt does not do it again.

A step is the smallest thing that is committed; inside one, the rounds of its tool loops
and the flows of its groups' members are put by as they end. All of it is forgotten when
the step is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from bigbrain.errors import BrainChanged
from bigbrain.messages import Message


class Saved(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line that was put by: a round of a `loop`, or, without one, a flow that ended with a selection."""

    place: str
    messages: tuple[Message, ...]
    loop: str = ""
    selected: str | None = None


_saved = msgspec.json.Decoder(Saved)


class Savepoints:
    """The savepoints of one step; may be used by the threads of a group."""

    def __init__(self, lines: Iterable[bytes] = (), save: Callable[[bytes], None] | None = None) -> None:
        """lines: what earlier attempts put by. save: keeps a line; None for a step that does not run again.

        Raises `BrainChanged` when another version wrote the lines.
        """
        try:
            saved = [_saved.decode(line) for line in lines]
        except msgspec.MsgspecError as exc:
            raise BrainChanged(f"what was put by cannot be read: {exc}") from exc
        self.flows = {one.place: one for one in saved if not one.loop}
        self._rounds = [one for one in saved if one.loop]
        self._save = save
        self._lock = threading.Lock()

    def flow_ended(self, path: str, messages: Sequence[Message], selected: str | None) -> None:
        """Puts by what a flow inside a group made."""
        self._put(Saved(path, tuple(messages), selected=selected))

    def rounds(self, place: str) -> PlaceRounds:
        """The rounds of the tool loops of one place."""
        return PlaceRounds(self, place)

    def known_rounds(self, place: str, loop: str) -> tuple[tuple[Message, ...], ...]:
        """The rounds that were put by there, in order."""
        return tuple(one.messages for one in self._rounds if (one.place, one.loop) == (place, loop))

    def put_round(self, place: str, loop: str, messages: Sequence[Message]) -> None:
        """Puts one round by."""
        self._put(Saved(place, tuple(messages), loop))

    def _put(self, saved: Saved) -> None:
        if self._save is not None:
            with self._lock:
                self._save(msgspec.json.encode(saved))


@dataclass(frozen=True)
class PlaceRounds:
    """The rounds of one place, as `bigbrain.run.Rounds` wants them."""

    savepoints: Savepoints
    place: str

    def known(self, loop: str) -> Sequence[Sequence[Message]]:
        """The rounds that an earlier attempt settled."""
        return self.savepoints.known_rounds(self.place, loop)

    def settled(self, loop: str, messages: Sequence[Message]) -> None:
        """Puts a round by. Raises what the step's scope was cancelled with, when the step is lost."""
        self.savepoints.put_round(self.place, loop, messages)
