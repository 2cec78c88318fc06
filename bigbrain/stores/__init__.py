"""A brain's memory: JSON values under keys, safe to change from many runs at once.

    memory = FileStore("facts")                             # or MemStore(), or RedisStore(url)
    memory.put("user:7", {"name": "Ada"}, ttl=3600)
    memory.get("user:7")                                    # {"name": "Ada"}
    memory.update("visits", lambda count: count + 1, 0)     # read, change, write: never loses a change

What to remember and how to recall it is the author's; there is nothing here but keys and values.
"""

from __future__ import annotations

from bigbrain.errors import StoreError as StoreError
from bigbrain.stores.files import FileStore as FileStore
from bigbrain.stores.memory import MemStore as MemStore
from bigbrain.stores.redis import RedisStore as RedisStore
from bigbrain.stores.store import Store as Store
