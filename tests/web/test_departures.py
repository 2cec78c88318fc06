"""Clients that leave: noticed at once, their runs stopped, others' left alone."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from bigbrain.agents import agent
from bigbrain.brain import Brain
from bigbrain.chat import Chat
from bigbrain.engine.store import RunStore
from bigbrain.flows import Flow, respond
from bigbrain.turns import Turn
from tests.web.site import CHAT, MESSAGES, Pausing, Site, asking, listening, serving
from tests.web.sockets import send_json
from web.abandoned import Abandoned
from web.departures import Client, Departures

PIPELINED = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


class Noticing(Client):
    """A client of which is known when it left."""

    def __init__(self) -> None:
        super().__init__()
        self.noticed = threading.Event()
        self.nudge = self.noticed.set


def test_a_closed_connection_is_noticed_within_100_ms(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    client = Noticing()
    with Departures().watch(ours, client):
        assert not client.left
        theirs.close()

        assert client.noticed.wait(0.1)
        assert client.left


def test_bytes_that_come_early_are_no_departure(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    client = Noticing()
    with Departures().watch(ours, client):
        theirs.sendall(PIPELINED)
        early = client.noticed.wait(0.05)
        theirs.close()

        assert not early
        assert client.noticed.wait(0.1)


def test_the_end_of_the_watch_looks_once_more(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    client = Client()
    with Departures().watch(ours, client):
        theirs.close()

    assert client.left


def test_the_end_of_the_watch_waits_for_news_that_is_being_told(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    telling, clients = threading.Event(), (Client(), Client())

    def slowly() -> None:
        telling.set()
        time.sleep(0.05)

    for client in clients:
        client.nudge = slowly
    departures = Departures()
    with departures.watch(ours, clients[0]), departures.watch(ours, clients[1]):
        theirs.close()
        # one of them hears it now, the other one's watch ends before it is told
        assert telling.wait(5)

    assert [client.left for client in clients] == [True, True]


def test_who_leaves_after_the_watch_has_not_left(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    departures, client = Departures(), Client()
    with departures.watch(ours, client):
        pass
    theirs.close()
    departures.look()

    assert not client.left


def test_one_connection_may_carry_several_clients(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    departures, first, second, served = Departures(), Noticing(), Noticing(), Noticing()
    with departures.watch(ours, first), departures.watch(ours, second):
        with departures.watch(ours, served):
            pass
        theirs.close()

        assert first.noticed.wait(0.1)
        assert second.noticed.wait(0.1)
        assert not served.left


def test_a_connection_that_is_closed_already_counts_as_left() -> None:
    ours, theirs = socket.socketpair()
    ours.close()
    theirs.close()
    client = Client()
    with Departures().watch(ours, client):
        assert client.left


def test_a_connection_may_be_watched_again(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    departures, client = Departures(), Noticing()
    for _ in range(3):
        with departures.watch(ours, Client()):
            pass
    with departures.watch(ours, client):
        theirs.close()

        assert client.noticed.wait(0.1)


def run_id_of(site: Site) -> str:
    """The id on record of the one run there is; its response may not have begun."""
    (key,) = site.house.store.client.keys("bb:run:*:log")
    return str(key.decode().removeprefix("bb:run:").removesuffix(":log"))


@pytest.mark.parametrize(
    ("path", "stream", "first", "more"),
    [
        (CHAT, True, "begun", b""),
        (CHAT, False, "begun", b""),
        (MESSAGES, True, "", b""),
        (MESSAGES, False, "", b""),
        (MESSAGES, True, "begun", PIPELINED),
        (CHAT, False, "", PIPELINED),
    ],
)
def test_a_run_is_stopped_soon_after_its_client_has_left(path: str, stream: bool, first: str, more: bytes) -> None:
    model = Pausing(first)
    with serving(Brain("b", Flow(model=model))) as site, listening(site.app) as url:
        with send_json(url, path, asking(stream=stream), more):
            assert model.reached.wait(5)
        left = time.monotonic()
        record = site.house.record(run_id_of(site))
        took = time.monotonic() - left

        assert record.status == "cancelled"
        assert 0.4 < took < 1.5
        assert len(site.house.hub) == 0


def test_what_runs_on_after_the_answer_is_not_stopped() -> None:
    reached, may_go_on = threading.Event(), threading.Event()

    @agent
    def answer(turn: Turn, chat: Chat) -> None:
        turn.reply("the answer")

    @agent
    def after(turn: Turn, chat: Chat) -> None:
        reached.set()
        may_go_on.wait(5)

    with serving(Brain("b", Flow(answer) >> respond >> Flow(after))) as site, listening(site.app) as url:
        with send_json(url, CHAT, asking(stream=True)) as connection:
            told = b""
            while b"[DONE]" not in told:
                told += connection.recv(65536)
        assert reached.wait(5)
        abandoned = Abandoned(site.house.store, grace=0.0)
        stopped = site.house.store.stop(run_id_of(site), if_abandoned=True)
        abandoned.add(run_id_of(site))
        may_go_on.set()

        assert not stopped
        assert site.house.record(run_id_of(site)).status == "done"


class Stops(RunStore):
    """A store that only counts what it is asked to stop."""

    def __init__(self, times: int) -> None:
        self.asked: list[str] = []
        self.all = threading.Event()
        self._times = times

    def stop(self, run_id: str, *, if_abandoned: bool = False) -> bool:
        assert if_abandoned
        self.asked.append(run_id)
        if len(self.asked) == self._times:
            self.all.set()
        return True


def test_abandoned_runs_are_stopped_after_the_grace_in_order() -> None:
    store = Stops(3)
    abandoned = Abandoned(store, grace=0.1)
    begun = time.monotonic()
    for run_id in ("a", "b", "c"):
        abandoned.add(run_id)
    early = list(store.asked)

    assert store.all.wait(5)
    assert early == []
    assert time.monotonic() - begun >= 0.1
    assert store.asked == ["a", "b", "c"]


def test_an_abandoned_run_after_a_pause_is_stopped_as_well() -> None:
    for run_id in ("a", "b"):
        store = Stops(1)
        abandoned = Abandoned(store, grace=0.0)
        abandoned.add(run_id)

        assert store.all.wait(5)
