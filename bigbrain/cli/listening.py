"""Where a server listens: the options, and what is refused before anything starts."""

from __future__ import annotations

import socket
from dataclasses import replace

from bigbrain.errors import WiringError
from bigbrain.settings import Settings
from bigbrain.stack import Address


def checked_address(host: str, port: int, settings: Settings) -> Address:
    """Give the address to listen on; port 0 becomes a free one.

    Raises `WiringError` when others could reach it and no client key is set, and when it cannot be had.
    """
    address = Address(host, port)
    if not address.loopback and not settings.keys:
        raise WiringError(
            f"`{host}` can be reached from other machines and no client key is set, so anybody could use the brain; "
            "set `BIG_BRAIN_KEYS`, or listen on `127.0.0.1`"
        )
    return _free(address)


def _free(address: Address) -> Address:
    with socket.socket(socket.AF_INET6 if ":" in address.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            raise WiringError(
                f"cannot listen on `{address.bind}`: {error.strerror}; choose another address with `--host` and `--port`"
            ) from error
        return replace(address, port=probe.getsockname()[1])
