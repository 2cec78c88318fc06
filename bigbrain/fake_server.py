"""The embedded Redis of last resort: `python -m bigbrain.fake_server PORT`, until TERM.

For machines without any server: everything is forgotten at the end, and it is slow
(a published message takes about 10 ms, 2,000 commands a second).
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from fakeredis import TcpFakeServer


def main(port: int) -> None:
    """Serve on the loopback `port`; never returns."""
    signal.signal(signal.SIGTERM, _end)
    TcpFakeServer(("127.0.0.1", port)).serve_forever()


def _end(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001  (the signature of a signal handler)
    # Its connections' threads wait for their clients for ever, and there is nothing to save.
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
