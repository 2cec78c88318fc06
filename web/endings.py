"""A web process that is asked to end: each answer that is still open after a while gets its protocol's own ending.

gunicorn lets open answers finish for `graceful_timeout` seconds after TERM and cuts what is left. A client cannot tell that
from a broken line, so shortly before, each open answer ends with an error that can be tried again. The runs go
on; whoever asks again under the id gets the whole answer from another process.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

from bigbrain.engine.channels import Hub
from bigbrain.errors import ServerEnding

LAST_MOMENT = 25.0
"""Seconds after TERM at which open answers are ended; less than the `graceful_timeout` in `gunicorn_conf.py`."""


def end_with_notice(hub: Hub, after: float = LAST_MOMENT) -> None:
    """From now on, TERM does what it did and has the hub's followers told, `after` seconds later, that this is the end.

    Call it in the main thread, when whoever runs this process has set its own handler.
    """
    before = signal.getsignal(signal.SIGTERM)

    def end(number: int, frame: FrameType | None) -> None:
        notice = threading.Timer(after, hub.dismiss, [ServerEnding()])
        notice.daemon = True
        notice.start()
        if callable(before):
            before(number, frame)

    signal.signal(signal.SIGTERM, end)
