"""What Marvis keeps: facts and lists, in a store that all workers of this machine share."""

import os
from pathlib import Path

from bigbrain import FileStore

store = FileStore(Path(os.environ.get("BIG_BRAIN_DATA", ".bigbrain")) / "marvis")


def facts() -> list[str]:
    """All facts, the oldest first."""
    return store.get("facts", list[str], default=[])


def keep(fact: str) -> None:
    """Keeps a fact, once however often it is told."""

    def more(known: list[str]) -> list[str]:
        return known if fact.casefold() in (one.casefold() for one in known) else [*known, fact]

    store.update("facts", more, [], kind=list[str])


def items(name: str) -> list[str]:
    """What stands on a list."""
    return store.get(f"list:{name}", list[str], default=[])


def put(name: str, item: str) -> int:
    """Puts an item on a list; how many there are now."""
    return len(store.update(f"list:{name}", lambda kept: [*kept, item], [], kind=list[str]))


def take(name: str, item: str) -> list[str]:
    """Takes all items off a list that have `item` in their names; what was taken."""
    taken: list[str] = []

    def fewer(kept: list[str]) -> list[str]:
        taken[:] = [one for one in kept if item.casefold() in one.casefold()]
        return [one for one in kept if one not in taken]

    store.update(f"list:{name}", fewer, [], kind=list[str])
    return taken
