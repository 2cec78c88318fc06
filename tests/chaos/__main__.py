"""Kills and stops processes of a deployment for as long as wanted: `python -m tests.chaos --blows 1000`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.chaos.storm import storm
from tests.stack.deployment import deployed
from tests.upstream import Upstream


def main() -> int:
    """The exit status: 1 when an answer was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--blows", type=int, default=20)
    parser.add_argument("--every", type=float, default=4.0, help="seconds between two of them")
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--pools", type=int, default=2, help="workers for steps that compute")
    parser.add_argument(
        "--cpu", type=int, default=4, help="processes of each pool, so that a step seldom waits for one"
    )
    parser.add_argument("--forgetful", action="store_true", help="kill Redis so that it has lost its last writes, too")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    size = ("--web", "2", "--workers", str(options.workers), "--cpu-workers", str(options.pools))
    arguments = ("up", "tests.brains", "--port", "0", *size, "--cpu", str(options.cpu))
    with (
        tempfile.TemporaryDirectory() as data,
        Upstream() as upstream,
        deployed(*arguments, data=Path(data), UPSTREAM=upstream.url, BIG_BRAIN_DRAIN="3") as stack,
    ):
        report = storm(
            stack,
            blows=options.blows,
            clients=options.clients,
            seed=options.seed,
            every=options.every,
            forgetful=options.forgetful,
        )
    print(report.lines())
    print(*report.seen.wrong, *report.log, sep="\n")
    return 1 if report.seen.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
