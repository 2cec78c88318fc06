"""`python -m bigbrain` is the command `bigbrain`."""

from __future__ import annotations

from bigbrain.cli import main

if __name__ == "__main__":
    main(prog_name="bigbrain")
