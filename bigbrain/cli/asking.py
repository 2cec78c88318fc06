"""What commands share that ask a deployment over its own API, and how they show what it says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

import click
import httpx2
from rich.console import Console

from bigbrain.errors import BrainError
from bigbrain.settings import Settings

PATIENCE = 30.0
"""Seconds that an answer may take; a stream says that it lives every 10."""
WIDE = 200
"""Characters of a line where there is no terminal."""


def connected(ctx: click.Context, url: str) -> httpx2.Client:
    """A client of the brain at `url`, with the first of our keys, until the command ends."""
    key = next(iter(Settings.read().keys), "")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return ctx.with_resource(httpx2.Client(base_url=url.rstrip("/"), headers=headers, timeout=PATIENCE))


def answer(client: httpx2.Client, method: str, path: str, query: Mapping[str, str] | None = None) -> bytes:
    """The body of an answer. Raises `BrainError` when there is none, or when it is a refusal."""
    with reaching(client):
        response = client.request(method, path, params=query)
    check(response)
    return response.content


@contextmanager
def reaching(client: httpx2.Client) -> Iterator[None]:
    """Raises `BrainError` when nobody can be reached in the block."""
    try:
        yield
    except httpx2.TransportError as error:
        raise BrainError(
            f"nobody answers at `{client.base_url}`; start a brain with `bigbrain up`, or name it with `--url`"
        ) from error


def check(response: httpx2.Response) -> None:
    """Raises `BrainError` with the words of a refusal."""
    if response.status_code == 200:
        return
    try:
        said = response.json()["error"]["message"]
    except (ValueError, KeyError, TypeError):
        said = f"the answer is {response.status_code}, and no brain's"
    raise BrainError(str(said))


def console() -> Console:
    """Where things are shown: as wide as the screen, or wide enough where there is none."""
    screen = Console(highlight=False, soft_wrap=True)
    if not screen.is_terminal:
        # whoever reads it there is no screen, and wants each row on one line
        screen.width = WIDE
    return screen


def moment(ms: int) -> str:
    """A moment, ms since 1970, as people here write it."""
    return datetime.fromtimestamp(ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
