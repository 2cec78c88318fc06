"""One model, ready to be asked: the call, its retries, and its bytes as events.

A call that fails before any of its answer was given is made again, up to `retries`
times, whatever failed: the refusal (408, 409, 429, 5xx), the connection, or an error
event inside a stream that began well. `Started` and `Opened` are held back until
something of a part comes, so that they do not count. Later failures are raised.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from itertools import count

import httpx2
import msgspec

from bigbrain.errors import BrainError, ModelBroke, ModelError, WireError, WiringError
from bigbrain.events import Event, replay
from bigbrain.messages import JSON, Request
from bigbrain.models.asks import Asks, settled
from bigbrain.models.endpoints import Address, Endpoint, address, endpoint
from bigbrain.models.failures import broken, without_key
from bigbrain.models.fallbacks import Fallbacks
from bigbrain.models.gates import gates
from bigbrain.models.registry import Askable, in_line
from bigbrain.models.spec import Model, ModelRef, compose
from bigbrain.models.transport import drain, opening
from bigbrain.scope import Scope
from bigbrain.settings import Settings
from bigbrain.wire import sse

LONGEST_PAUSE = 8.0
"""Seconds between tries at most; the SDKs' own figure."""
LONGEST_WAIT = 60.0
"""Seconds of a server's `retry-after` that are still waited for; a longer one is the caller's decision."""


def connect(model: Askable, settings: Settings) -> Asks:
    """What can be asked for this model and its fallbacks. No connection is made and no SDK imported yet.

    Raises `WiringError` for each that has no key, and when a fallback is a reference:
    these are looked up by a brain's registry, `Models.resolve`.
    """
    if not isinstance(model, Model):
        return model
    line: list[tuple[str, Asks]] = []
    faults: list[str] = []
    for each in in_line(model, _unresolved):
        try:
            line.append(_named(each, settings))
        except WiringError as exc:
            faults += exc.faults
    if faults:
        raise WiringError(*faults)
    return Fallbacks(line) if len(line) > 1 else line[0][1]


def _named(model: Askable, settings: Settings) -> tuple[str, Asks]:
    if isinstance(model, Model):
        return model.name, Connection(model, address(model, settings))
    return str(getattr(model, "name", type(model).__name__)), model


def _unresolved(ref: ModelRef) -> Askable:
    tags = ", ".join(f"`{tag}`" for tag in ref.tags) or "no tags"
    raise WiringError(f"only a brain looks up a reference to {tags}; add the model to one, or give the `Model` itself")


def delay(error: ModelError, first: float, tries: int) -> float | None:
    """Seconds to wait before the next try, of which the `first` waits so long; None when there should be no other."""
    if not error.retryable:
        return None
    if error.retry_after is not None and error.retry_after > 0:
        return error.retry_after if error.retry_after <= LONGEST_WAIT else None
    backoff: float = min(first * 2.0**tries, LONGEST_PAUSE)
    # Up to a quarter less, so that calls that failed together do not come back together.
    return backoff * (1 - random.random() / 4)  # noqa: S311 - not a secret


class Connection:
    """A model at its server; keeps the promises of `Asks.ask`."""

    def __init__(self, model: Model, at: Address) -> None:
        self.model = model
        self.at = at
        """Where it is asked."""

    def __repr__(self) -> str:
        return f"Connection({self.model!r})"

    def ask(self, request: Request, scope: Scope) -> Generator[Event]:
        """Ask the model; see `Asks.ask`."""
        server = endpoint(self.at)
        # The author's own fields last: a dialect sends few of the `extra` ones, as a client may have set them.
        body = {**server.dialect.write_request(compose(self.model, request)), **self.model.extra}
        for tries in count():
            given = False
            try:
                with closing(self._try(server, body, tries, scope)) as events:
                    for event in settled(events):
                        given = True
                        yield event
                return
            except ModelError as error:
                seconds = delay(error, self.model.pause, tries)
                if given or tries >= self.model.retries or seconds is None:
                    raise
            scope.wait(seconds)

    def _try(self, server: Endpoint, body: dict[str, JSON], tries: int, scope: Scope) -> Generator[Event]:
        """One call and its answer."""
        limit = self.model.max_concurrent
        place = gates().passed((self.at, self.model.name), limit, scope) if limit else nullcontext()
        with place, scope.guard(), self._faults():
            with opening(scope):
                response = server.post(body, tries=tries, timeout=self.model.timeout)
            with closing(response):
                yield from _read(response, server, scope)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        """Raises everything as a `ModelError` that does not show the key."""
        try:
            yield
        except (WireError, msgspec.MsgspecError) as exc:
            error: BrainError = ModelBroke(f"model `{self.model.name}` answered nonsense: {exc}")
            raise without_key(error, self.at.key) from exc
        except httpx2.HTTPError as exc:
            raise without_key(broken(exc), self.at.key) from exc
        except BrainError as error:
            without_key(error, self.at.key)
            raise


def _read(response: httpx2.Response, server: Endpoint, scope: Scope) -> Iterator[Event]:
    """The events of a response, streamed or not."""
    if response.headers.get("content-type", "").startswith("application/json"):
        # Some servers do not stream, whatever they are asked for.
        yield from replay(server.dialect.read_response(msgspec.json.decode(response.read())))
        return
    chunks = _chunks(response, scope)
    yield from server.dialect.read_events(sse.read(chunks))
    drain(response, chunks)


def _chunks(response: httpx2.Response, scope: Scope) -> Iterator[bytes]:
    for chunk in response.iter_bytes():
        scope.check()
        yield chunk
