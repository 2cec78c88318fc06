"""Text that is passed on while it is being written, though its writer may begin anew.

The CLI asks its model again when an answer breaks off. What it had written by then has
been passed on and cannot be taken back; so what it writes again is compared with it, and
only what goes beyond is passed on. If it differs, the answer has to fail.
"""

from __future__ import annotations

from collections.abc import Callable

from bigbrain.errors import ModelBroke


class Retelling:
    """Passes each character of a text to `told`, once."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self._pieces: list[str] = []
        self._before = ""
        """What was passed on before the last beginning anew; empty unless some of it has to come again."""
        self.length = 0
        """Characters written, from the last beginning on."""

    @property
    def text(self) -> str:
        """All that was passed on."""
        return "".join(self._pieces)

    @property
    def complete(self) -> bool:
        """Whether all that was passed on has also been written since the last beginning."""
        return self.length >= len(self._before)

    def again(self, at: int) -> None:
        """What was written beyond the first `at` characters is written again from now on."""
        self._before = self.text
        self.length = at

    def write(self, piece: str) -> None:
        """Add to the text.

        Raises `ModelBroke` when it is written otherwise than it was passed on.
        """
        known = max(0, len(self._before) - self.length)
        if known and not self._before.startswith(piece[:known], self.length):
            raise ModelBroke(
                "Claude Code began its answer anew, otherwise, when a part of it had been passed on already"
            )
        self.length += len(piece)
        if new := piece[known:]:
            self._pieces.append(new)
            self._told(new)
