"""Measures and prints: `python -m tests.bench [added|hops|all] [--quick]`.

added   added time to first token, a token's delay and processor time, against the model's
        server directly and a hand-written Flask proxy
hops    a committed step against a task of a bare Celery chain

Targets take turns within a round, ratios are taken within a round and their median over
the rounds is printed, so what else the machine does falls on all alike.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack

import psutil

from tests.bench.hops import measure_hops
from tests.bench.load import Seen, run
from tests.bench.targets import bench_upstream, bigbrain_up, cpu_seconds, flask_proxy, memory_mb

Figures = dict[str, float]


def idle(port: int, quick: bool) -> tuple[Seen, int]:
    count = 6 if quick else 60
    return asyncio.run(run(port, "stamps:16@100", clients=1, each=count)), count


def plain(port: int, quick: bool) -> tuple[Seen, int]:
    each = 5 if quick else 50
    return asyncio.run(run(port, "stamps:16", clients=4, each=each, stream=False)), 4 * each


def paced(port: int, quick: bool) -> tuple[Seen, int]:
    tokens = 16 if quick else 160
    return asyncio.run(run(port, f"stamps:{tokens}@20", clients=64, each=1, ramp=1.0)), 64


def burst(port: int, quick: bool) -> tuple[Seen, int]:
    tokens = 100 if quick else 1000
    return asyncio.run(run(port, f"stamps:{tokens}", clients=16, each=2)), 32


WORKLOADS: dict[str, Callable[[int, bool], tuple[Seen, int]]] = {
    "idle": idle,
    "plain": plain,
    "64 x 20/s": paced,
    "burst": burst,
}


def figures(name: str, seen: Seen, requests: int, cpu: float) -> Figures:
    """What is printed of one workload on one target."""
    if name == "plain":
        return {"cpu ms/request": cpu * 1000 / requests, "wrong": seen.wrong}
    out: Figures = {
        "first token p50 ms": seen.first_p50,
        "first token p99 ms": seen.quantile(seen.first, 0.99),
        "token delay p50 ms": seen.quantile(seen.delays, 0.5),
        "token delay p99 ms": seen.quantile(seen.delays, 0.99),
        "cpu ms/1000 tokens": cpu * 1e6 / max(1, seen.tokens),
        "wrong": seen.wrong,
    }
    if name == "burst":
        out["tokens/s"] = seen.tokens / seen.seconds
    return out


def added(rounds: int, quick: bool) -> None:
    """Prints the table of all workloads on all targets."""
    with ExitStack() as stack:
        upstream = stack.enter_context(bench_upstream())
        targets: dict[str, tuple[int, psutil.Process | None]] = {"direct": (upstream, None)}
        targets["flask"] = stack.enter_context(flask_proxy(upstream))
        targets["bigbrain"] = stack.enter_context(bigbrain_up(upstream))
        for port, _ in targets.values():
            asyncio.run(run(port, "stamps:16", clients=8, each=4))
        at_rest = {name: memory_mb(root) for name, (_, root) in targets.items() if root}
        seen: dict[tuple[str, str, str], list[float]] = {}
        for _ in range(rounds):
            for workload, measure in WORKLOADS.items():
                for name, (port, root) in targets.items():
                    before = cpu_seconds(root) if root else 0.0
                    result, requests = measure(port, quick)
                    time.sleep(0.3)
                    cpu = (cpu_seconds(root) if root else 0.0) - before
                    for figure, value in figures(workload, result, requests, cpu).items():
                        seen.setdefault((workload, figure, name), []).append(value)
        _table(seen)
        for name, memory in at_rest.items():
            parts = ", ".join(f"{part} {size:.0f}" for part, size in sorted(memory.items()))
            print(f"memory at rest, PSS MB, {name}: {sum(memory.values()):.0f} ({parts})")


def _table(seen: dict[tuple[str, str, str], list[float]]) -> None:
    print(f"{'workload':10} {'figure':22} {'direct':>10} {'flask':>10} {'bigbrain':>10} {'x flask':>8}")
    for workload, figure in dict.fromkeys((workload, figure) for workload, figure, _ in seen):
        row = [seen[workload, figure, name] for name in ("direct", "flask", "bigbrain")]
        ratios = [ours / theirs for theirs, ours in zip(row[1], row[2], strict=True) if theirs]
        ratio = f"{statistics.median(ratios):8.2f}" if ratios else " " * 8
        shown = " ".join(f"{statistics.median(values):10.2f}" for values in row)
        print(f"{workload:10} {figure:22} {shown} {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="all", choices=["added", "hops", "all"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a tenth of the load, to see that it works")
    arguments = parser.parse_args()
    if arguments.what in ("added", "all"):
        added(arguments.rounds, arguments.quick)
    if arguments.what in ("hops", "all"):
        # last, because it points this very process at a Redis of its own
        measure_hops(rounds=arguments.rounds, each=5 if arguments.quick else 40)


if __name__ == "__main__":
    main()
