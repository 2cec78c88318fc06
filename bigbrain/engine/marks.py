"""The mark in a run's log of entries that were taken back, because a later attempt told something else."""

from __future__ import annotations

import msgspec


def is_mark(line: bytes) -> bool:
    """Whether a line of a log is no events but the mark of others that were taken back; see `kept_before`."""
    return line.startswith(b"{")


def kept_before(mark: bytes) -> int:
    """The last entry before a mark that was not taken back."""
    kept: int = msgspec.json.decode(mark)["kept"]
    return kept
