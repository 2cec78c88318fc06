"""The environment, read in this module only; every variable named and explained.

`Settings.read()` gives one frozen value that is handed on; nothing else looks at
`os.environ`. An empty variable counts as not set. A value that cannot be meant is
a `WiringError` that names the variable, and all faults are reported at once.
Keys and passwords never stand in `repr` or in `describe()`.

This module imports nothing heavy, so `celeryconfig.py` and the launcher may use it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar, get_args
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

from bigbrain.errors import WiringError

Log = Literal["text", "json"]
Telemetry = Literal["", "stdout", "otlp"]
Network: TypeAlias = IPv4Network | IPv6Network

T = TypeVar("T")

DEMO = "bigbrain.demo:brain"
"""The brain that is served when nobody names one."""

REDIS_SCHEMES = ("redis", "rediss", "unix")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one request or one web process may take before it is refused, each a positive whole number."""

    max_body: int = 32 * 1024 * 1024
    """`BIG_BRAIN_MAX_BODY`: bytes of one request's body, 32 MiB as Anthropic allows; more is answered 413."""
    max_messages: int = 10_000
    """`BIG_BRAIN_MAX_MESSAGES`: messages of one request; more is answered 413."""
    max_tools: int = 512
    """`BIG_BRAIN_MAX_TOOLS`: tools that one request may offer; more is answered 413."""
    max_depth: int = 64
    """`BIG_BRAIN_MAX_DEPTH`: levels of nested JSON in one request; more is answered 400."""
    max_streams: int = 2_000
    """`BIG_BRAIN_MAX_STREAMS`: open answers of one web process; further requests are answered 429."""
    stored_for: int = 86_400
    """`BIG_BRAIN_STORED_FOR`: seconds that a stored answer of the Responses API can be read and continued, a day."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the environment says about this deployment."""

    app: str = ""
    """`BIG_BRAIN_APP`: the brain as `module:attribute`, attribute `brain` if left out; unset: the built-in demo."""
    redis_url: str = field(default="", repr=False)
    """`BIG_BRAIN_REDIS_URL`: `redis://`, `rediss://` or `unix://` address of your Redis; unset: an embedded server."""
    data: Path = Path(".bigbrain")
    """`BIG_BRAIN_DATA`: folder of the embedded server and the launcher; default `.bigbrain` where you are."""
    keys: tuple[str, ...] = field(default=(), repr=False)
    """`BIG_BRAIN_KEYS`: comma-separated keys of which a client must send one; unset: no key is asked for."""
    trusted_proxies: tuple[Network, ...] = ()
    """`BIG_BRAIN_TRUSTED_PROXIES`: comma-separated addresses or networks, such as `10.0.0.0/8`, of what stands before the
    web tier: only from there `X-Forwarded-For` and the like are believed; unset: from nowhere."""
    api_key: str = field(default="", repr=False)
    """`BIG_BRAIN_API_KEY`: our key at the OpenAI-compatible model server."""
    base_url: str = field(default="", repr=False)
    """`BIG_BRAIN_BASE_URL`: that server's base URL, with its `/v1`; unset: OpenAI itself."""
    model: str = ""
    """`BIG_BRAIN_MODEL`: the model to ask where a brain names none; unset: the brain's own choice."""
    anthropic_api_key: str = field(default="", repr=False)
    """`BIG_BRAIN_ANTHROPIC_API_KEY`: our key at Anthropic."""
    anthropic_base_url: str = field(default="", repr=False)
    """`BIG_BRAIN_ANTHROPIC_BASE_URL`: base URL of an Anthropic-compatible server; unset: Anthropic itself."""
    telemetry: Telemetry = ""
    """`BIG_BRAIN_TELEMETRY`: `stdout` or `otlp` to send OpenTelemetry's spans and metrics of runs; unset: none."""
    otlp_endpoint: str = field(default="", repr=False)
    """`BIG_BRAIN_OTLP_ENDPOINT`: URL of the collector when telemetry is `otlp`, such as `http://127.0.0.1:4318`."""
    log: Log = "text"
    """`BIG_BRAIN_LOG`: `text` for people (default), `json` for one JSON object a line."""
    queue: str = "workers.chains:CeleryQueue"
    """`BIG_BRAIN_QUEUE`: `module:attribute` of the queue that carries steps to workers, by name so that the
    web side needs no import of `workers`."""
    metrics: Path | None = None
    """`PROMETHEUS_MULTIPROC_DIR`: folder in which the processes of one machine share their counters; set by
    `bigbrain up`, empty at the start of a deployment; the variable's name is prometheus-client's own."""
    metrics_port: str = ""
    """`BIG_BRAIN_METRICS_PORT`: port, or `host:port`, at which a worker shows its metrics to Prometheus, without a key;
    without a host, to this machine only; unset: none, the web side's `/metrics` shows the workers of its own machine."""
    cors: tuple[str, ...] = ()
    """`BIG_BRAIN_CORS`: comma-separated origins, such as `https://chat.example.com`, whose pages may ask from a browser, or
    `*` for all; unset: none."""
    heartbeat: float = 10.0
    """`BIG_BRAIN_HEARTBEAT`: seconds of silence after which an open answer shows that it lives; proxies cut at 60."""
    drain: int = 25
    """`BIG_BRAIN_DRAIN`: seconds that what is under way gets to finish once a process was asked to end (TERM): the steps of a
    worker, which then go on in other workers, and the open answers of a web process, which then end with an error that says to come
    back. Less than the seconds after which a process is killed: 35 under `bigbrain up`."""
    keep: float = 3600.0
    """`BIG_BRAIN_KEEP`: seconds that a run is remembered after its end: shown, replayed, taken up again; then its id is free."""
    limits: Limits = Limits()

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Read every variable.

        Raises `WiringError`, with one fault for each variable that has an impossible value.
        """
        faults: list[str] = []
        env = _Environment(environ, faults)
        settings = cls(
            app=env.text("APP"),
            redis_url=env.checked("REDIS_URL", "", _redis_url),
            data=Path(env.text("DATA") or cls.data).expanduser(),
            keys=tuple(key for part in env.text("KEYS").split(",") if (key := part.strip())),
            trusted_proxies=env.checked("TRUSTED_PROXIES", (), _networks),
            api_key=env.text("API_KEY"),
            base_url=env.checked("BASE_URL", "", _http_url),
            model=env.text("MODEL"),
            anthropic_api_key=env.text("ANTHROPIC_API_KEY"),
            anthropic_base_url=env.checked("ANTHROPIC_BASE_URL", "", _http_url),
            telemetry=env.checked("TELEMETRY", cls.telemetry, _telemetry),
            otlp_endpoint=env.checked("OTLP_ENDPOINT", "", _http_url),
            log=env.checked("LOG", cls.log, _log),
            queue=env.checked("QUEUE", cls.queue, _named),
            metrics=Path(folder) if (folder := environ.get("PROMETHEUS_MULTIPROC_DIR", "")) else None,
            metrics_port=env.checked("METRICS_PORT", "", _place),
            cors=env.checked("CORS", cls.cors, _origins),
            heartbeat=env.checked("HEARTBEAT", cls.heartbeat, _seconds),
            drain=env.checked("DRAIN", cls.drain, _count),
            keep=env.checked("KEEP", cls.keep, _seconds),
            limits=Limits(
                **{f.name: env.checked(f.name.upper(), getattr(Limits, f.name), _count) for f in fields(Limits)}
            ),
        )
        faults.extend(_contradictions(settings))
        if faults:
            raise WiringError(*faults)
        return settings

    def describe(self) -> Iterator[tuple[str, str]]:
        """Give (variable, value) for people, in the order of the fields; what is secret is only counted or masked."""
        for f in (f for f in fields(self) if f.name != "limits"):
            yield _variable(f.name), _shown(f.name, getattr(self, f.name), secret=not f.repr)
        for f in fields(self.limits):
            yield _variable(f.name), str(getattr(self.limits, f.name))


def broker_url(redis_url: str) -> str:
    """Give the address that Celery wants for the Redis that redis-py reaches at `redis_url`.

    The two differ for unix sockets only: `unix:///path?db=1` is `redis+socket:///path?virtual_host=1` to kombu.
    """
    parts = urlsplit(redis_url)
    if parts.scheme != "unix":
        return redis_url
    db = parse_qs(parts.query).get("db", ["0"])[-1]
    user = f"{parts.netloc.rpartition('@')[0]}@" if "@" in parts.netloc else ""
    return f"redis+socket://{user}{parts.path}?virtual_host={db}"


def masked_url(url: str) -> str:
    """Give `url` without its password, to be shown; a query that holds one (redis-py allows it) is masked whole."""
    parts = urlsplit(url)
    if "password" in parts.query:
        parts = parts._replace(query="***")
    if parts.password is not None:
        host = parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{quote(parts.username or '')}:***@{host}")
    shown = urlunsplit(parts)
    return url if shown == urlunsplit(urlsplit(url)) else shown


class _Environment:
    """The variables under our prefix, with the faults found so far."""

    def __init__(self, environ: Mapping[str, str], faults: list[str]) -> None:
        self._environ = environ
        self._faults = faults

    def text(self, name: str) -> str:
        return self._environ.get(f"BIG_BRAIN_{name}", "").strip()

    def checked(self, name: str, default: T, read: Callable[[str], T]) -> T:
        text = self.text(name)
        if not text:
            return default
        try:
            return read(text)
        except ValueError as fault:
            self._faults.append(f"`BIG_BRAIN_{name}` {fault}")
            return default


def _redis_url(text: str) -> str:
    parts = urlsplit(text)
    place = parts.path if parts.scheme == "unix" else parts.hostname
    if parts.scheme not in REDIS_SCHEMES or not place:
        # The value may hold a password, so only its scheme is repeated.
        raise ValueError(f"has the scheme `{parts.scheme}`; write it like `redis://127.0.0.1:6379/0` or `unix:///path`")
    return text


def _http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"is `{masked_url(text)}`; write an address like `https://api.example.com/v1`")
    return text


def _named(text: str) -> str:
    module, _, attribute = text.partition(":")
    if not (module and attribute):
        raise ValueError(f"is `{text}`; write it as `module:attribute`")
    return text


def _place(text: str) -> str:
    port = text.rpartition(":")[2]
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise ValueError(f"is `{text}`; write a port such as `9100`, or `host:port`")
    return text


def _networks(text: str) -> tuple[Network, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        return tuple(ip_network(part) for part in parts)
    except ValueError as exc:
        raise ValueError(f"is `{text}`, but {exc}; write addresses or networks, like `127.0.0.1, 10.0.0.0/8`") from exc


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(origin for part in text.split(",") if (origin := part.strip().rstrip("/")))
    for origin in origins:
        parts = urlsplit(origin)
        if origin != "*" and (parts.scheme not in ("http", "https") or not parts.hostname or parts.path):
            raise ValueError(f"has the origin `{origin}`; write it like `https://chat.example.com`, or `*` for all")
    return origins


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"is `{text}`; write seconds above 0")
    return seconds


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"is `{text}`; write a whole number above 0")
    return int(text)


def _log(text: str) -> Log:
    match text.lower():
        case "text" | "json" as log:
            return log
        case _:
            raise ValueError(f"is `{text}`; write {_either(get_args(Log))}")


def _telemetry(text: str) -> Telemetry:
    match text.lower():
        case "stdout" | "otlp" as telemetry:
            return telemetry
        case _:
            raise ValueError(f"is `{text}`; write {_either(get_args(Telemetry)[1:])}, or leave it out")


def _either(words: tuple[str, ...]) -> str:
    return " or ".join(f"`{word}`" for word in words)


def _contradictions(settings: Settings) -> Iterator[str]:
    if settings.telemetry == "otlp" and not settings.otlp_endpoint:
        yield "`BIG_BRAIN_TELEMETRY` is `otlp`, but nothing says where to; set `BIG_BRAIN_OTLP_ENDPOINT`"
    if settings.telemetry and not all(map(_installed, ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"))):
        yield "`BIG_BRAIN_TELEMETRY` needs OpenTelemetry's packages; install them with `pip install 'bigbrain[telemetry]'`"


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        # not even what it would be inside of
        return False


def _variable(name: str) -> str:
    return "PROMETHEUS_MULTIPROC_DIR" if name == "metrics" else f"BIG_BRAIN_{name.upper()}"


def _shown(name: str, value: object, *, secret: bool) -> str:
    match value:
        case None | "" | ():
            return ""
        case tuple() if not secret:
            return ", ".join(map(str, value))
        case tuple():
            return f"{len(value)} set"
        case str() if name.endswith(("_url", "_endpoint")):
            return masked_url(value)
        case _:
            return "***" if secret else str(value)
