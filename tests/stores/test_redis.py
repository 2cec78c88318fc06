from __future__ import annotations

from collections.abc import Callable, Iterator

import fakeredis
import pytest
import redis

from bigbrain.embedded import EmbeddedRedis
from bigbrain.errors import WiringError
from bigbrain.stores import RedisStore, Store, StoreError
from tests.contracts.store import StoreContract


def ageing(client: redis.Redis) -> Callable[[float], None]:
    """Takes seconds off every lifetime in a server, whose own clock cannot be set."""

    def age(seconds: float) -> None:
        for key in client.scan_iter():
            left = client.pttl(key)
            if left > 0:
                client.pexpire(key, left - int(seconds * 1000))

    return age


class TestRedisStore(StoreContract):
    @pytest.fixture
    def client(self, fake_server: fakeredis.FakeServer) -> redis.Redis:
        return fakeredis.FakeRedis(server=fake_server)

    @pytest.fixture
    def store(self, client: redis.Redis) -> Store:
        return RedisStore(client)

    @pytest.fixture
    def passing(self, client: redis.Redis) -> Callable[[float], None]:
        return ageing(client)


@pytest.mark.slow
class TestRedisStoreOnAServer(StoreContract):
    @pytest.fixture
    def client(self, redis_server: EmbeddedRedis) -> Iterator[redis.Redis]:
        with redis.Redis.from_url(redis_server.url) as client:
            yield client

    @pytest.fixture
    def store(self, client: redis.Redis) -> Store:
        return RedisStore(client)

    @pytest.fixture
    def passing(self, client: redis.Redis) -> Callable[[float], None]:
        return ageing(client)


@pytest.mark.slow
def test_a_store_finds_its_server_by_an_address(redis_server: EmbeddedRedis) -> None:
    store, other = RedisStore(redis_server.url), RedisStore(redis_server.url)
    store.put("a", 1)

    assert other.get("a") == 1
    for each in (store, other):
        each._client.close()


@pytest.fixture
def client(fake_server: fakeredis.FakeServer) -> redis.Redis:
    return fakeredis.FakeRedis(server=fake_server)


def test_stores_with_other_prefixes_know_nothing_of_each_other(client: redis.Redis) -> None:
    one, other = RedisStore(client, prefix="one:"), RedisStore(client, prefix="*:")
    one.put("a", 1)
    other.put("a", 2)

    assert (one.get("a"), other.get("a")) == (1, 2)
    assert (one.list(), other.list()) == (["a"], ["a"])
    assert client.get("one:a") == b"1"


def test_a_client_that_decodes_will_do(fake_server: fakeredis.FakeServer) -> None:
    store = RedisStore(fakeredis.FakeRedis(server=fake_server, decode_responses=True))
    store.put("ä", "ö")

    assert (store.get("ä"), store.list(), store.update("ä", lambda text: text + "!")) == ("ö", ["ä"], "ö!")


def test_lifetimes_are_the_servers_own(client: redis.Redis) -> None:
    store = RedisStore(client)
    store.put("a", 1, ttl=60)
    store.put("b", 1, ttl=0.0001)

    assert 59_000 < client.pttl("bb:memory:a") <= 60_000


def test_a_change_that_is_sent_again_is_made_once(client: redis.Redis) -> None:
    store = RedisStore(client)
    store.put("count", 1)
    sent = {"keys": ["bb:memory:count", "token"], "args": ["1", b"1", "1", b"2", "", 1000]}

    assert store._script(**sent) == 1
    assert store._script(**sent) == 1
    assert store.get("count") == 2


def test_the_marks_of_changes_go_by_themselves(client: redis.Redis) -> None:
    RedisStore(client).update("count", lambda count: count + 1, 0)
    [mark] = client.keys("bb:swapped:*")

    assert 0 < client.pttl(mark) <= 60_000


def test_a_server_that_is_away_is_a_failure_of_the_store(
    client: redis.Redis, fake_server: fakeredis.FakeServer
) -> None:
    store = RedisStore(client)
    fake_server.connected = False

    for failing in (
        lambda: store.get("a"),
        lambda: store.put("a", 1),
        lambda: store.delete("a"),
        lambda: store.list(),
        lambda: store.swap("a", None, 1),
    ):
        with pytest.raises(StoreError, match=r"the memory in Redis failed: .*; is the server up\?"):
            failing()


def test_nothing_is_connected_before_the_first_use() -> None:
    assert repr(RedisStore("redis://127.0.0.1:1/0", prefix="p:")) == "RedisStore(prefix='p:')"


def test_an_impossible_address_is_a_fault_of_the_wiring() -> None:
    with pytest.raises(WiringError, match=r"`RedisStore`: .*; write an address like"):
        RedisStore("http://127.0.0.1")
