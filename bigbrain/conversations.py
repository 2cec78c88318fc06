"""A conversation that several may read while one or more add to it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import overload

from bigbrain.messages import Message


class Conversation(Sequence[Message]):
    """The messages so far; what was there at the start, and what was added since."""

    def __init__(self, before: Sequence[Message] = ()) -> None:
        self._messages = list(before)
        self._start = len(self._messages)
        self._lock = threading.Lock()

    def add(self, message: Message) -> None:
        """Adds a message; everybody who reads sees it from now on."""
        with self._lock:
            self._messages.append(message)

    @property
    def added(self) -> tuple[Message, ...]:
        """What was added, in the order in which it was."""
        return tuple(self._messages[self._start :])

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)
