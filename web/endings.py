"""A web process that is asked to end: each answer that is still open after a while gets its protocol's own ending.

gunicorn lets open answers finish for `graceful_timeout` seconds after TERM and cuts what is left. A client cannot tell that
from a broken line, so shortly before, each open answer ends with an error that can be tried again. The runs go
on; whoever asks again under the id gets the whole answer from another process.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from types import FrameType

import gevent

from bigbrain.engine.channels import Hub
from bigbrain.errors import ServerEnding

Later = Callable[[float, Callable[[], None]], object]
"""Has something done after so many seconds; called while a signal is handled, where gevent lets nobody wait."""


def end_with_notice(hub: Hub, after: float, later: Later = gevent.spawn_later) -> None:
    """From now on, TERM does what it did and has the hub's followers told, `after` seconds later, that this is the end.

    Call it in the main thread, when whoever runs this process has set its own handler.
    """
    before = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: FrameType | None) -> None:
        later(after, partial(hub.dismiss, ServerEnding()))
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, end)
