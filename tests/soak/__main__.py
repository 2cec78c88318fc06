"""Has a deployment answer very many requests and looks at what is left: `python -m tests.soak --runs 10000`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.soak.soak import KEEP, soak
from tests.stack.deployment import deployed


def main() -> int:
    """The exit status: 1 when an answer was wrong or something is left."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args()
    arguments = ("up", "tests.soak.brains", "--port", "0", "--web", "2", "--workers", "2")
    with (
        tempfile.TemporaryDirectory(prefix="bb-") as data,
        deployed(*arguments, data=Path(data), BIG_BRAIN_KEEP=str(KEEP)) as stack,
    ):
        report = soak(stack, options.runs, whole=True)
    print(report.lines())
    print(*report.wrong[:20], sep="\n")
    return 0 if report.clean else 1


if __name__ == "__main__":
    raise SystemExit(main())
