"""What JSON decodes to."""

from __future__ import annotations

from typing import Any, TypeAlias

JSON: TypeAlias = Any
"""A decoded JSON value: the only place where `Any` is meant."""
